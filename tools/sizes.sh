#!/usr/bin/env bash
# Prints the median and the 95th percentile of the lengths of functions (those over three lines) and files in src/ and
# include/. For information: a function should rarely pass 60 lines, a file 400, tables exempt. Arguments name other
# folders; --long lists what is over those lengths.
set -euo pipefail
cd "$(dirname "$0")/.."

long=0
if [[ ${1:-} == --long ]]; then long=1 && shift; fi
folders=("$@")
if ((${#folders[@]} == 0)); then folders=(src include); fi

# Lines "function LENGTH FILE:LINE" and "file LENGTH FILE". Relies on clang-format's layout: a definition starts after a
# line that ends a statement or block, has a parameter list and is closed by a brace at its own indentation.
measure() {
  find "${folders[@]}" -name '*.h' -o -name '*.cc' | sort | xargs awk '
    function indent(line) { match(line, /^ */); return RLENGTH }
    FNR == 1 { if (file) print "file", lines, file; file = FILENAME; head = ""; open = 0 }
    { lines = FNR }
    open {
      if ($0 ~ /^ *}/ && indent($0) == depth) {
        if (FNR - start >= 3) print "function", FNR - start + 1, file ":" start
        open = 0; head = ""
      }
      next
    }
    /^ *\/\// || /^ *#/ || /^ *$/ || /^ *(public|private|protected):$/ { head = ""; next }
    { if (head == "") { start = FNR; depth = indent($0) } head = head " " $0 }
    /\{$/ {
      is_function = head ~ /\(/ && head !~ /^ *(if|for|while|switch|namespace|class|struct|enum|union|extern) / &&
                    head !~ /\[[&=]|\[this|= \[/ && head !~ /^[^(]* = /
      if (is_function) open = 1; else head = ""
      next
    }
    /[;{}]$/ { head = "" }
    END { if (file) print "file", lines, file }'
}

measured=$(measure)
for kind in function file; do
  awk -v kind=$kind '$1 == kind { print $2 }' <<<"$measured" | sort -n | awk -v kind=$kind '
    { length_of[NR] = $1 }
    function rank(p) { r = int(p * NR + 0.999999); return length_of[r < 1 ? 1 : r] }
    END { if (NR) printf "sizes: %d %ss, lines median %d, 95%% at most %d, longest %d\n", NR, kind, rank(0.5), rank(0.95),
                         length_of[NR] }'
done
if ((long)); then
  awk '$2 > ($1 == "function" ? 60 : 400) { print "sizes: long " $0 }' <<<"$measured" | sort -k4nr
fi
