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


def choices_of(kernel):
    """The defaults, and each value of an enumerated parameter, alone and beside each value of another one; of a kernel
    for several matrices, with a second one."""
    values = [
        [f"{parameter['option']}={value}" for value in parameter["values"]]
        for parameter in kernel["parameters"]
        if parameter.get("values")
    ]
    second = ["--n-b=4096"] if any(parameter["name"] == "n_b" for parameter in kernel["parameters"]) else []
    yield [[]]
    for i, own in enumerate(values):
        others = [value for other in values[:i] + values[i + 1 :] for value in other]
        yield from ([[*second, value], *([*second, value, other] for other in others)] for value in own)


def dumped(program, kernel):
    """The arguments with which `ptxgen dump` prints a kernel, also through LLVM, for each target that has what it needs.
    A value that needs another beside it gets it; what is refused with all is left out (tests/kernels/targets_test.cc
    knows which those are)."""
    dump = ["dump", "--kernel", kernel["name"]]
    accepted = [[*dump, f"--target={TARGETS[-1]}", "--codegen=llvm"]]
    for attempts in choices_of(kernel):
        for options in attempts:
            found = [[*dump, *options, f"--target={target}"] for target in TARGETS]
            found = [arguments for arguments in found if b".version" in run([program, *arguments]).stdout]
            accepted += found
            if found:
                break
    return accepted


def differences(first, second, arguments):
    """One line for each way in which the dumps differ."""
    expected = run([first, *arguments])
    if expected.returncode != 0 or b".version" not in expected.stdout:
        return [f"{' '.join(arguments)}: exit status {expected.returncode}, {expected.stderr.decode().strip()}"]
    others = {
        "a second process, in another environment,": run([first, *arguments], BARE),
        "the clang++ build": run([second, *arguments]),
    }
    return [
        f"{' '.join(arguments)}: {name} prints other bytes"
        for name, other in others.items()
        if other.stdout != expected.stdout
    ]


def main():
    first, second = sys.argv[1:]
    kernels = json.loads(run([first, "list", "--json"]).stdout)["kernels"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        todo = [arguments for some in pool.map(lambda kernel: dumped(first, kernel), kernels) for arguments in some]
        found = [line for lines in pool.map(lambda a: differences(first, second, a), todo) for line in lines]
    if len(todo) < 2 * len(kernels):  # at least its defaults, by both code generators
        found.append(f"{first} lists {len(kernels)} kernels, and dumps {len(todo)}")
    print("\n".join(found))
    print(f"{len(todo)} dumps, {len(found)} differences")
    sys.exit(1 if found else 0)


main()
