"""Writes the codebooks of the IQ tensor types as plain numbers, for any language's initialiser:

    make_iq_tables.py [FOLDER]      (FOLDER: default this one)

They are constants of the file format. Source: the `gguf` Python package (MIT licence), quants.py, which
has them from ggml (MIT licence). A grid is a list of points; a point of IQ1 and IQ2 is 8 values of 2
bits, of IQ3 4 values of 3 bits, the first value lowest. Which number a value stands for:
    iq1          value - 1
    iq2          8, 25, 43
    iq3_xxs      4 + 8 * value, but 62 for 7
    iq3_s        1 + 2 * value
"""
import os
import sys

from gguf import quants

GRIDS = {"iq1": quants.IQ1_S, "iq2_xxs": quants.IQ2_XXS, "iq2_xs": quants.IQ2_XS, "iq2_s": quants.IQ2_S,
         "iq3_xxs": quants.IQ3_XXS, "iq3_s": quants.IQ3_S}
VALUES = {"iq4": quants.IQ4_NL.kvalues, "e2m1": quants.MXFP4.kvalues}
VALUES_ARE = {
    "iq4": "The numbers that the 4 bits of IQ4_NL and IQ4_XS stand for.",
    "e2m1": "The 16 values of a 4-bit float (2 bits of exponent, 1 of mantissa), doubled: MXFP4 and NVFP4.",
}


def points(quant):
    """Each point of the grid as one number."""
    quant.init_grid()
    bits = 2 if len(quant.grid_map) < 8 else 3
    index = {float(value): i for i, value in enumerate(quant.grid_map)}
    grid = quant.grid.reshape(quant.grid_shape)
    return [sum(index[float(value)] << (bits * i) for i, value in enumerate(point)) for point in grid]


def write(folder, name, comment, lines):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(f"// {comment}\n")
        file.write("// Made by make_iq_tables.py, which says what they are and where they come from.\n")
        file.writelines(line + "\n" for line in lines)


def lines_of(numbers, form, columns):
    return [", ".join(form % number for number in numbers[i:i + columns]) for i in range(0, len(numbers), columns)]


def grid_lines(numbers):
    """Eight points at a time, which a kernel may take as one constant: it defines POINTS first."""
    return (["#ifndef POINTS", "#define POINTS(...) __VA_ARGS__", "#endif"] +
            [f"POINTS({line})," for line in lines_of(numbers, "0x%04x", 8)] + ["#undef POINTS"])


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for name, quant in GRIDS.items():
        count, values = quant.grid_shape
        write(folder, f"{name}_grid.inc", f"The grid of {name.upper()}: {count} points of {values} values.",
              grid_lines(points(quant)))
    for name, values in VALUES.items():
        write(folder, f"{name}_values.inc", VALUES_ARE[name],
              [line + "," for line in lines_of(values, "%d", 16)])


main()
