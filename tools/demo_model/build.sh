#!/bin/sh
# Build the demo model: build.sh corpus | build.sh train HH:MM [--resume] | build.sh export
# BUILD and OUT name the folders (default: build and out in the current folder).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-build}
out=${OUT:-out}
python=${PYTHON:-/usr/bin/python3}
malloc=/usr/lib/$(uname -m)-linux-gnu/libjemalloc.so.2
run() {
    env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 ONEDNN_PRIMITIVE_CACHE_CAPACITY=8192 \
        LD_PRELOAD="$malloc" MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1 \
        "$python" "$here/$@"
}
case "${1:-}" in
corpus)
    "$python" "$here/data.py" --build "$build"
    "$python" "$here/chat.py" --build "$build"
    run bpe.py --build "$build"
    ;;
train)
    until=$2
    shift 2
    run train.py --build "$build" --until "$until" "$@"
    run export.py --build "$build" --out "$out" --samples
    "$python" "$here/card.py" --build "$build" --out "$out"
    ;;
export)
    run export.py --build "$build" --out "$out" --samples
    "$python" "$here/card.py" --build "$build" --out "$out"
    ;;
*)
    sed -n '2,3s/^# //p' "$0"
    exit 2
    ;;
esac
