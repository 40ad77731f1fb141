"""Chooses which jobs of a stage run: those whose inputs changed since the last whole run, and a sample of the others.

    plan.py STAGE JOBS CHOSEN WHOLE --build FOLDER --commit HASH --share N [--whole] [--verbose]

JOBS has a line for each job: its group, its name and its inputs, with tabs between. The names of the chosen jobs go into
CHOSEN, and the hash of the inputs of every job into WHOLE, for .ci/whole/STAGE. That file is what the last whole run
wrote; without it every job counts as changed. The sample is one job in N of each group, at least one; the hash of the
commit chooses it. A group whose name ends with ? is beyond a whole run: its jobs run where they changed, or as a sample.
Of such a group at most MOST_BEYOND changed jobs run, which the commit chooses: what changed them all is in the others too.

Inputs hash contents, not paths, so that a mere move changes nothing. Comments and the folders of #include lines do not
count, nor do blank lines and how far a line is indented. An input is one of
    PATH            a file, a folder with all below it, or a glob
    kernel:GLOB     Vulkan kernels of the build: their SPIR-V and their rows of the kernel table
    hip:GLOB        HIP kernels of the build: the code objects that hold them, for all targets, and their rows
    lines:FILE:NAME lines of a file of the build that begin with NAME
    package:NAME    the version of an installed package
"""
import argparse
import fnmatch
import functools
import glob
import hashlib
import os
import re
import subprocess
import sys

CODE = (".h", ".hpp", ".c", ".cpp", ".def", ".inc", ".comp", ".glsl", ".hip")
SCRIPTS = (".sh", ".cmake", ".txt", ".py")
# A raw string, a string, a character, or a comment; numbers such as 1'000 are no characters.
TOKEN = re.compile(r'R"([^()\\ ]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\'|//(?:\\\n|[^\n])*|/\*.*?\*/', re.S)
INCLUDE = re.compile(r'^(\s*#\s*include\s+")[^"\n]*/', re.M)
ABSENT = "absent"
MOST_BEYOND = 12


def sha(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


def without_comments(text):
    def kept(match):
        return " " if match.group().startswith(("//", "/*")) else match.group()

    return TOKEN.sub(kept, text)


def normalised(path, data):
    """What of a file's bytes counts."""
    name = os.path.basename(path)
    if not name.endswith(CODE + SCRIPTS):
        return data
    text = data.decode("utf-8", "surrogateescape")
    if name.endswith(CODE):
        text = INCLUDE.sub(r"\1", without_comments(text))
        if 'R"' in text:  # the lines of a raw string are kept as they are
            return text.encode("utf-8", "surrogateescape")
    elif name.endswith(SCRIPTS):
        text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        if name.endswith(".py"):  # indentation is meaning
            return text.encode("utf-8", "surrogateescape")
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line).encode("utf-8", "surrogateescape")


@functools.cache
def file_hash(path):
    with open(path, "rb") as file:
        return sha(normalised(path, file.read()))


def files_below(root, pattern):
    for path in glob.glob(os.path.join(root, pattern), recursive=True):
        if os.path.isfile(path):
            yield path
        for folder, folders, names in os.walk(path):
            folders[:] = [name for name in folders if name != "__pycache__"]
            yield from (os.path.join(folder, name) for name in names)


