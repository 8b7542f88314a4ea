#!/usr/bin/env bash
# Everything that has to be seen on a machine with a GPU, in under five minutes after the build:
#
#   tools/gpu_check.sh [--device auto|vulkan[:N]|host] [--build FOLDER] [--quick]
#
# The device's self-test; that logits don't depend on the cache (the demo model, Q8_0 and Q4_K); what a timeline
# shows; what a layer costs whose experts are planned beside one whose experts are resident; and how fast the CPU's
# share is that is chosen while running, beside fixed ones. On a software device it runs for correctness, and its
# times mean nothing. Ends with 0 where nothing failed.
#
# --build FOLDER has a finished build; without it, build/release is built first. --quick: smaller models.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

device=auto build="" quick=""
while [ $# -gt 0 ]; do
  case $1 in
    --device) device=${2:?--device needs a name} && shift 2 ;;
    --build) build=${2:?--build needs a folder} && shift 2 ;;
    --quick) quick=1 && shift ;;
    *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
started=$SECONDS failed=0 lines=()
result() {  # PASS|FAIL|SKIP, what, figures
  printf '%s  %-18s %s\n' "$1" "$2" "$3"
  lines+=("$1")
  if [ "$1" = FAIL ]; then failed=1; fi
}
# The last line that a failed command said.
last() { tail -n 1 "$1" | cut -c 1-300; }

if [ -z "$build" ]; then
  build=build/release
  if { cmake --preset release -DBUILD_TESTING=ON && cmake --build $build --target spillway make_model; } >"$work/build" 2>&1; then
    result PASS build "$((SECONDS - started)) s"
  else
    result FAIL build "$(last "$work/build")"
    exit 1
  fi
  started=$SECONDS
fi
spillway=$build/spillway make_model=$build/tests/make_model

# 1. The device.
if ! "$spillway" devices --device "$device" --json >"$work/device.json" 2>"$work/error"; then
  if [ "$device" = auto ]; then
    result SKIP device "no GPU here: $(last "$work/error")"
    exit 0
  fi
  result FAIL device "$(last "$work/error")"
  exit 1
fi
field() { python3 -c "import json, sys; print(json.load(open(sys.argv[1]))[0][sys.argv[2]])" "$work/device.json" "$1"; }
id=$(field id) software=$(field software)
result PASS device "$id: $(field name); driver $(field driver)"
[ "$software" = True ] && echo "      a software device: this checks correctness, and times mean nothing"

# 2. Its arithmetic.
if "$spillway" devices --device "$id" --self-test >"$work/self" 2>&1; then
  result PASS self-test "$(grep -c 'as defined' "$work/self") of 1 device, all types"
else
  result FAIL self-test "$(last "$work/self")"
fi

# 3. Placement changes no bit.
shape="--layers 12 --hidden 1024 --heads 16 --kv-heads 4 --head-length 64 --experts 32 --used 4 --expert-width 512 --vocabulary 8000 --distinct 4"
tokens=96 repetitions=6
[ -n "$quick" ] && tokens=24 repetitions=2 && shape="--layers 4 --hidden 256 --heads 4 --kv-heads 2 --head-length 64 --experts 16 --used 2 --expert-width 256 --vocabulary 600 --distinct 4"
for type in Q8_0 Q4_K; do
  # shellcheck disable=SC2086  # the shape is words
  "$make_model" $shape --type $type --out "$work/$type.gguf" >/dev/null || exit 1
done
exact() {  # name, file
  if "$spillway" verify --exact -m "$2" --device "$id" --tokens $tokens >"$work/exact" 2>&1; then
    result PASS "exact, $1" "$(last "$work/exact")"
  else
    result FAIL "exact, $1" "$(grep -m 1 DIFFERS "$work/exact" || last "$work/exact")"
  fi
}
[ -z "$quick" ] && exact "demo model" models/demo.gguf
for type in Q8_0 Q4_K; do exact $type "$work/$type.gguf"; done

