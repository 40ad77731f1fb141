"""Finds where tensor types are named and refuses every place but a type's own files and its rows.

    types_test.py ROOT

A type is a row of src/compute/quant_types.def and files that carry its name: <type>.h, <type>_<layout>.h and
<type>.cpp, in kernels/ and src/selftest/quant/. The build finds out from these which kernels the type has, so
a new type changes no file that is there. IQ4_NL, which is no test's example, stands nowhere else at all,
comments included. The code of the library names no other type with blocks either, but
Q8_0, which is a type of the KV cache too.
"""
import os
import re
import sys

TYPE = "iq4_nl"
TABLE = "src/compute/quant_types.def"
ROWS = {TABLE: 1, "src/engine/model/file_types.def": 1, "src/compute/group_types.def": 0}  # and how many lines of each
# The codebook that several types share and the program that makes it; measures of compiled kernels; prose.
FREE = ("kernels/tables/", "tests/radv/baseline/", "tests/hip/baseline/", "tests/cpu/baseline/", ".ci/whole/", "docs/")
CODE = ("backends/", "cmake/", "kernels/", "models/", "src/")
SKIPPED = ("build", "__pycache__")


def files(root):
    """Paths of all sources below ROOT, without hidden folders other than .ci and without build folders."""
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith(SKIPPED) and (f[0] != "." or f == ".ci")]
        for name in sorted(names):
            full = os.path.join(folder, name)
            if os.path.isfile(full) and full != os.path.abspath(__file__):
                yield os.path.relpath(full, root).replace(os.sep, "/"), full


def refused(path, lines, types):
    """The lines of the file at `path` that name one of `types` and may not, as (number, line, type)."""
    if path.startswith(FREE):
        return []
    found = []
    for number, line in enumerate(lines, 1):
        for match in re.finditer(r"(?<![a-z0-9])(?=(%s)(?![a-z0-9]))" % "|".join(types), line.lower()):
            own = rf"(kernels/(cpu|gpu|vulkan|hip)/.+|src/selftest/quant)/{match[1]}(_packed|_planes)?\.(h|cpp)"
            comment = ("#" if path.startswith("cmake/") else "//") in line[: match.start()]
            may = match[1] != TYPE and (comment or path in ROWS or not path.startswith(CODE))
            if not may and not re.fullmatch(own, path):
                found.append((number, line.strip(), match[1]))
    return found[ROWS.get(path, 0) :]


# Planted once and for all: each must be refused, or this test is blind.
PLANTED = [
    ("kernels/vulkan/gemm/weights.h", ["#elif defined(WEIGHT_iq4_nl)"]),
    ("kernels/cpu/CMakeLists.txt", ["set(of_less q4_0 iq4_nl mxfp4)"]),
    ("kernels/abi/quant_planes.def", ["QUANT_PLANES(iq4_nl, 2, 16, 0, 2, 0, 0, 0, 0, 0, 0)"]),
    ("kernels/cpu/quant/iq4_xs.h", ["// The values are those of IQ4_NL."]),
    ("src/compute/quant_types.def", ["QUANT_TYPE(iq4_nl, 20, 32, 18)", "QUANT_TYPE(iq4_nl, 21, 32, 18)"]),
    ("src/compute/op.cpp", ["if (type == QuantType::q5_1) return 16;"]),
    ("tests/ops/matmul_test.cpp", ['rig.only("matmul_rows_iq4_nl_planes");']),
]


def main():
    root = os.path.abspath(sys.argv[1])
    with open(os.path.join(root, TABLE), encoding="utf-8") as table:
        rows = re.findall(r"^QUANT_TYPE\((\w+), \d+, (\d+),", table.read(), re.MULTILINE)
    types = [name for name, block in rows if block != "1" and name != "q8_0"]
    blind = [path for path, lines in PLANTED if not refused(path, lines, types)]
    for path in blind:
        print(f"the test does not see what is planted in {path}")
    wrong = 0
    for path, full in files(root):
        with open(full, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        for number, line, name in refused(path, lines, types):
            print(f"{path}:{number}: {line}\n    names {name}: a type is its own files and its row")
            wrong += 1
    if blind or wrong:
        sys.exit(1)
    print(f"{len(types)} types stand in their own files and rows")


main()
