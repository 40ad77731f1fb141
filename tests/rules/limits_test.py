"""Refuses files of more than 500 lines, functions of more than 60 and lines of more than 110 characters.

    limits_test.py ROOT

The length of a function counts from the line where its signature begins to its closing brace. Files that may be longer or
wider are named here, with the reason.
"""
import os
import re
import sys
import tempfile

FILE_LINES, FUNCTION_LINES, WIDTH = 500, 60, 110
CODE = (".h", ".hpp", ".cpp", ".c", ".hip", ".comp", ".glsl")
SOURCES = CODE + (".py", ".cmake", ".txt", ".sh", ".def", ".inc")
FOLDERS = ["src", "backends", "kernels", "models", "tools", "tests", "bindings", "bench", "cmake", ".ci", ""]
SKIPPED = ("tests/data", "tests/fuzz/corpus", "tests/consumers/first_release/greta.h", ".ci/whole")  # data, not sources

# Generated tables may be longer; each is named, with what makes it.
GENERATED = {
    "src/text/unicode/unicode_tables.inc": "made by src/text/unicode/make_unicode_tables.py from the Unicode database",
    "bindings/python/greta/_declarations.py": "made by bindings/python/make_declarations.py from greta.h",
}
WHOLE = {"greta.h": "the public interface is one header", "greta_compute.h": "likewise, of what lies below"}
# What may be wider.
WIDE = {
    ".py": "Python, which .clang-format does not reach",
    ".inc": "tables of numbers, which a program writes",
    ".def": "tables, whose rows stay on one line each",
}
WIDE_FILES = {}

# Comments, raw strings, strings and characters: none of their braces is one. A digit's ' begins no character.
OPAQUE = re.compile(
    r'//(?:\\\n|[^\n])*|/\*.*?\*/|R"([^()\\ ]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])\'(?:\\.|[^\'\\\n])*\'', re.S)
NO_FUNCTION = re.compile(r"^\s*(if|for|while|switch|catch|else|do|return|namespace|class|struct|enum|union)\b|(?<![=!<>])=(?!=)")
CALLABLE = re.compile(r"\)\s*(const|noexcept|override|final|mutable|&|->[\s\w:<>,*&]+|:\s.*)*\s*$", re.S)


def sources(root):
    for top in FOLDERS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = [] if top == "" else [name for name in folders if name != "__pycache__"]
            for file in sorted(names):
                path = os.path.relpath(os.path.join(folder, file), root).replace(os.sep, "/")
                if file.endswith(SOURCES) or top == ".ci":
                    if not path.startswith(SKIPPED):
                        yield path


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def without_directives(text):
    """Blanks preprocessor lines and what stands behind #else and #elif, so that braces match."""
    lines, skipping, going_on = [], [], False
    for line in text.split("\n"):
        word = re.match(r"\s*#\s*(\w*)", line)
        if word and not going_on:
            if word.group(1).startswith("if"):
                skipping.append(False)
            elif skipping and word.group(1).startswith("el"):
                skipping[-1] = True
            elif skipping and word.group(1) == "endif":
                skipping.pop()
        directive = going_on or bool(word)
        going_on = directive and line.endswith("\\")
        lines.append("" if directive or any(skipping) else line)
    return "\n".join(lines)


def code_functions(text):
    """(first line, lines) of the functions of C++ or GLSL; those inside a function count as its lines."""
    text = without_directives(OPAQUE.sub(blank, text))
    open_braces, begin, parentheses = [], 0, 0  # begin: of the statement
    for place, char in enumerate(text):
        if char in "()":
            parentheses += 1 if char == "(" else -1
        elif char == "{":
            head = text[begin:place]
            callable_ = parentheses == 0 and CALLABLE.search(head) and not NO_FUNCTION.search(re.sub(r"\(.*\)", "()", head, flags=re.S))
            inside = any(kind for kind, _, _ in open_braces)
            start = begin + len(head) - len(head.lstrip())
            open_braces.append((bool(callable_) and not inside, start, parentheses))
            begin, parentheses = place + 1, 0
        elif char == "}" and open_braces:
            is_function, start, parentheses = open_braces.pop()
            if is_function:
                yield text.count("\n", 0, start) + 1, text.count("\n", start, place) + 1
            begin = place + 1
        elif char == ";" and parentheses == 0:
            begin = place + 1