# 4. What runs when.
text="-m $work/Q4_K.gguf --device $id --no-chat --temp 0 -n 48 --ignore-eos -c 512"
# shellcheck disable=SC2086
if "$spillway" run $text -p "The harbour lay quiet that morning." -cmoe --moe-cache-mib 25% --moe-cache-cpu-share 0.5 \
  --timeline "$work/timeline.json" >"$work/out" 2>"$work/error"; then
  if words=$(python3 tools/check_timeline.py "$work/timeline.json" 2>&1); then
    result PASS timeline "$words"
  else
    result FAIL timeline "$(tail -n 1 <<<"$words")"
  fi
else
  result FAIL timeline "$(last "$work/error")"
fi

# 5. The fixed cost of a layer whose experts are planned: decoding with every expert in the cache, less decoding with
#    every expert resident. The runs alternate, and the quickest of each side counts. Target: docs/expert-cache.md.
target_us=20
decoded=64 rounds="1 2"
[ "$software" = True ] && decoded=8 repetitions=1 rounds=1  # only that it runs; software Vulkan takes a second a token
speed() {  # name, flags
  # shellcheck disable=SC2086
  "$spillway" bench -m "$work/Q8_0.gguf" --device "$id" -p 0 -n $decoded -r $repetitions --json -ngl all $2 >>"$work/$1" 2>"$work/error" &&
    echo "," >>"$work/$1"
}
fine=1
for _ in $rounds; do
  speed resident "-ncmoe 0" || fine=0
  speed planned "-cmoe --moe-cache-mib 100% --moe-cache-cpu-share 0" || fine=0
done
if [ $fine = 0 ]; then
  result FAIL "fixed cost" "$(last "$work/error")"
else
  cost=$(python3 - "$work/resident" "$work/planned" <<'PYTHON'
import json, sys
resident, planned = ([run for run in json.loads("[" + open(path).read() + "null]") if run] for path in sys.argv[1:])
us = lambda runs: 1e6 / max(speed for run in runs for speed in run["decode"]["tok_s"])
layers = sum(layer["experts"] == "planned" for layer in planned[0]["placement"]["layers"])
assert layers and not any(layer["experts"] == "planned" for layer in resident[0]["placement"]["layers"])
for run in planned:  # each expert was copied once at most, and none was the CPU's
    e = run["experts"]
    assert e["cpu"] == 0 and e["misses"] <= run["placement"]["cache"]["of_experts"], e
print(f"{(us(planned) - us(resident)) / layers:.1f} {us(planned):.0f} {us(resident):.0f} {layers}")
PYTHON
  ) || cost=
  if [ -z "$cost" ]; then
    result FAIL "fixed cost" "the runs were not those that were asked for"
  else
    read -r each planned resident layers <<<"$cost"
    words="$each us a layer ($planned us a token with all $layers layers planned and cached, $resident us resident; target $target_us)"
    if [ "$software" = True ]; then
      result SKIP "fixed cost" "$words: a software device's times mean nothing"
    elif python3 -c "exit(not $each <= $target_us)"; then
      result PASS "fixed cost" "$words, measured"
    else
      result FAIL "fixed cost" "$words, measured"
    fi
  fi
fi

# 6. The CPU's share chosen while running, beside fixed ones: wall-clock times, shown and not judged.
shares=0,0.25,0.5,0.75,0.95,1,auto
[ "$software" = True ] && shares=0,0.5,auto
# shellcheck disable=SC2086
if "$spillway" bench -m "$work/Q4_K.gguf" --device "$id" -p 0 -n $decoded -r $repetitions -ngl all -cmoe --moe-cache-mib 25% \
  --moe-cache-cpu-share $shares -o md >"$work/shares" 2>"$work/error"; then
  result PASS "share" "auto beside fixed shares, measured, not judged:"
  sed 's/^/      /' "$work/shares"
else
  result FAIL "share" "$(last "$work/error")"
fi

count() { printf '%s\n' "${lines[@]}" | grep -c "$1"; }
echo "$(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped in $((SECONDS - started)) s"
exit $failed
