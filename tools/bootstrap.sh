#!/usr/bin/env bash
# Installs what building and testing ptxgen needs and this machine lacks; does nothing, quickly, where nothing is missing.
# Debian 12 or later. Packages come through apt-get (as root or by sudo); ptxas and the CUDA headers, where there is no
# CUDA toolkit, from NVIDIA's Python packages into ~/.cache/ptxgen/tools (XDG_CACHE_HOME is respected).
set -euo pipefail

readonly packages=(
  g++ clang libclang-rt-dev cmake ninja-build ccache git python3 python3-venv
  libabsl-dev catch2 libcli11-dev nlohmann-json3-dev libbenchmark-dev libllvm19)
readonly ptxas_major=13 # the first that knows sm_110
readonly ptxas_package=nvidia-cuda-nvcc==13.0.88
readonly headers_package=nvidia-cuda-runtime==13.0.96
readonly tools=${XDG_CACHE_HOME:-$HOME/.cache}/ptxgen/tools

say() { echo "bootstrap: $*"; }

# Runs a command and keeps what it prints to itself, unless it fails: then the end of it.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: install the equivalents of ${packages[*]}"
    return
  fi
  local installed missing=()
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
  for package in "${packages[@]}"; do
    grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then return; fi

  local as_root=()
  if ((EUID != 0)); then as_root=(sudo); fi
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends
    "${missing[@]}")
  say "installing ${missing[*]}"
  if ! quietly "${install[@]}" 2>/dev/null; then
    quietly "${as_root[@]}" apt-get update
    quietly "${install[@]}"
  fi
}

# The major version of the ptxas at $1; nothing when it does not run.
ptxas_major_of() { "$1" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\).*/\1/p'; }

is_new_enough() {
  local major
  major=$(ptxas_major_of "$1")
  [[ -n $major ]] && ((major >= ptxas_major))
}

# The ptxas that ptxgen finds by itself (src/runtime/ptxas.cc), if it is new enough.
has_ptxas() {
  local candidate
  for candidate in "${PTXGEN_PTXAS:-}" "$(command -v ptxas || true)" /usr/local/cuda/bin/ptxas "$tools/bin/ptxas"; do
    if [[ -x $candidate ]]; then
      is_new_enough "$candidate" && return
    fi
  done
  return 1
}

has_cuda_headers() {
  local folder
  for folder in "${CUDA_HOME:-/usr/local/cuda}/include" /usr/local/cuda/include /usr/local/include /usr/include \
    "$tools/include"; do
    if [[ -f $folder/cuda.h ]]; then return; fi
  done
  return 1
}

# Installs a Python package into $tools/python and links its file or folder $2 as $tools/$3.
install_python_package() {
  local package=$1 inside=$2 link=$3
  say "installing $package into $tools"
  mkdir -p "$tools/bin"
  if [[ ! -x $tools/python/bin/pip ]]; then quietly python3 -m venv --clear "$tools/python"; fi
  quietly "$tools/python/bin/pip" install -q --no-deps "$package"
  local found
  found=$(find "$tools/python" -path "*/nvidia/*/$inside" | head -n 1)
  if [[ -z $found ]]; then
    say "$package holds no $inside" >&2
    return 1
  fi
  ln -sfn "$found" "$tools/$link"
}

main() {
  if (($# > 0)); then
    sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
    [[ $1 == --help ]] && exit 0 || exit 2
  fi
  install_packages
  has_ptxas || install_python_package "$ptxas_package" bin/ptxas bin/ptxas
  has_cuda_headers || install_python_package "$headers_package" include include
}

main "$@"
