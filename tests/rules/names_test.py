"""Refuses names of backends, gfx targets and their instructions in src, outside of src/runtime.

    names_test.py ROOT

What a kernel or a device is, a column of the kernel table (src/compute/kernel_table.h) or a field of DeviceInfo
(src/runtime/device.h) says. Code that guesses it from a name is wrong for the next backend. Comments may give
examples.
"""
import os
import re
import sys

SOURCES = (".h", ".c", ".cpp", ".def", ".inc")
# A comment, or a string, raw or not; the rest is code.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?P<raw>.*?)\)"|"(?P<text>(?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
# In strings: a device's name as a whole, or between quotation marks in a sentence; other words anywhere.
NAME = re.compile(r'^(hip|vulkan|cpu)[0-9]*$|\\"(hip|vulkan|cpu)[0-9]*\\"')
WORD = re.compile(r"(?<![a-z])(hip|vulkan)(?![a-z])|gfx[0-9]|_(mfma|wmma|cm1)\b", re.IGNORECASE)
# In code: a part of an identifier.
PART = re.compile(r"(?<![A-Za-z])(hip|vulkan)(?![a-z])|(Hip|Vulkan)(?![a-z])|(?<![A-Z])(HIP|VULKAN)(?![A-Z])|gfx[0-9]|"
                  r"_(mfma|wmma|cm1)\b")

# Files that may name them, with the reason.
MAY = {
    "src/platform/machine/cgroup.cpp": "cpu is a controller of Linux's control groups",
    "src/platform/machine/system_advice.cpp": "it explains drivers and permissions of this system",
    "src/platform/machine/system_gpus.cpp": "it reads what the system has of drivers",
    "src/platform/machine/system_gpus.h": "it reads what the system has of drivers",
}


def names(text):
    """Yields the line and the text of each name in a source."""
    def refused(found):
        inner = found.group("raw") if found.group("raw") is not None else found.group("text")
        if inner is None:
            return None
        return NAME.search(inner) or WORD.search(inner)

    for found in TOKEN.finditer(text):
        if refused(found):
            yield text.count("\n", 0, found.start()) + 1, found.group(0)
    code = TOKEN.sub(lambda found: "\n" * found.group(0).count("\n"), text)
    for number, line in enumerate(code.splitlines(), 1):
        if PART.search(line):
            yield number, line.strip()


def violations(root):
    for folder, _, files in os.walk(os.path.join(root, "src")):
        for file in sorted(files):
            full = os.path.join(folder, file)
            path = os.path.relpath(full, root).replace(os.sep, "/")
            if not file.endswith(SOURCES) or path.startswith("src/runtime/") or path in MAY:
                continue
            with open(full, encoding="utf-8") as source:
                for number, text in names(source.read()):
                    yield f"{path}:{number}: {text}"


# Planted once and for all: each must be refused, or let through.
PLANTED = [
    ('if (!strcmp(row.backend, "cpu"))', True),
    ('return strstr(row.name, "_mfma") != nullptr;', True),
    ('target.starts_with("gfx9")', True),
    ('fail(Code::Memory, "take the device \\"cpu\\"")', True),
    ('fail(Code::Unsupported, "only HIP devices have one")', True),
    ('open_device("vulkan0", options, &device)', True),
    ("std::vector<std::string> hip_targets();", True),
    ("constexpr uint32_t kVulkanChain = 1;", True),
    ("#ifdef GRETA_BACKEND_HIP", True),
    ('const char* target;  // what the code is for ("gfx942")', False),
    ('/* on "hip" */ read(folder, "cpu.max");', False),
    ('"a ship, whips and chips"', False),
    ("int relationship = kShip + chip_count;", False),
]


def main():
    wrong = [(line, refused) for line, refused in PLANTED if any(names(line)) != refused]
    for line, refused in wrong:
        print(f"the test {'does not see' if refused else 'refuses'} {line}")
    found = list(violations(sys.argv[1]))
    for violation in found:
        print(violation)
    if found:
        print("A column of the kernel table or a field of DeviceInfo says what a kernel or a device is.")
    if wrong or found:
        sys.exit(1)
    print("no layer above the runtime names a backend")


main()
