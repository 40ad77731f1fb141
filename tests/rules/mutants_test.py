"""The list of planted mistakes says what it has found, and is up to date with the documentation.

    mutants_test.py ROOT

Each row of tests/mutants/list.tsv has a source that is there, and one of the results. There are LEAST of them, and at most
one in TEN of those that are not equal survives. CONTRIBUTING.md says how many there are, and how many of them were found, are
equal and survive.
"""
import collections
import os
import re
import sys

LEAST, TEN = 200, 10
SAID = re.compile(r"Of (\d+) in\s+`tests/mutants/list\.tsv` (\d+) were found, (\d+) change nothing\s+that can be seen, and (\d+)\s+survive")


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]


def main(root):
    counts, wrong = collections.Counter(), []
    for row in rows_of(os.path.join(root, "tests/mutants/list.tsv")):
        if len(row) != 6 or row[4] not in ("found", "survived", "equal"):
            wrong.append(f"{row}: expected a path, a line, a change, a text, a result and a test")
            continue
        counts[row[4]] += 1
        if not os.path.exists(os.path.join(root, row[0])):
            wrong.append(f"{row[0]} is not there")
    if sum(counts.values()) < LEAST:
        wrong.append(f"{sum(counts.values())} planted mistakes, expected {LEAST}")
    if counts["survived"] * TEN > counts["found"] + counts["survived"]:
        wrong.append(f"{counts['survived']} survive of {counts['found'] + counts['survived']} that are not equal")
    with open(os.path.join(root, "CONTRIBUTING.md"), encoding="utf-8") as file:
        said = SAID.search(file.read())
    expected = [sum(counts.values()), counts["found"], counts["equal"], counts["survived"]]
    if not said or [int(n) for n in said.groups()] != expected:
        wrong.append(f"CONTRIBUTING.md does not say that of {expected[0]} {expected[1]} were found, {expected[2]} change nothing, "
                     f"and {expected[3]} survive")
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
