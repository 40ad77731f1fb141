"""The program with real HIP runtimes, on a machine without an AMD GPU.

    HIP_RUNTIMES=FOLDER:FOLDER runtimes_test.py GRETA_CLI MODEL

Each folder is the root of packages that were unpacked beside the system, with the libraries that they need. One that
has a C library of its own is run by that one's loader.
"""
import os
import pathlib
import subprocess
import sys

SKIPPED = 77
LIMIT = 120  # seconds


def run(root, program, model):
    libraries = [str(path.parent) for path in pathlib.Path(root).glob("usr/lib*/**/libamdhip64.so*")]
    if not libraries:
        sys.exit(f"{root} has no libamdhip64.so")
    command = [program, "run", "--device", "hip0", "-m", model, "-p", "Once", "-n", "1"]
    loaders = list(pathlib.Path(libraries[0]).glob("ld-linux-x86-64.so.2"))
    if loaders:
        command = [str(loaders[0]), "--library-path", libraries[0]] + command
    environment = dict(os.environ, LD_LIBRARY_PATH="" if loaders else libraries[0])
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)


def main():
    program, model = sys.argv[1:]
    roots = [root for root in os.environ.get("HIP_RUNTIMES", "").split(":") if root]
    if not roots:
        print("HIP_RUNTIMES names no folder: skipped")
        sys.exit(SKIPPED)
    if os.path.exists("/dev/kfd"):
        print("this machine may have an AMD GPU: skipped")
        sys.exit(SKIPPED)
    failures = 0
    for root in roots:
        result = run(root, program, model)
        said = " ".join(result.stderr.split())
        known = "the HIP runtime finds no device" in said or "which is too old" in said
        right = known and result.returncode > 0 and not result.stdout
        print(f"{root}: exit code {result.returncode}, {said}")
        failures += not right
    sys.exit(1 if failures else 0)


main()