def shell_functions(text):
    start, indent = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if match := re.match(r"(\s*)[\w-]+\(\) \{$", line):
            if not start:
                start, indent = number, match.group(1)
        elif start and line == indent + "}":
            yield start, number - start + 1
            start = 0


def is_shell(path):
    return path.endswith(".sh") or path == ".ci/run"


def violations(root):
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        lines = text.splitlines()
        if len(lines) > FILE_LINES and path not in GENERATED and path not in WHOLE:
            yield f"{path}: {len(lines)} lines, at most {FILE_LINES} are allowed"
        if not path.endswith(tuple(WIDE)) and path not in WIDE_FILES:
            for number, line in enumerate(lines, 1):
                if len(line) > WIDTH:
                    yield f"{path}:{number}: {len(line)} characters, at most {WIDTH} are allowed"
        functions = code_functions if path.endswith(CODE) else shell_functions if is_shell(path) else lambda _: ()
        for line, count in functions(text):
            if count > FUNCTION_LINES:
                yield f"{path}:{line}: a function of {count} lines, at most {FUNCTION_LINES} are allowed"


BODY = "  work();\n"
LONG = BODY * (FUNCTION_LINES - 1)  # with a signature and a brace one line too many
FITS = BODY * (FUNCTION_LINES - 2)
# Files that are planted: those whose name begins with `bad` are violations, the others are not.
PLANTED = {
    "bad_long.cpp": "//\n" * (FILE_LINES + 1),
    "long.cpp": "//\n" * FILE_LINES,
    "unicode_tables.inc": "//\n" * 9 * FILE_LINES,
    "bad_wide.h": "x" * (WIDTH + 1) + "\n",
    "wide.h": "x" * WIDTH + "\n" + "\u00e9" * WIDTH + "\n",
    "wide.def": "x" * 9 * WIDTH + "\n",
    "bad_wide.sh": "x" * (WIDTH + 1) + "\n",
    "bad_function.cpp": "namespace a {\nint f(int a = 1) {\n" + LONG + "}\n}\n",
    "bad_member.h": "class A : B {\n  A() : a_(1) {\n" + LONG + "  }\n};\n",
    "bad_shader.comp": "void main() {\n#if A\n  if (a) {\n#else\n  if (b) {\n#endif\n  }\n" + LONG + "}\n",
    "bad_test.cpp": 'TEST_CASE("{", "[a]") {\n' + LONG + "}\n",
    "bad_kernel.hip": 'extern "C" __global__ void f(const A* a)\n{\n' + LONG + "}\n",
    "function.cpp": "void f() const {\n" + FITS + "}\nint g() {\n" + FITS + "}\n",
    "table.cpp": "const int kTable[] = {\n" + "  1,\n" * 99 + "};\nstruct A {\n" + "  int a;\n" * 99 + "};\n",
    "bad_function.sh": "f() {\n" + LONG + "}\n",
    "function.sh": "f() {\n" + FITS + "}\ng() {\n" + FITS + "}\n",
}


def blind_spots():
    """Names of planted files that are judged wrongly."""
    with tempfile.TemporaryDirectory() as planted:
        folder = os.path.join(planted, "src/text/unicode")
        os.makedirs(folder)
        for name, text in PLANTED.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        found = [os.path.basename(violation.split(":")[0]) for violation in violations(planted)]
        return [name for name in PLANTED if found.count(name) != name.startswith("bad")]


def main():
    root = sys.argv[1]
    if blind := blind_spots():
        sys.exit(f"the test does not judge planted files rightly: {blind}")
    found = list(violations(root))
    found += [f"{path}: named as an exemption, but not there" for path in [*GENERATED, *WHOLE, *WIDE_FILES]
              if not os.path.exists(os.path.join(root, path))]
    for violation in found:
        print(violation)
    if found:
        sys.exit(f"{len(found)} violations")
    print(f"{len(list(sources(root)))} files, functions of at most {FUNCTION_LINES} lines, "
          f"lines of at most {WIDTH} characters")


main()
