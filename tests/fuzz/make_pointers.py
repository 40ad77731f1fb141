"""Writes where the structs of C headers hold pointers, as a header of C++.

    make_pointers.py OUTPUT HEADER...

`greta::fuzz::kPointers<Struct>` gives the offset in bytes of each member that is a pointer, of functions too. What
changes the numbers of a struct leaves those alone. A struct without pointers has an empty list.
"""
import os
import re
import sys


def pointers(body, callbacks):
    """The names of those members of a struct that are pointers. `callbacks` are the types of functions."""
    for member in map(str.strip, body.split(";")):
        function = re.search(r"\(\*(\w+)\)\(", member)
        callback = re.fullmatch(r"(\w+) (\w+)", member)
        if function:
            yield function[1]
        elif callback and callback[1] in callbacks:
            yield callback[2]
        else:
            yield from re.findall(r"\*\s*(\w+)\s*(?=,|$)", member)


def main(output, headers):
    lines = ["// make_pointers.py has written this file.", "#pragma once", "#include <array>", "#include <cstddef>",
             *(f'#include "{os.path.basename(header)}"' for header in headers), "", "namespace greta::fuzz {", "",
             "template <class Struct>", "inline constexpr std::array<size_t, 0> kPointers{};"]
    for header in headers:
        with open(header, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        callbacks = re.findall(r"typedef \w+\*? \(\*(\w+)\)\(", text)
        for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, flags=re.S):
            found = [f"offsetof({name}, {member})" for member in pointers(body, callbacks)]
            if found:
                lines += ["template <>", f"inline constexpr std::array kPointers<{name}>{{{', '.join(found)}}};"]
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join([*lines, "", "}  // namespace greta::fuzz", ""]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
