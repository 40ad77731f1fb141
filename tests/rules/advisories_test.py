"""Known advisories against programs that read models are rows of tests.

    advisories_test.py ROOT

tests/rules/advisories.tsv lists them: the id, "row" or "none", and one line of words. Each with "row" is named in a test;
one with "none" is not, and its line says why. No test names an advisory that the list does not have.
"""
import os
import re
import sys

ID = re.compile(r"\b(?:CVE-\d{4}-\d+|llama\.cpp#\d+|lmstudio#\d+)\b")


def read_list(path):
    rows = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(list(file)[1:], 2):
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 3 or not ID.fullmatch(fields[0]) or fields[1] not in ("row", "none") or len(fields[2]) < 20:
                sys.exit(f"{path}:{number}: expected an id, row or none, and a line of words")
            if fields[0] in rows:
                sys.exit(f"{path}:{number}: {fields[0]} is there twice")
            rows[fields[0]] = fields[1]
    return rows


def named_in_tests(root):
    named = {}
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        for name in names:
            if name.endswith("_test.cpp"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    for match in ID.finditer(file.read()):
                        named.setdefault(match.group(), os.path.relpath(path, root))
    return named


def violations(rows, named):
    for advisory, how in rows.items():
        if how == "row" and advisory not in named:
            yield f"{advisory}: no test names it"
        if how == "none" and advisory in named:
            yield f"{advisory}: {named[advisory]} names it, but the list says that it has no row"
    for advisory, path in named.items():
        if advisory not in rows:
            yield f"{advisory}: {path} names it, but the list does not have it"


def main():
    rows = read_list(os.path.join(sys.argv[1], "tests/rules/advisories.tsv"))
    named = named_in_tests(sys.argv[1])
    planted = list(violations({"CVE-2000-1": "row", "CVE-2000-2": "none"}, {"CVE-2000-2": "a", "CVE-2000-3": "b"}))
    if len(planted) != 3:
        sys.exit("the test does not see what was planted")
    found = list(violations(rows, named))
    for violation in found:
        print(violation)
    if found:
        sys.exit(1)
    print(f"{sum(how == 'row' for how in rows.values())} of {len(rows)} advisories are rows of tests")


main()
