"""The declarations for ctypes are what a C compiler makes of greta.h.

    declarations_test.py ROOT COMPILER
"""
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, COMPILER = sys.argv[1:3]
sys.path.insert(0, os.path.join(ROOT, "bindings", "python", "greta"))
import _declarations as c  # noqa: E402  without the package, which would load the library


def said_by_compiler():
    """Name and value of each size, offset, size of a field, and constant, as C has them."""
    lines = [f'P("sizeof {struct.__name__}", sizeof({struct.__name__}))' for struct in c.STRUCTS]
    for struct in c.STRUCTS:
        for field in struct._fields_:
            name = f"{struct.__name__}.{field[0]}"
            lines.append(f'P("{name}", offsetof({struct.__name__}, {field[0]}))')
            lines.append(f'P("sizeof {name}", sizeof((({struct.__name__}*)0)->{field[0]}))')
    lines += [f'P("{value.name}", {value.name})' for enum in c.ENUMS for value in enum]
    lines += [f'P("sizeof {enum.__name__}", sizeof({enum.__name__}))' for enum in c.ENUMS]
    lines.append('P("GRETA_VERSION", GRETA_VERSION)')
    program = ('#include <stddef.h>\n#include <stdio.h>\n#include "greta.h"\n'
               '#define P(name, value) printf("%s=%lld\\n", name, (long long)(value));\n'
               "int main(void) {\n" + "\n".join(lines) + "\nreturn 0; }\n")
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "sizes.c"), os.path.join(folder, "sizes")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program)
        subprocess.run([COMPILER, "-std=c99", "-I", ROOT, source, "-o", binary], check=True)
        text = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    return dict((name, int(value)) for name, value in (line.split("=") for line in text.splitlines()))


class Declarations(unittest.TestCase):
    def test_sizes_offsets_and_values(self):
        mine = {f"sizeof {struct.__name__}": ctypes.sizeof(struct) for struct in c.STRUCTS}
        for struct in c.STRUCTS:
            for field in struct._fields_:
                name, descriptor = f"{struct.__name__}.{field[0]}", getattr(struct, field[0])
                mine[name], mine[f"sizeof {name}"] = descriptor.offset, descriptor.size
        mine |= {value.name: value.value for enum in c.ENUMS for value in enum}
        mine |= {f"sizeof {enum.__name__}": 4 for enum in c.ENUMS}
        mine["GRETA_VERSION"] = c.GRETA_VERSION
        self.assertGreater(len(mine), 900)
        self.assertEqual(mine, said_by_compiler())

    def test_all_of_the_header_is_declared(self):
        with open(os.path.join(ROOT, "greta.h"), encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        self.assertEqual(set(re.findall(r"\b(greta_\w+)\((?!\*)", text)), set(c.FUNCTIONS))
        self.assertEqual(set(re.findall(r"\} (greta_\w+);", text)), {each.__name__ for each in c.STRUCTS + c.ENUMS})
        for name, (_, parameters) in c.FUNCTIONS.items():
            found = re.search(rf"\b{name}\(((?:[^()]|\([^()]*\))*)\);", text)
            inner = re.sub(r"\(\*\w+\)\([^()]*\)", "f", found[1])
            self.assertEqual(len(parameters), 0 if inner.strip() == "void" else inner.count(",") + 1, name)

    def test_the_script_writes_what_is_committed(self):
        script = os.path.join(ROOT, "bindings", "python", "make_declarations.py")
        done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
