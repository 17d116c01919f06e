#!/usr/bin/env bash
# A kernel's PTX is the same bytes whichever compiler built ptxgen, in every process, and whatever HOME and PATH are:
# dumps every kernel, with each value of its enumerated parameters, from a g++ and a clang++ build.
# Usage: determinism.sh BUILD_FOLDER (of g++)
set -euo pipefail

readonly build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
cmake --preset clang --log-level=WARNING -DPTXGEN_TESTS=OFF >/dev/null
cmake --build build-clang -- --quiet

exec python3 tests/checks/determinism.py "$build/bin/ptxgen" build-clang/bin/ptxgen
