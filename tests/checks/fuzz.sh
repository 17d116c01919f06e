#!/usr/bin/env bash
# Runs every libFuzzer target of tests/fuzz for PTXGEN_FUZZ_SECONDS (default 5) under AddressSanitizer and
# UndefinedBehaviorSanitizer. A crash leaves its input in build-fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/../.."

cmake --preset fuzz --log-level=WARNING >/dev/null
cmake --build build-fuzz -- --quiet
targets=(build-fuzz/bin/fuzz_*)
if [[ ! -x ${targets[0]} ]]; then
  echo "no fuzz target: build-fuzz/bin/fuzz_* matches nothing"
  exit 1
fi
for target in "${targets[@]}"; do
  name=$(basename "$target")
  seeds=tests/fuzz/corpus/${name#fuzz_}
  mkdir -p "build-fuzz/corpus/$name" build-fuzz/findings
  echo "$name:"
  "$target" "build-fuzz/corpus/$name" $([[ -d $seeds ]] && echo "$seeds") -max_total_time="${PTXGEN_FUZZ_SECONDS:-5}" \
    -timeout=10 -rss_limit_mb=2048 -artifact_prefix=build-fuzz/findings/ -verbosity=0 -print_final_stats=1
done
