#!/usr/bin/env bash
# The installed package as an engine gets it: the public headers and no others; and every folder of examples/, copied out
# of the checkout, configures with find_package(ptxgen) alone, builds, and its program (named like the folder) runs, given a GGUF file.
# Usage: install.sh BUILD_FOLDER
set -euo pipefail

readonly source=$(cd "$(dirname "$0")/../.." && pwd)
readonly build=$(cd "$1" && pwd)
readonly work=$build/checks/install
readonly prefix=$work/prefix

rm -rf "$prefix"
cmake --install "$build" --prefix "$prefix" >/dev/null
echo "headers that are public (<) and installed (>), where they differ:"
diff <(cd "$source/include" && find . -type f | sort) <(cd "$prefix/include" && find . -type f | sort)

examples=("$source"/examples/*/CMakeLists.txt)
if [[ ! -f ${examples[0]} ]]; then
  echo "no example to build: examples/*/CMakeLists.txt matches nothing"
  exit 1
fi
for list in "${examples[@]}"; do
  name=$(basename "$(dirname "$list")")
  echo "example $name:"
  rm -rf "$work/source/$name"
  mkdir -p "$work/source"
  cp -a "$(dirname "$list")" "$work/source/$name"
  cmake -S "$work/source/$name" -B "$work/build/$name" -G Ninja --log-level=WARNING -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)"
  cmake --build "$work/build/$name" -- --quiet
  (cd "$work/build/$name" && "./$name" "$source/tests/data/layer.gguf")
done
