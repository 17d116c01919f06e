"""Compares what `ptxgen dump` prints for every kernel: two builds, two processes, two environments; through LLVM, of
which all use the same one, for each kernel's defaults."""

import concurrent.futures
import itertools
import json
import os
import subprocess
import sys

TARGETS = ["sm_75", "sm_90a"]
BARE = {"HOME": "/nonexistent", "PATH": "/nonexistent"}


def run(command, env=None):
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def dumps(program):
    """The arguments of one `ptxgen dump` for each kernel, value of an enumerated parameter, and target."""
    kernels = json.loads(run([program, "list", "--json"]).stdout)
    for kernel in kernels["kernels"]:
        choices = [
            [f"{parameter['option']}={value}" for value in parameter["values"]]
            for parameter in kernel["parameters"]
            if parameter.get("values")
        ]
        for options in itertools.product(*choices, [f"--target={target}" for target in TARGETS]):
            yield ["dump", "--kernel", kernel["name"], *options]
        yield ["dump", "--kernel", kernel["name"], f"--target={TARGETS[-1]}", "--codegen=llvm"]


def differences(first, second, arguments):
    """One line for each way in which the dumps differ."""
    expected = run([first, *arguments])
    if expected.returncode != 0 or b".version" not in expected.stdout:
        return [f"{' '.join(arguments)}: exit status {expected.returncode}, {expected.stderr.decode().strip()}"]
    others = {
        "a second process": run([first, *arguments]),
        "another environment": run([first, *arguments], BARE),
        "the clang++ build": run([second, *arguments]),
    }
    return [
        f"{' '.join(arguments)}: {name} prints other bytes"
        for name, other in others.items()
        if other.stdout != expected.stdout
    ]


def main():
    first, second = sys.argv[1:]
    todo = list(dumps(first))
    if not todo:
        sys.exit(f"{first} list --json names no kernel")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [line for lines in pool.map(lambda a: differences(first, second, a), todo) for line in lines]
    print("\n".join(found))
    print(f"{len(todo)} dumps, {len(found)} differences")
    sys.exit(1 if found else 0)


main()
