"""How large the stripped program is, and what the library adds to a stripped hello-world; and that both are small enough.

    size_test.py CXX LIBRARY PROGRAM BACKEND...

BACKEND names those whose kernels are built. `strip` is that of the system.
"""
import os
import subprocess
import sys
import tempfile

HELLO = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n'
WITH_GRETA = '#include "greta.h"\nint main(void) { return (int)greta_version(); }\n'
MEGABYTE = 1_000_000
PROGRAM_LIMIT, PROGRAM_LIMIT_WITH_HIP = 18 * MEGABYTE, 26 * MEGABYTE
LIBRARY_LIMIT, LIBRARY_LIMIT_WITH_HIP = 16 * MEGABYTE, 25 * MEGABYTE
CXX_RUNTIME = 2 * MEGABYTE  # of a program that has its own, as those of packages do


def has_cxx_runtime(program):
    needed = subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout
    return "libstdc++" not in needed and "libc++" not in needed


def linked(compiler, folder, text, *libraries):
    """The bytes of a stripped program of this text."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    source, program = os.path.join(folder, "hello.c"), os.path.join(folder, "hello")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    object_file = source + ".o"
    subprocess.run([compiler, "-x", "c", "-c", "-I", root, source, "-o", object_file], check=True)
    subprocess.run([compiler, "-s", object_file, *libraries, "-pthread", "-ldl", "-o", program], check=True)
    return os.path.getsize(program)


def main():
    compiler, library, program, *backends = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "program")
        subprocess.run(["strip", program, "-o", stripped], check=True)
        program_bytes = os.path.getsize(stripped)
        added = linked(compiler, folder, WITH_GRETA, library) - linked(compiler, folder, HELLO)
    program_limit = PROGRAM_LIMIT_WITH_HIP if "hip" in backends else PROGRAM_LIMIT
    if has_cxx_runtime(program):
        program_limit += CXX_RUNTIME
    library_limit = LIBRARY_LIMIT_WITH_HIP if "hip" in backends else LIBRARY_LIMIT
    sizes = [(f"{os.path.basename(program)}, stripped", program_bytes, program_limit),
             (f"{os.path.basename(library)} adds to a hello-world", added, library_limit)]
    for what, size, limit in sizes:
        print(f"{what}, kernels of {' '.join(backends)}: {size / MEGABYTE:.1f} MB, at most {limit / MEGABYTE:.0f}")
    return 1 if any(size > limit for _, size, limit in sizes) else 0


if __name__ == "__main__":
    sys.exit(main())
