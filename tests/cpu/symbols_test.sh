#!/bin/sh
# Objects compiled for AVX2 or AVX-512 must not define weak symbols: an inline function left in one of them could be
# the linker's pick for the whole program, and then fail on a processor without that instruction set.
# Usage: symbols_test.sh OBJECT...
command -v nm >/dev/null || { echo "SKIPPED: no nm"; exit 77; }
seen=0
failed=0
for object in "$@"; do
  case ${object##*/} in avx*) ;; *) continue ;; esac
  seen=$((seen + 1))
  weak=$(nm -C --defined-only "$object" | grep -E '^[0-9a-f]* [WVu] ')
  if [ -n "$weak" ]; then
    echo "${object##*/} defines weak symbols:"
    echo "$weak"
    failed=1
  fi
done
[ "$seen" -ge 2 ] || { echo "no AVX objects among: $*"; exit 1; }
exit $failed
