"""Refuses files of more than 500 lines, and tables that were generated but are not named here.

    limits_test.py ROOT
"""
import os
import sys
import tempfile

LINES = 500
SOURCES = (".h", ".hpp", ".cpp", ".c", ".py", ".cmake", ".txt", ".hip", ".comp", ".glsl", ".sh", ".def", ".inc")
FOLDERS = ["src", "backends", "kernels", "models", "tools", "tests", "bindings", "bench", "cmake", ".ci", ""]
SKIPPED = ("tests/data", "tests/fuzz/corpus")  # inputs, not sources

# Generated tables may be longer; each is named, with what makes it.
GENERATED = {
    "src/text/unicode/unicode_tables.inc": "made by src/text/unicode/make_unicode_tables.py from the Unicode database",
}

WHOLE = {"greta.h": "the public interface is one header"}


def sources(root):
    for top in FOLDERS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            if top == "":
                folders.clear()  # the files at the top alone
            for file in sorted(names):
                path = os.path.relpath(os.path.join(folder, file), root).replace(os.sep, "/")
                if file.endswith(SOURCES) or top == ".ci":
                    if not path.startswith(SKIPPED):
                        yield path


def violations(root):
    for path in sources(root):
        with open(os.path.join(root, path), "rb") as file:
            count = sum(1 for _ in file)
        if count > LINES and path not in GENERATED and path not in WHOLE:
            yield f"{path}: {count} lines, at most {LINES} are allowed"


def main():
    root = sys.argv[1]
    with tempfile.TemporaryDirectory() as planted:
        os.makedirs(os.path.join(planted, "src/text/unicode"))
        for name, count in (("long.cpp", LINES + 1), ("fits.cpp", LINES), ("unicode_tables.inc", 9 * LINES)):
            with open(os.path.join(planted, "src/text/unicode", name), "w", encoding="utf-8") as file:
                file.write("//\n" * count)
        if len(list(violations(planted))) != 1:
            sys.exit("the test does not see a file that is too long")
    found = list(violations(root))
    found += [f"{path}: named as generated, but not there" for path in GENERATED
              if not os.path.exists(os.path.join(root, path))]
    for violation in found:
        print(violation)
    if found:
        sys.exit(1)
    print(f"{len(list(sources(root)))} files of at most {LINES} lines")


main()
