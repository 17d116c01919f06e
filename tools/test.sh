#!/usr/bin/env bash
# Builds ptxgen and runs everything that must pass.
#
#   tools/test.sh                  the whole suite: the test binary, then tests/checks/*.sh (installed package, public
#                                  headers, g++ against clang++, fuzzing)
#   tools/test.sh --preset asan    the test binary under AddressSanitizer and UndefinedBehaviorSanitizer
#   tools/test.sh --preset tsan    the test binary under ThreadSanitizer
#   tools/test.sh --fuzz-seconds N time for each fuzz target (default 5)
#
# Logs stay in <build folder>/checks. The last line is "N passed, N failed"; the exit status is 0 when none failed. What
# is missing is installed first (tools/bootstrap.sh), and a missing ptxas fails the tests that need it.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=default
export PTXGEN_FUZZ_SECONDS=5
usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' tools/test.sh; }
while (($# > 0)); do
  case $1 in
    --help) usage && exit 0 ;;
    --preset) preset=${2:-} && shift 2 ;;
    --fuzz-seconds) export PTXGEN_FUZZ_SECONDS=${2:-} && shift 2 ;;
    *) echo "tools/test.sh: unknown argument $1; see --help" >&2 && exit 2 ;;
  esac
done
case $preset in
  default) export build=build checks=(tests/checks/*.sh) ;;
  asan | tsan) export build=build-$preset checks=() ;;
  *) echo "tools/test.sh: --preset $preset: allowed are default, asan, tsan" >&2 && exit 2 ;;
esac

# The closing line: $1 passed, $2 failed.
finish() {
  echo "$1 passed, $2 failed"
  exit $(($2 > 0))
}

prepare() {
  tools/bootstrap.sh || return
  local cache=${XDG_CACHE_HOME:-$HOME/.cache}/ptxgen
  # What bootstrap.sh had to fetch is better than what else the machine has.
  if [[ -x $cache/tools/bin/ptxas ]]; then export PTXGEN_PTXAS=${PTXGEN_PTXAS:-$cache/tools/bin/ptxas}; fi
  if [[ -d $cache/tools/include ]]; then export CMAKE_PREFIX_PATH=$cache/tools:${CMAKE_PREFIX_PATH:-}; fi
  if [[ -d $cache/ptxas-verdicts ]]; then find "$cache/ptxas-verdicts" -type f -mtime +30 -delete; fi
  unset PTXGEN_BLESS PTXGEN_DUMP
  cmake --preset "$preset" --log-level=WARNING >/dev/null && cmake --build "$build" -- --quiet
}

# The names of all test cases, one a line, escaped as Catch2's patterns. Catch2 2 exits with their number.
list_test_cases() {
  local names
  names=$("$build/bin/ptxgen_tests" --list-test-names-only '~[.]' 2>/dev/null) ||
    if [[ -z $names || $names == *'Error(s) in input'* ]]; then # Catch2 3
      names=$("$build/bin/ptxgen_tests" --list-tests --verbosity quiet '~[.]')
    fi
  sed 's/[],"\*[]/\\&/g' <<<"$names"
}

# Runs one job (a file of test names in $results, or a script under tests/checks) and leaves NAME.log and NAME.passed,
# the number of test cases that passed.
run_job() {
  local job=$1 status=0 passed=0 expected=1
  if [[ $job == tests/checks/* ]]; then
    local name
    name=$(basename "$job" .sh)
    bash "$job" "$build" >"$results/$name.log" 2>&1 || status=$?
    passed=1
  else
    local name=$job
    "$build/bin/ptxgen_tests" -w NoAssertions -f "$results/$job" >"$results/$name.log" 2>&1 || status=$?
    # "All tests passed (9 assertions in 3 test cases)" or "test cases: 3 | 2 passed | 1 failed"
    passed=$(sed -nE 's/^All tests passed \(.* in ([0-9]+) test cases?\)$/\1/p
                      s/^test cases: .*[^0-9]([0-9]+) passed.*/\1/p' "$results/$name.log" | tail -n 1)
    passed=${passed:-0}
    expected=$(wc -l <"$results/$job")
  fi
  # A sanitizer's verdict or a crash at exit fails a run whose tests all passed.
  if ((status != 0 && passed == expected)); then passed=$((passed - 1)); fi
  echo "$passed" >"$results/$name.passed"
  if ((passed != expected)); then
    echo "--- $name: $passed of $expected passed (exit status $status); the end of $results/$name.log:"
    tail -n 60 "$results/$name.log" | grep -vE '^[0-9]+ passed, [0-9]+ failed$'
  fi
}
export -f run_job

prepare || finish 0 1
export results=$build/checks/results
rm -rf "$results" && mkdir -p "$results"

# Test cases are dealt out to four times as many runs as there are processors, so that a slow one holds up few others.
list_test_cases >"$results/all" || finish 0 1
processors=$(nproc)
awk -v shards=$((4 * processors)) -v folder="$results" '{ print > (folder "/shard" (NR % shards)) }' "$results/all"
jobs=("${checks[@]}" $(cd "$results" && ls | grep '^shard' || true))
printf '%s\n' "${jobs[@]}" | xargs -P "$processors" -I{} bash -c 'run_job "$1"' run_job {} || true

total=$(($(wc -l <"$results/all") + ${#checks[@]}))
passed=$(cat "$results"/*.passed | awk '{ sum += $1 } END { print sum + 0 }')
bash tools/sizes.sh
finish "$passed" $((total - passed))
