#!/usr/bin/env bash
# Builds every fuzz target and runs each from its seeds: tests/fuzz/run.sh [seconds each, default 5]
# What a run learns stays in build-fuzz/corpus, what makes it fail in build-fuzz/findings. Exit 1 when a target fails.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-5}
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
  echo "tests/fuzz/run.sh: '$seconds' is no number of seconds; give a whole number above 0" >&2
  exit 2
fi

build=build-fuzz
cmake -S . -B $build -G Ninja -DCMAKE_CXX_COMPILER="${CLANGXX:-clang++}" -DPTXGEN_FUZZ=ON -DPTXGEN_TESTS=OFF \
  -DPTXGEN_TOOLS=OFF -DPTXGEN_BENCH=OFF --log-level=WARNING >/dev/null
cmake --build $build --target fuzz -- --quiet

passed=0 failed=0
mkdir -p $build/findings
for source in tests/fuzz/*.cc; do
  name=$(basename "$source" .cc)
  learned=$build/corpus/$name log=$build/fuzz_$name.log
  mkdir -p "$learned"
  seeds=("tests/fuzz/corpus/$name")
  if [[ -d tests/data/$name ]]; then seeds+=("tests/data/$name"); fi
  # No input of at most 64 KiB may take more than 10 s, or 64 MiB in one allocation.
  if $build/bin/fuzz_"$name" "$learned" "${seeds[@]}" -max_total_time="$seconds" -max_len=65536 \
    -timeout=10 -malloc_limit_mb=64 -rss_limit_mb=2048 -artifact_prefix=$build/findings/ -print_final_stats=1 \
    >"$log" 2>&1; then
    passed=$((passed + 1))
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -1)
    echo "fuzz_$name: $runs runs, $coverage edges"
  else
    failed=$((failed + 1))
    echo "fuzz_$name: FAILED, the whole log is $log"
    tail -n 40 "$log"
  fi
done
echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
