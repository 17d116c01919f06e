#!/usr/bin/env python3
"""Prints the table of docs/codegen.md: every kernel by both code generators (the fastest of three times), and what
ptxas makes of them; the last row has the sums.

    tools/compare_codegen.py build/bin/ptxgen sm_90a
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

GENERATORS = ["direct", "llvm"]
COLUMNS = ["ms", "PTX instructions", "registers", "spilled bytes", "machine code bytes"]
REPEATS = 3
PTXAS = os.environ.get("PTXGEN_PTXAS") or shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"


def output_of(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.decode().strip()}")
    return done.stdout


def ask(program, *arguments):
    return json.loads(output_of(program, *arguments, "--json"))


def code_bytes(ptx, target):
    """The size of the sections of code in what ptxas makes of it, an ELF file of 64 bits."""
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = pathlib.Path(folder, "ptx"), pathlib.Path(folder, "cubin")
        text.write_bytes(ptx)
        output_of(PTXAS, f"-arch={target}", str(text), "-o", str(cubin))
        elf = cubin.read_bytes()
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count = struct.unpack_from("<HH", elf, 58)
    executable = 4
    total = 0
    for i in range(count):
        flags, _, _, section_bytes = struct.unpack_from("<4Q", elf, table + i * size + 8)
        total += section_bytes if flags & executable else 0
    return total


def row(program, name, target):
    """The cells of one kernel, each with a value for direct and one for llvm; its descriptor."""
    arguments = ["--kernel", name, "--target", target, "--codegen"]
    times = [[ask(program, "explain", *arguments, g) for _ in range(REPEATS)] for g in GENERATORS]
    by = [min(explained, key=lambda e: e["generation_ms"]) for explained in times]
    compiled = [next(c for c in e["compiled"]["known"] if c["compiler"].startswith("ptxas")) for e in by]
    return by[0]["kernel"], [
        [e["generation_ms"] for e in by],
        [e["ptx_instructions"] for e in by],
        [c["registers"] for c in compiled],
        [c["spilled_bytes"] for c in compiled],
        [code_bytes(output_of(program, "dump", *arguments, g), target) for g in GENERATORS],
    ]


def print_row(name, cells):
    pairs = [f"{a:.1f}, {b:.1f}" if isinstance(a, float) else f"{a}, {b}" for a, b in cells]
    print(f"| {name} | " + " | ".join(pairs) + " |", flush=True)


def main():
    program, target = sys.argv[1:]
    print(f"| kernel | {' | '.join(COLUMNS)} |\n|" + "---|" * (len(COLUMNS) + 1))
    rows = {}
    for kernel in ask(program, "list")["kernels"]:
        descriptor, cells = row(program, kernel["name"], target)
        if descriptor in rows:  # another name of one that is there
            continue
        rows[descriptor] = cells
        print_row(kernel["name"], cells)
    print_row("all", [[sum(values) for values in zip(*column)] for column in zip(*rows.values())])


main()
