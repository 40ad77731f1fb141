"""Predicts how long the inner loops of products take: those of decode rows by llvm-mca, those of tiles by count. A
prediction is no result.

    predict.py KERNELS --llvm FOLDER [NAME...]

KERNELS and FOLDER are those of gate.py; NAME is a kernel matmul_rows_*, matmul_tiles_mfma_* or matmul_wide_mfma_*. For
each target it prints a row of a table in docs/hip.md.

Of a row these are the instructions of a round, those that the vector units take, the steps in which one wave does a round
alone, and how many weights a SIMD multiplies in a clock if enough waves keep its vector unit busy. llvm-mca knows how long
instructions take, and nothing of caches, of memory or of waves that share a SIMD.

Of a tile these are the instructions of a wave in a step of 64 columns: matrix, vector, loads and stores of shared memory,
others. Then clocks that the step takes of a unit with as many groups as fit on it: of the matrix units, of vector issue, of
shared memory, of memory. Then shares of the peak, in percent: if all of these overlap, and if nothing does but the SIMDs;
and the part of the units that has a tile, on the average (ROWS x TOKENS).
"""
import argparse
import dataclasses
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


@dataclasses.dataclass(frozen=True)
class Device:
    """What stands for a target: by AMD's data sheets, and the clocks of a matrix instruction by LLVM's model."""
    name: str
    units: int
    ghz: float
    terabytes: float  # a second, of memory
    dies: int  # with a cache each
    loads: int  # bytes of shared memory a clock
    product: int  # clocks of a matrix instruction


DEVICES = {"gfx90a": Device("MI250X, one die", 110, 1.7, 1.6, 1, 128, 32),
           "gfx9-4-generic": Device("MI300X", 304, 2.1, 5.3, 8, 128, 16),
           "gfx950": Device("MI350X", 256, 2.2, 8.0, 8, 256, 16)}
# Rows and tokens of a tile, waves of a group, groups on a unit, and whether nobody multiplies while the group stores.
TILES = {"matmul_tiles_mfma": (128, 4, 2, False), "matmul_wide_mfma": (256, 8, 1, True)}
BITS = {"q4_k": 4.5, "q6_k": 6.5625, "q8_0": 8.5, "q4_0": 4.5, "f16": 16}  # of a weight
ROWS, TOKENS = 28672, 512
SIMDS, STEP, VECTOR_CLOCKS, STORES = 4, 64, 4, 128  # of a unit; columns; of an instruction of 64 lanes; bytes a clock
KINDS = {"matrix": ("v_mfma",), "vector": ("v_",), "loads": ("ds_read",), "stores": ("ds_write",), "others": ("",)}


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


def store_conflicts(tiles):
    """Clocks of a phase of stores of 16 bytes, counted for Q4_K (lds_banks.py)."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "baseline", "lds_banks.tsv"), encoding="utf-8") as file:
        rows = [line.split() for line in file]
    return next(float(clocks) for name, *access, clocks in rows
                if name == f"{tiles}_q4_k_planes" and access == ["stores", "16"])


def count_kinds(loop):
    """How many instructions of a loop are of each kind: of the first that fits."""
    kinds = [next(kind for kind, begins in KINDS.items() if text.startswith(begins)) for text in loop]
    return {kind: kinds.count(kind) for kind in KINDS}


def memory_clocks(tile, bits, device):
    """Clocks of a unit's part of the bandwidth for a tile's step. The tiles of a die share their blocks of weights and x
    (make_launch), so each block of weights is read once, and each of x once for each die."""
    weights, x = tile * STEP * bits / 8 * tile / TOKENS, tile * STEP * 2 * min(1, device.dies * tile / ROWS)
    return (weights + x) / (device.terabytes * 1e3 / (device.units * device.ghz))


def predict_tile(kernel):
    """The columns of a tile's row."""
    tiles = next(name for name in TILES if kernel.name.startswith(name))
    (tile, waves, groups, turns), device = TILES[tiles], DEVICES[kernel.target]
    kinds = count_kinds(kernel.tile_step())
    of_simd = waves * groups / SIMDS
    matrix = of_simd * kinds["matrix"] * device.product
    vector = of_simd * (kinds["matrix"] + kinds["vector"]) * VECTOR_CLOCKS
    access = waves * groups * 64 * 16  # bytes of an instruction, of all waves
    loads, stores = kinds["loads"] * access / device.loads, kinds["stores"] * access / STORES * store_conflicts(tiles)
    memory = groups * memory_clocks(tile, BITS[kernel.name[len(tiles) + 1:].removesuffix("_planes")], device)
    together = max(matrix + (stores if turns else 0), vector, loads + stores, memory)
    apart = matrix + of_simd * kinds["vector"] * VECTOR_CLOCKS + loads + stores + memory
    made = ROWS // tile * TOKENS // tile
    busy = made / (-(-made // device.units) * device.units)
    return (device.name, f"{tile} x {tile}", *kinds.values(), matrix, vector, loads + stores, memory,
            100 * matrix / together, 100 * matrix / apart, busy)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels")
    parser.add_argument("names", nargs="*", default=[f"{name}_q4_k_planes" for name in ("matmul_rows", *TILES)])
    parser.add_argument("--llvm", required=True)
    args = parser.parse_intermixed_args()
    tool = os.path.join(args.llvm, "llvm-mca")
    if not gate.tools_are_there(args.llvm) or not os.path.isfile(tool):
        print(f"skipped: there is no {tool}")
        return 77
    kernels = [kernel for kernel in gate.read_kernels(args.kernels, args.names, args.llvm)
               if kernel.target in (DEVICES if kernel.name.startswith(tuple(TILES)) else MODELS)]
    for kernel in kernels:
        if kernel.name.startswith(tuple(TILES)):
            print("| %s | %s | %d, %d, %d, %d, %d | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.2f |" % predict_tile(kernel))
        else:
            print("| %s | %d | %.0f | %.0f | %.1f |" % predict(kernel, tool))
    return 0 if kernels else 1


if __name__ == "__main__":
    sys.exit(main())
