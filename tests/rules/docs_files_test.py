"""Files that the documentation names exist, sources that it shows whole are shown as they are, and tables have all commands.

    docs_files_test.py ROOT

Read are docs/*.md and the pages at the top: paths between backquotes that begin with a folder of the tree, targets of
links, and code blocks behind "This is all of `path`". The commands of greta-cli, which tools/cli/main.cpp lists, each have a row
in README.md and in docs/cli.md.
"""
import glob
import os
import re
import sys

FOLDERS = ("src", "backends", "kernels", "models", "tools", "tests", "bench", "cmake", "docs", "examples", ".ci")
PATH = re.compile(r"`((?:%s)/[\w./{},*-]*)`" % "|".join(re.escape(folder) for folder in FOLDERS))
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r'^ *\{"(\w+)", ".*", \w+_command\},$', re.MULTILINE)
TABLES = ("README.md", "docs/cli.md")
WHOLE = re.compile(r"This\s+is\s+all\s+of\s+`([^`]+)`.*?\n( *)```\w*\n(.*?)\n *```", re.DOTALL)


def spelled(path):
    """The paths of `kernels/{cpu,hip}/x.h`."""
    found = re.match(r"(.*)\{([^}]*)\}(.*)$", path)
    return [found[1] + each + found[3] for each in found[2].split(",")] if found else [path]


def wrong(page, text, exists, read):
    """Yields what is wrong on a page. `exists` and `read` take paths from ROOT."""
    folder = os.path.dirname(page)
    for number, line in enumerate(text.splitlines(), 1):
        for path in PATH.findall(line):
            for each in spelled(path):
                if not exists(each):
                    yield f"{page}:{number}: there is no {each}"
        for target in LINK.findall(line):
            if not exists(os.path.normpath(os.path.join(folder, target))):
                yield f"{page}:{number}: a link to {target}, which is not there"
    for path, indent, block in WHOLE.findall(text):
        shown = "\n".join(line.removeprefix(indent) for line in block.splitlines())
        if exists(path) and shown.strip() != read(path).strip():
            yield f"{page}: {path} is not what is shown"


def without_row(text, commands):
    """The commands for which a page has no row: | `greta-cli run -p TEXT` | or | `run -p TEXT` |."""
    return [name for name in commands if not re.search(r"^\| `(greta-cli )?%s\b" % name, text, re.MULTILINE)]


# Planted once and for all: each must be found, or let through.
PLANTED = [
    ("see `src/there.h`", False), ("see `src/gone.h`", True), ("see `src/{there,gone}.h`", True),
    ("see `kernels/*/x.h`", False), ("see `build/gone`", False), ("[a](b.md#c)", False), ("[a](gone.md)", True),
    ("[a](https://example.org/gone.md)", False),
    ("This is all of `src/there.h`:\n\n  ```cpp\n  int a;\n    int b;\n  ```\n", False),
    ("This is all of `src/there.h`:\n\n```cpp\nint a;\n```\n", True),
]


def planted():
    there = {"src/there.h": "int a;\n  int b;\n", "docs/b.md": ""}
    for text, bad in PLANTED:
        if any(wrong("docs/a.md", text, lambda path: "*" in path or path in there, there.get)) != bad:
            yield f"the test {'does not see' if bad else 'refuses'}: {text}"
    if without_row("| `greta-cli run -p TEXT` | |\n| `info --plan` | |\nverify\n", ["run", "info", "verify"]) != ["verify"]:
        yield "the test does not see which commands have a row"


def main():
    root = sys.argv[1]

    def exists(path):
        return bool(glob.glob(os.path.join(root, path)))

    def read(path):
        with open(os.path.join(root, path), encoding="utf-8") as source:
            return source.read()

    pages = sorted(glob.glob(os.path.join(root, "docs", "**", "*.md"), recursive=True) + glob.glob(os.path.join(root, "*.md")))
    found = list(planted())
    for page in pages:
        name = os.path.relpath(page, root)
        found += wrong(name, read(name), exists, read)
    commands = COMMAND.findall(read("tools/cli/main.cpp"))
    for page in TABLES:
        found += [f"{page}: no row for greta-cli {name}" for name in without_row(read(page), commands)]
    if "run" not in commands or "serve" not in commands:
        found.append(f"tools/cli/main.cpp: the test sees only the commands {commands}")
    for each in found:
        print(each)
    if found or not pages:
        sys.exit(1)
    print(f"files that {len(pages)} pages name are there")


main()
