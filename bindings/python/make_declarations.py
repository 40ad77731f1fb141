"""Writes greta/_declarations.py, the declarations of greta.h for ctypes.

    make_declarations.py [--check]

With --check nothing is written: the script fails if the file is not what it would write. Only the forms of C that
greta.h has are read; any other one ends the script with the text that it does not know.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = os.path.join(HERE, "..", "..", "greta.h")
OUTPUT = os.path.join(HERE, "greta", "_declarations.py")

# The name in ctypes, and the type that reading a field of it gives.
SCALARS = {
    "int": ("c_int", "int"), "float": ("c_float", "float"), "double": ("c_double", "float"),
    "int32_t": ("c_int32", "int"), "uint32_t": ("c_uint32", "int"), "int64_t": ("c_int64", "int"),
    "uint64_t": ("c_uint64", "int"), "size_t": ("c_size_t", "int"), "char": ("c_char", "bytes"),
}
# The name of what says how long the text before it is.
LENGTHS = ("bytes", "capacity", "template_bytes", "context_bytes")
HEAD = '''"""What greta.h declares, for ctypes. make_declarations.py has written this file; do not edit it.

It is one file since greta.h is one, in whose order it stands; nobody reads or writes it by hand.
"""
# fmt: off
from __future__ import annotations

import enum
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64,
                    c_size_t, c_uint32, c_uint64, c_void_p)
from typing import Any

Text = bytes  # Some structs have a member of that name.
'''


class Header:
    """The declarations of a header, in its order."""

    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        self.constants = [(name, int(value)) for name, value in re.findall(r"#define (GRETA_\w+) (\d+)", text)]
        text = re.sub(r"^#.*$", "", text, flags=re.M).replace('extern "C" {', "")
        self.enums, self.structs, self.callbacks, self.functions = {}, {}, {}, {}
        self.order = []
        self.handles = set(re.findall(r"typedef struct (\w+) \1;", text))
        text = re.sub(r"typedef struct (\w+) \1;", "", text)
        text = re.sub(r"typedef (enum|struct) (\w+) \{(.*?)\} \2;", self.read_block, text, flags=re.S)
        text = re.sub(r"typedef (\w+) \(\*(\w+)\)\(([^)]*)\);", self.read_callback, text)
        text = re.sub(r"GRETA_API\s+(.*?)(\w+)\(((?:[^()]|\([^()]*\))*)\);", self.read_function, text, flags=re.S)
        rest = text.replace("}", "").split()
        if rest:
            raise SystemExit(f"greta.h has a form that is not known here: {' '.join(rest)[:200]}")
        self.order.sort()

    def read_block(self, found):
        kind, name, body = found.groups()
        if kind == "enum":
            values = [each.split("=") for each in body.split(",") if each.strip()]
            self.enums[name] = [(key.strip(), int(value, 0)) for key, value in values]
        else:
            self.structs[name] = members(body, ";")
        self.order.append((found.start(), "enums" if kind == "enum" else "structs", name))
        return " " * len(found.group())

    def read_callback(self, found):
        result, name, parameters = found.groups()
        self.callbacks[name] = (result, members(parameters, ","))
        self.order.append((found.start(), "callbacks", name))
        return " " * len(found.group())

    def read_function(self, found):
        result, name, parameters = found.groups()
        self.functions[name] = (" ".join(result.split()), members(parameters, ","))
        return " "

    def ctype(self, type_, follower=""):
        """The name in ctypes of a type in C. `follower` is the name of what comes behind a member."""
        if isinstance(type_, tuple):
            result, parameters = type_
            return f"CFUNCTYPE({', '.join([self.ctype(result), *self.parameters(parameters)])})"
        plain = type_.replace("const ", "").replace(" const", "").strip()
        if plain == "void":
            return "None"
        if plain == "char*":  # A text with a length may hold a NUL.
            return "c_void_p" if follower in LENGTHS else "c_char_p"
        if plain.endswith("*"):
            inner = plain[:-1].strip()
            if inner == "void" or inner in self.handles:
                return "c_void_p"
            return f"POINTER({self.ctype(inner)})"
        if plain in SCALARS:
            return SCALARS[plain][0]
        if plain in self.enums:
            return "c_int" if min(value for _, value in self.enums[plain]) < 0 else "c_uint32"
        if plain in self.structs or plain in self.callbacks:
            return plain
        raise SystemExit(f"greta.h has a type that is not known here: {type_}")

    def parameters(self, parameters):
        names = [name for _, name, _ in parameters[1:]] + [""]
        return [self.ctype(type_, follower) for (type_, _, _), follower in zip(parameters, names)]

    def fields(self, name):
        """Name, type in ctypes, and type in Python of each member of a struct."""
        body = self.structs[name]
        followers = [name for _, name, _ in body[1:]] + [""]
        for (type_, field, length), follower in zip(body, followers):
            ctype = self.ctype(type_, follower)
            python = {"c_char_p": "Text | None", "c_void_p": "int | None"}.get(ctype, "Any")
            if ctype.startswith("c_") and python == "Any":
                python = "float" if ctype in ("c_float", "c_double") else "int"
            if length:
                python, ctype = ("Text" if ctype == "c_char" else "Any"), f"{ctype} * {length}"
            yield field, ctype, python


def members(body, separator):
    """(type, name, length of the array) of each member or parameter; a function's type is (result, members)."""
    found = []
    for each in re.split(rf"{separator}(?![^()]*\))", body):
        each = " ".join(each.split())
        if not each or each == "void":
            continue
        function = re.fullmatch(r"(\w+\*?) ?\(\*(\w+)\)\((.*)\)", each)
        if function:
            found.append(((function[1].replace("void*", "void *"), members(function[3], ",")), function[2], ""))
            continue
        first, *more = each.split(",")  # A struct's line may declare several members.
        match = re.fullmatch(r"(.*?[\s*])(\w+)(?:\[(\w+)\])?", first)
        if not match:
            raise SystemExit(f"greta.h has a member that is not known here: {each}")
        base = re.sub(r"\s*\*", "*", match[1].strip())
        found.append((base, match[2], match[3] or ""))
        for part in more:  # In `char *a, *b` the star belongs to each name.
            star, name = re.fullmatch(r"\s*(\*?)(\w+)", part).groups()
            found.append((base.rstrip("*") + star, name, ""))
    return found


