"""Every function of ours that docs/parity.md names is one of greta_compute.h, and every operation there is in the page.

    parity_test.py ROOT
"""
import os
import re
import sys


def wrong(page, header):
    """Yields what does not agree."""
    functions = set(re.findall(r"^GRETA_API .*[ *](greta_[a-z0-9_]*)\(", header, re.M))
    named = set(re.findall(r"`(greta_[a-z0-9_]+)`", page))
    if len(functions) < 20 or len(named) < 20:
        yield f"{len(functions)} functions and {len(named)} names were found"
    for name in sorted(named - functions):
        yield f"{name} is in the page and not in the header"
    operations = {name for name in functions if f"{name}_check" in functions}
    for name in sorted(operations - named):
        yield f"{name} is an operation and not in the page"


def main():
    root = sys.argv[1]
    texts = []
    for path in ("docs/parity.md", "greta_compute.h"):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            texts.append(file.read())
    page, header = texts
    for planted in (page + "`greta_gone`", page.replace("`greta_softcap`", "")):
        if len(list(wrong(planted, header))) != len(list(wrong(page, header))) + 1:
            sys.exit("the test does not see what was planted")
    found = list(wrong(page, header))
    for each in found:
        print(each)
    sys.exit(1 if found else 0)


main()
