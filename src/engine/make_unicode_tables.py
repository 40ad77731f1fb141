#!/usr/bin/env python3
"""Writes unicode_tables.inc, the classes of all code points for unicode.cpp.

  make_unicode_tables.py > unicode_tables.inc

Uses nothing but Python's own unicodedata; the file says which Unicode version that was.
Each entry is first_code << 4 | class and holds up to the next entry's code.
"""
import unicodedata

CLASSES = {"Lu": 1, "Ll": 2, "Lt": 3, "Lm": 4, "Lo": 5, "M": 6, "N": 7, "P": 8, "S": 9}


def char_class(code):
    category = unicodedata.category(chr(code))
    return CLASSES.get(category, CLASSES.get(category[0], 0))


def main():
    entries, last = [], None
    for code in range(0x110000):
        here = char_class(code)
        if here != last:
            entries.append(code << 4 | here)
            last = here
    print(f"// Written by make_unicode_tables.py from Unicode {unicodedata.unidata_version}: "
          "first code << 4 | class, sorted.")
    print(f"constexpr uint32_t kClassStarts[{len(entries)}] = {{")
    line = "   "
    for entry in entries:
        text = f" {entry:#x},"
        if len(line) + len(text) > 109:
            print(line)
            line = "   "
        line += text
    print(line)
    print("};")


if __name__ == "__main__":
    main()
