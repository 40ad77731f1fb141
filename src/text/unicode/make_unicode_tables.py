#!/usr/bin/env python3
"""Writes unicode_tables.inc, what unicode.cpp knows of all code points.

  make_unicode_tables.py > unicode_tables.inc

All of it is of one version of Unicode, 17.0.0: categories, White_Space, decompositions and lower case from
the module unicodedata2 17.0.0, the script Han from the module regex (pip install unicodedata2==17.0.0 regex).
"""
import sys

import regex
import unicodedata2 as unicodedata

UNICODE = "17.0.0"
# enum CharClass of unicode.h; White_Space is a class of its own, whatever the category.
CLASSES = {"C": 1, "Lu": 3, "Ll": 4, "Lt": 5, "Lm": 6, "Lo": 7, "M": 8, "Mn": 9, "Nd": 10, "Nl": 11, "N": 12,
           "Pc": 13, "P": 14, "S": 15, "Cn": 0}
SPACE = 2
SURROGATES = range(0xD800, 0xE000)
HANGUL = range(0xAC00, 0xD7A4)  # their decomposition is computed


def char_class(code):
    if code not in SURROGATES and regex.match(r"\p{White_Space}", chr(code)):
        return SPACE
    category = unicodedata.category(chr(code))
    return CLASSES.get(category, CLASSES.get(category[0]))


def runs(values):
    """(code, value) wherever the value changes."""
    last = None
    for code, value in values:
        if value != last:
            yield code, value
            last = value


def decomposed():
    """(code, base): the code points of the canonical decomposition but nonspacing marks, in order."""
    for code in range(0x110000):
        if code in SURROGATES or code in HANGUL:
            continue
        text = unicodedata.normalize("NFD", chr(code))
        if text != chr(code):
            bases = [each for each in text if unicodedata.category(each) != "Mn"]
            yield from ((code, ord(base)) for base in bases)


def lower():
    """(code, lower case) of one code point each: U+0130, the only one with two, gets the first. Python's own
    str.lower may be of an older Unicode; what it leaves, regex pairs."""
    small = "".join(chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Ll")
    for code in range(0x110000):
        category = unicodedata.category(chr(code))
        if category in ("Cs", "Cn"):
            continue
        to = chr(code).lower()[0]
        if category == "Lu" and to == chr(code):
            to = (regex.findall(to, small, regex.IGNORECASE) or [to])[0]
        if to != chr(code):
            yield code, ord(to)


def neighbours(codes):
    """Runs of codes that follow each other: first << 12 | how many. A code that repeats begins a new run."""
    found = []
    for code in codes:
        if found and code == found[-1][0] + found[-1][1]:
            found[-1][1] += 1
        else:
            found.append([code, 1])
    return [first << 12 | count for first, count in found]


def steps(starts):
    """(first code, class) as distance from the first code before << 4 | class."""
    last = 0
    for code, value in starts:
        yield (code - last) << 4 | value
        last = code


def case_runs(pairs):
    """(first, last, stride, delta) of codes at a fixed stride that change by the same amount."""
    found = []
    for code, to in pairs:
        if found:
            first, last, stride, delta = found[-1]
            step = code - last
            if to - code == delta and step <= 2 and (stride == step or first == last):
                found[-1] = (first, code, step, delta)
                continue
        found.append((code, code, 1, to - code))
    return [f"{{{', '.join(map(str, run))}}}" for run in found]


def write(name, what, entries, kind="uint32_t"):
    print(f"\n// {what}")
    print(f"constexpr {kind} {name}[{len(entries)}] = {{")
    line = "   "
    for entry in entries:
        text = f" {entry}," if isinstance(entry, str) else f" {entry:#x},"
        if len(line) + len(text) > 109:
            print(line)
            line = "   "
        line += text
    print(line)
    print("};")


def write_mapped(pairs, lower_pairs):
    """Writes decomposed forms and lower case, given as pairs (code, form)."""
    codes, forms = zip(*pairs)
    write("kDecomposedRuns", "Codes with a decomposed form, as runs: first << 12 | how many. A code has a place\n"
          "// for each code point of its form that is no nonspacing mark.", neighbours(codes))
    write("kDecomposedForms", "The form for each place, in the same order.", forms)
    write("kLowerRuns", "Lower case of one code point.", case_runs(lower_pairs), "CaseRun")


def main():
    if unicodedata.unidata_version != UNICODE:
        sys.exit(f"unicodedata2 is of Unicode {unicodedata.unidata_version}, expected {UNICODE}")
    print(f"// Written by make_unicode_tables.py from Unicode {UNICODE}. All sorted.")
    classes = runs((code, char_class(code)) for code in range(0x110000))
    write("kClassSteps", "Where classes begin: distance from the beginning before << 4 | class.",
          list(steps(classes)))
    han = runs((code, code not in SURROGATES and bool(regex.match(r"\p{Han}", chr(code))))
               for code in range(0x110000))
    write("kHanEdges", "Codes where the script Han begins and ends, in turn.", [code for code, _ in han][1:])
    write_mapped(list(decomposed()), list(lower()))


if __name__ == "__main__":
    main()
