"""The limits that docs/security.md states are those of the sources.

    documented_limits_test.py ROOT
"""
import os
import re
import sys

ROW = re.compile(r"^\| [^|]+ \| ([0-9,]+)( [KMG]iB)? \| `(\w+)` in `([^`]+)` \|$", re.M)
UNITS = {None: 1, " KiB": 1 << 10, " MiB": 1 << 20, " GiB": 1 << 30}


def constant(text, name):
    """The number that C++ gives `name`, or None."""
    found = re.search(rf"\b{name} = ([^;,]+)[;,]", text)
    if not found:
        return None
    expression = re.sub(r"uint\d+_t\(([^)]*)\)|(?<=\d)'(?=\d)|(?<=\d)(?:u|ull|U)\b", r"\1", found.group(1))
    return eval(expression) if re.fullmatch(r"[0-9x<< *+()-]+", expression) else None


def violations(root, page):
    rows = ROW.findall(page)
    if len(rows) < 20:
        yield f"{len(rows)} limits were found in the page"
    for number, unit, name, path in rows:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            value = constant(file.read(), name)
        stated = int(number.replace(",", "")) * UNITS[unit or None]
        if value != stated:
            yield f"docs/security.md says that {name} is {stated}, {path} says {value}"


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "docs/security.md"), encoding="utf-8") as file:
        page = file.read()
    planted = page.replace("| header of a file | 1 GiB |", "| header of a file | 2 GiB |")
    if len(list(violations(root, planted))) != len(list(violations(root, page))) + 1:
        sys.exit("the test does not see what was planted")
    found = list(violations(root, page))
    for violation in found:
        print(violation)
    sys.exit(1 if found else 0)


main()
