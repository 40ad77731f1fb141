"""Predicts by llvm-mca how long the inner loop of a decode row takes. A prediction is no result.

    predict.py KERNELS --llvm FOLDER [NAME]

KERNELS and FOLDER are those of gate.py; NAME is matmul_rows_q4_k_planes unless given. For each family it prints a row of
the table in docs/hip.md: the instructions of a round, those that the vector units take, the steps in which one wave does a
round alone, and how many weights a SIMD multiplies in a clock if enough waves keep its vector unit busy. llvm-mca knows
how long instructions take, and nothing of caches, of memory or of waves that share a SIMD.
"""
import argparse
import os
import re
import subprocess
import sys

import gate
import machine_code

ROUNDS = 100
# Of a family, the processor whose model stands for it, and the clocks of a step: the model of gfx9 counts in fours, which
# a wave of 64 lanes takes for a vector instruction.
MODELS = {"gfx90a": ("gfx90a", 4), "gfx9-4-generic": ("gfx942", 4), "gfx10-3-generic": ("gfx1030", 1),
          "gfx11-generic": ("gfx1100", 1), "gfx12-generic": ("gfx1200", 1)}


def simulate(tool, processor, loop):
    """The report of llvm-mca on a loop. Branches go to addresses, so they are left out."""
    text = "\n".join(line for line in loop if not line.startswith(("s_cbranch", "s_branch"))) + "\n"
    command = [tool, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={processor}", f"-iterations={ROUNDS}", "-instruction-info=0"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def vector_steps(report):
    """Steps of the vector unit a round: the column of that resource in the first table."""
    units = re.findall(r"^\[(\d+)\] +- (\w+)", report, re.M)
    pressure = report.split("Resource pressure per iteration:")[1].split("\n")[2].split()
    return float(dict(zip((name for _, name in units), pressure))["HWVALU"])


def predict(kernel, tool):
    processor, clocks = MODELS[kernel.target]
    loop = kernel.row_loop()
    report = simulate(tool, processor, loop)
    alone = int(re.search(r"Total Cycles: +(\d+)", report).group(1)) / ROUNDS * clocks
    vector = vector_steps(report) * clocks
    weights = 4 * len(machine_code.dots(loop)) * (64 if kernel.wide else 32)
    return processor, len(loop), vector, alone, weights / vector


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels")
    parser.add_argument("name", nargs="?", default="matmul_rows_q4_k_planes")
    parser.add_argument("--llvm", required=True)
    args = parser.parse_intermixed_args()
    tool = os.path.join(args.llvm, "llvm-mca")
    if not gate.tools_are_there(args.llvm) or not os.path.isfile(tool):
        print(f"skipped: there is no {tool}")
        return 77
    kernels = [kernel for kernel in gate.read_kernels(args.kernels, [args.name], args.llvm) if kernel.target in MODELS]
    for kernel in kernels:
        print("| %s | %d | %.0f | %.0f | %.1f |" % predict(kernel, tool))
    return 0 if kernels else 1


if __name__ == "__main__":
    sys.exit(main())
