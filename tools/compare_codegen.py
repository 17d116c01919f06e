#!/usr/bin/env python3
"""Prints the table of docs/codegen.md: every kernel by both code generators (the fastest of three times), and what
ptxas makes of them.

    tools/compare_codegen.py build/bin/ptxgen sm_90a
"""

import json
import subprocess
import sys

GENERATORS = ["direct", "llvm"]
REPEATS = 3


def ask(program, *arguments):
    done = subprocess.run([program, *arguments, "--json"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stderr.decode().strip()}")
    return json.loads(done.stdout)


def row(program, name, target):
    """The cells of one kernel, each with a value for direct and one for llvm; its descriptor."""
    arguments = ["explain", "--kernel", name, "--target", target, "--codegen"]
    times = [[ask(program, *arguments, g) for _ in range(REPEATS)] for g in GENERATORS]
    by = [min(explained, key=lambda e: e["generation_ms"]) for explained in times]
    compiled = [next(c for c in e["compiled"]["known"] if c["compiler"].startswith("ptxas")) for e in by]
    return by[0]["kernel"], [
        [f"{e['generation_ms']:.1f}" for e in by],
        [e["ptx_instructions"] for e in by],
        [c["registers"] for c in compiled],
        [c["spilled_bytes"] for c in compiled],
    ]


def main():
    program, target = sys.argv[1:]
    print("| kernel | ms | PTX instructions | registers | spilled bytes |\n|---|---|---|---|---|")
    seen = set()
    for kernel in ask(program, "list")["kernels"]:
        descriptor, cells = row(program, kernel["name"], target)
        if descriptor in seen:  # another name of one that is there
            continue
        seen.add(descriptor)
        print(f"| {kernel['name']} | " + " | ".join(f"{a}, {b}" for a, b in cells) + " |")


main()
