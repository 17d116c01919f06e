#!/usr/bin/env bash
# Every public header compiles alone, without a warning, with g++ and clang++; all of them compile where a system header
# has left macros of common names behind; and they define none themselves but PTXGEN_*.
# Usage: headers.sh BUILD_FOLDER
set -euo pipefail

readonly source=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1/checks/headers"
readonly work=$(cd "$1/checks/headers" && pwd)
cd "$source/include"
readonly headers=(ptxgen/*.h)

# What windows.h, sys/sysmacros.h, complex.h and common logging headers define.
hostile_macros() {
  cat <<'MACROS'
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define major(device) ((device) >> 8)
#define minor(device) ((device)&255)
#define CHECK(x) CHECK_was_expanded
#define LOG(x) LOG_was_expanded
#define assert(x) assert_was_expanded
#define near
#define far
#define small char
#define interface struct
#define I (1.0i)
#define IN
#define OUT
#define ERROR 0
#define DEBUG 1
#define DELETE (0x00010000L)
#define TRUE 1
#define FALSE 0
#define linux 1
#define unix 1
MACROS
}

# The headers of others that ours use come first, so that the macros meet our text alone.
{
  grep -hoE '^#include (<[^>]+>|"absl/[^"]+")' "${headers[@]}" | sort -u
  hostile_macros | sed -E 's/^#define ([A-Za-z]+).*/#undef \1\n&/'
  printf '#include "%s"\n' "${headers[@]}"
} >"$work/hostile.cc"
for header in "${headers[@]}"; do
  printf '#include "%s"\n' "$header" >"$work/$(basename "$header" .h).alone.cc"
done

failed=0
# The object files are of no use; with them, and only so, ccache knows what has not changed.
for compiler in g++ clang++; do
  for unit in "${headers[@]/#ptxgen\//}" hostile.cc; do
    text=$work/${unit/%.h/.alone.cc}
    if ! $(command -v ccache || true) "$compiler" -std=c++20 -O0 -Wall -Wextra -Wpedantic -Werror -I "$source/include" \
      -c "$text" -o "$text.$compiler.o"; then
      echo "^ $compiler, $unit"
      failed=1
    fi
  done
done

# Not even for a while: that would end a macro of the same name in the program that includes us.
if grep -nE '^[[:space:]]*#[[:space:]]*define[[:space:]]' ptxgen/* | grep -vE 'define[[:space:]]+PTXGEN_[A-Z0-9_]+'; then
  echo "^ macros without the prefix PTXGEN_"
  failed=1
fi
exit "$failed"
