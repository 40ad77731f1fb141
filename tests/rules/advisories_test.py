"""Known advisories against programs that read models are rows of tests.

    advisories_test.py ROOT

tests/rules/advisories.tsv lists them: the id, the test that holds it or "none", and one line of words. A test is the path of
a file and its title, "tests/a_test.cpp: what holds" or "tests/a_test.py: test_what_holds". The file names the advisory, and
has that test. No test names an advisory that the list does not give to its file or to another one; one with "none" is named
nowhere, and its line says why.
"""
import os
import re
import sys

ID = re.compile(r"\b(?:CVE-\d{4}-\d+|llama\.cpp#\d+|lmstudio#\d+)\b")
TEST = re.compile(r"(tests/[\w/]+_test\.(?:cpp|py)): (\S.*)")
TITLE = re.compile(r'^TEST_CASE\("((?:[^"\\]|\\.)*)"|^ +def (test_\w+)\(', re.MULTILINE)


def read_list(path):
    rows = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(list(file)[1:], 2):
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 3 or not ID.fullmatch(fields[0]) or len(fields[2]) < 20:
                sys.exit(f"{path}:{number}: expected an id, a test or none, and a line of words")
            test = TEST.fullmatch(fields[1])
            if not test and fields[1] != "none":
                sys.exit(f"{path}:{number}: expected the path of a test's file and its title, or none")
            if fields[0] in rows:
                sys.exit(f"{path}:{number}: {fields[0]} is there twice")
            rows[fields[0]] = test.groups() if test else None
    return rows


def read_tests(root):
    """Of each file of tests the advisories that it names and the titles of its tests."""
    tests = {}
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith(("_test.cpp", "_test.py")) and path != "tests/rules/advisories_test.py":
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    text = file.read()
                tests[path] = set(ID.findall(text)), {a or b for a, b in TITLE.findall(text)}
    return tests


def violations(rows, tests):
    for advisory, test in rows.items():
        if not test:
            for path, (named, _) in tests.items():
                if advisory in named:
                    yield f"{advisory}: {path} names it, but the list says that no test holds it"
            continue
        path, title = test
        named, titles = tests.get(path, (set(), set()))
        if title not in titles:
            yield f"{advisory}: there is no test '{title}' in {path}"
        elif advisory not in named:
            yield f"{advisory}: {path} does not name it"
    for path, (named, _) in tests.items():
        for advisory in named - set(rows):
            yield f"{advisory}: {path} names it, but the list does not have it"


def planted():
    rows = {"CVE-2000-1": ("a", "x"), "CVE-2000-2": None, "CVE-2000-3": ("a", "y"), "CVE-2000-4": ("b", "x")}
    tests = {"a": ({"CVE-2000-2", "CVE-2000-5", "CVE-2000-3"}, {"x"})}
    return list(violations(rows, tests))


def main():
    if len(planted()) != 5:
        sys.exit("the test does not see what was planted")
    rows = read_list(os.path.join(sys.argv[1], "tests/rules/advisories.tsv"))
    found = list(violations(rows, read_tests(sys.argv[1])))
    for violation in found:
        print(violation)
    if found:
        sys.exit(1)
    print(f"tests hold {sum(test is not None for test in rows.values())} of {len(rows)} advisories")


main()