def enum_class(name, values):
    yield f"class {name}(enum.IntEnum):"
    yield from (f"    {key} = {value}" for key, value in values)


def struct_class(header, name):
    fields = list(header.fields(name))
    yield f"class {name}(Structure):"
    yield from (f"    {field}: {python}" for field, _, python in fields)
    yield "    _fields_ = ["
    yield from (f'        ("{field}", {ctype}),' for field, ctype, _ in fields)
    yield "    ]"


def text_of(header):
    lines = [HEAD]
    lines += [f"{name} = {value}" for name, value in header.constants]
    for _, kind, name in header.order:
        if kind == "callbacks":
            result, parameters = header.callbacks[name]
            lines += ["", f"{name} = CFUNCTYPE({', '.join([header.ctype(result), *header.parameters(parameters)])})"]
            continue
        lines += ["", ""]
        lines += enum_class(name, header.enums[name]) if kind == "enums" else struct_class(header, name)
    lines += ["", "", "# The type of the result, and those of the parameters.", "FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {"]
    for name, (result, parameters) in header.functions.items():
        types = "".join(f"{each}, " for each in header.parameters(parameters)).rstrip()
        lines.append(f'    "{name}": ({header.ctype(result)}, ({types})),')
    lines += ["}", "ENUMS: tuple[Any, ...] = (" + "".join(f"\n    {name}," for name in header.enums) + "\n)"]
    lines += ["STRUCTS: tuple[Any, ...] = (" + "".join(f"\n    {name}," for name in header.structs) + "\n)"]
    return "\n".join(lines) + "\n"


def main():
    with open(HEADER, encoding="utf-8") as file:
        text = text_of(Header(file.read()))
    if "--check" in sys.argv[1:]:
        with open(OUTPUT, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit("greta/_declarations.py is not what greta.h declares: run bindings/python/make_declarations.py")
        return
    with open(OUTPUT, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