class Inputs:
    def __init__(self, root, build):
        self.root, self.build = root, os.path.join(root, build)

    def rows_of(self, backend):
        """The rows of each kernel in the kernel table, by its name."""
        rows = {}
        for table in glob.glob(os.path.join(self.build, "generated", "*kernel_rows.inc")):
            with open(table, encoding="utf-8") as file:
                for line in file:
                    if match := re.match(rf'\{{"(\w+)", "{backend}"', line):
                        rows.setdefault(match.group(1), []).append(line.strip())
        return rows

    @functools.cached_property
    def kernels(self):
        """The hash of each Vulkan kernel that was built, by its name."""
        rows, hashes = self.rows_of("vulkan"), {}
        for path in glob.glob(os.path.join(self.build, "kernels/vulkan/*.spv")):
            name = os.path.basename(path).removesuffix(".spv")
            with open(path, "rb") as file:
                hashes[name] = sha(sha(file.read()) + "\n".join(sorted(rows.get(name, []))))
        return hashes

    @functools.cached_property
    def hip_kernels(self):
        """The same for HIP kernels."""
        objects = {}
        for kernel, target, _, _, path in (line.split("\t") for line in self.lines("generated/hip_kernels.tsv") or []):
            path = os.path.join(self.build, "kernels/hip", os.path.basename(path))
            if os.path.isfile(path):
                objects.setdefault(kernel, []).append(f"{target} {file_hash(path)}")
        rows = self.rows_of("hip")
        return {name: sha("\n".join(sorted(found) + sorted(rows.get(name, [])))) for name, found in objects.items()}

    @functools.lru_cache(maxsize=None)
    def lines(self, path):
        full = os.path.join(self.build, path)
        if not os.path.isfile(full):
            return None
        with open(full, encoding="utf-8") as file:
            return file.read().splitlines()

    @functools.lru_cache(maxsize=None)
    def one(self, name):
        """The hash of one input; `ABSENT` where it is not built."""
        kind, _, rest = name.partition(":")
        if kind in ("kernel", "hip"):
            kernels = self.kernels if kind == "kernel" else self.hip_kernels
            found = [value for key, value in kernels.items() if fnmatch.fnmatchcase(key, rest)]
            return sha("\n".join(sorted(found))) if found else ABSENT
        if kind == "lines":
            path, _, begin = rest.partition(":")
            lines = self.lines(path)
            if lines is None:
                return ABSENT
            return sha("\n".join(line for line in lines if line.startswith(begin)))
        if kind == "package":
            done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", rest], capture_output=True, check=False)
            return sha(done.stdout) if done.returncode == 0 else ABSENT
        found = sorted({file_hash(path) for path in files_below(self.root, name)})
        if not found:
            sys.exit(f"the input {name} names no file")
        return sha("\n".join(found))

    def all(self, names):
        hashes = [self.one(name) for name in names.split()]
        return ABSENT if ABSENT in hashes else sha("\n".join(hashes))[:16]


def read_record(path):
    """What the last whole run had for inputs: the hash of each job, by its name. None where there was no such run."""
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(" ", 1) for line in file]
    return {name: value for value, name in lines if value not in ("commit", "minutes")}


def sample(jobs, commit, share):
    """One job in `share` of each group, at least one."""
    groups = {}
    for group, name in jobs:
        groups.setdefault(group, []).append(name)
    chosen = set()
    for names in groups.values():
        names.sort(key=lambda name: sha(commit + "\n" + name))
        chosen.update(names[: -(-len(names) // share)])
    return chosen


def choose(jobs, hashes, record, commit, share, whole):
    """The reason for each job that has to run, by its name. `jobs` are pairs of a group and a name."""
    reasons, changed_beyond = {}, {}
    sampled = sample(jobs, commit, share)
    for group, name in jobs:
        beyond = group.endswith("?")
        changed = record is not None and (hashes[name] == ABSENT or record.get(name) != hashes[name])
        if not beyond and (whole or record is None):
            reasons[name] = "whole" if whole else "there was no whole run"
        elif beyond and changed:
            changed_beyond.setdefault(group, []).append(name)
        elif changed:
            reasons[name] = "its inputs changed"
        elif name in sampled:
            reasons[name] = "sample"
    for names in changed_beyond.values():
        names.sort(key=lambda name: sha(commit + "\n" + name))
        reasons.update((name, "its inputs changed") for name in names[:MOST_BEYOND])
    return reasons


def in_order(jobs, commit):
    """The names of the jobs, as declared. Jobs beyond a whole run come last, in an order that the commit chooses."""
    beyond = [name for group, name in jobs if group.endswith("?")]
    return [name for group, name in jobs if not group.endswith("?")] + sorted(beyond, key=lambda name: sha(commit + "\n" + name))


def main():
    parser = argparse.ArgumentParser()
    for name in ("stage", "jobs", "chosen", "hashes"):
        parser.add_argument(name)
    for name in ("--build", "--commit"):
        parser.add_argument(name, required=True)
    parser.add_argument("--share", type=int, required=True)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")

    with open(args.jobs, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    jobs = [(group, name) for group, name, _ in lines]
    if len({name for _, name in jobs}) != len(jobs):
        sys.exit(f"two jobs of {args.stage} have the same name")
    inputs = Inputs(root, args.build)
    hashes = {name: inputs.all(names) for _, name, names in lines}
    record = read_record(os.path.join(root, ".ci/whole", args.stage))
    reasons = choose(jobs, hashes, record, args.commit, args.share, args.whole)

    with open(args.chosen, "w", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in in_order(jobs, args.commit) if name in reasons)
    with open(args.hashes, "w", encoding="utf-8") as file:
        file.writelines(f"{value} {name}\n" for name, value in sorted(hashes.items()) if value != ABSENT)
    counts = {}
    for name, reason in reasons.items():
        counts[reason] = counts.get(reason, 0) + 1
        if args.verbose:
            print(f"  {name}: {reason}")
    said = ", ".join(f"{count} because: {reason}" for reason, count in sorted(counts.items()))
    print(f"{args.stage}: {len(reasons)} of {len(jobs)} jobs ({said})")


if __name__ == "__main__":
    main()
