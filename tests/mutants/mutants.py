"""Plants one mistake at a time in the library, and sees that the tests of that layer find it.

    mutants.py [--build FOLDER] [--folders LIST] [--jobs N] [--each N] [--seed N] [--minutes N] [--quick] [--report FILE] [PATH...]

A mutant is one line of a source, changed in one place: a comparison that takes the neighbour in or leaves it out, a
condition that is dropped or turned round, a number that is one too large, a sum that is a difference. PATHs choose
sources of TARGETS; without them all are tried, --each changes in each (12; 0 is all of them), which --seed draws. A mutant is
found if its tests fail, crash, or take too long; it is not counted where it does not compile or makes the same code. What
survives is printed, and written to the report, as lines of path, line, change and text. The quick tests come first, and the
others only where these find nothing; --quick leaves the others out.

The build folder (build/mutants) is made with tests, without GPUs and without unity builds; --folders names the folders of tests
that it has (GRETA_TEST_FOLDERS), since a small program links faster. A mutant is compiled by the commands of that folder, but
without optimisation, and never touches a source. With --minutes no mutant is begun after so long. Those of KNOWN, which change
nothing that can be seen, are left out.
"""
import argparse
import concurrent.futures
import hashlib
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
import typing

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KNOWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "equal.tsv")
QUICK_SECONDS = 0.3  # of a test
LEAST_SECONDS, TIMES_AS_LONG = 20, 6  # a mutant may take so many times as long as the unchanged program, and at least this

# Sources, and the tests that hold them, as Catch2 chooses tests.
TARGETS = {
    "src/engine/executor/page_pool.cpp": "[groups],[serve],[shared],[state],pages:*",
    "src/engine/executor/cache_groups.cpp": "[groups],[serve],[shared],[state]",
    "src/engine/executor/checkpoints.cpp": "[groups],[state],[serve]",
    "src/engine/executor/states.cpp": "[state],[groups]",
    "src/engine/executor/executor.cpp": "[groups],[serve],[shared],[state],[embed],[draft],api:*",
    "src/engine/serve/page_index.cpp": "[serve],[groups]",
    "src/engine/serve/prefix_cache.cpp": "[serve]",
    "src/engine/serve/scheduler.cpp": "[serve]",
    "src/engine/serve/waiting_line.cpp": "[serve]",
    "src/engine/serve/mailbox.cpp": "[serve]",
    "src/engine/sampling/sampler.cpp": "[sampler],sampl*",
    "src/engine/sampling/dry.cpp": "[sampler]",
    "src/engine/model/tensor_store.cpp": "[engine],[models]~[architectures],tensor*,weights*",
    "src/engine/model/weight_parts.cpp": "[engine],[architectures]",
    "src/engine/write/writing.cpp": "[serve],[stop],[session],[chat],[draft]",
    "src/engine/write/stop.cpp": "[stop]",
    "src/graph/plan.cpp": "[graph],[persistent]",
    "src/graph/run.cpp": "[graph],[state]",
    "src/gguf/gguf.cpp": "[gguf]",
    "src/gguf/source.cpp": "[gguf],[source]",
    "src/text/grammar/grammar.cpp": "[grammar]",
    "src/text/grammar/state.cpp": "[grammar]",
    "src/text/grammar/parse.cpp": "[grammar]",
    "src/text/chat/parser.cpp": "[chat]",
}


class Mutant(typing.NamedTuple):
    path: str
    line: int  # from 1
    change: str
    text: str  # the line as it becomes


# What is changed into what. Operators stand between blanks here, as the formatter writes them, so that brackets of templates
# and pointers are left alone.
CHANGES = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r" \+ 1\b", ""), (r" - 1\b", ""), (r" \+ ", " - "), (r" - ", " + "),
    (r"\bif \(!", "if ("), (r"\bif \((?!!)(?=[^;{]*\) (return|continue|break)\b)", "if (false && "),
    (r"(?<=[ (,])([0-9]+)(?=[),; ])", "PLUS_1"), (r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min"),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r" \+= ", " -= "), (r"\+\+(?=\w)", "--"),
]
LEFT_ALONE = re.compile(r'^\s*(//|#|using |static_assert|template|constexpr char|\*|namespace|friend|extern)')


def parts_to_change(line):
    """The places of a line that are code: not in a string, a character or a comment."""
    return re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'|//.*', lambda m: "\0" * len(m.group()), line)


def mutants_of(path):
    with open(os.path.join(ROOT, path)) as file:
        lines = file.read().split("\n")
    for number, line in enumerate(lines, 1):
        if LEFT_ALONE.match(line):
            continue
        code = parts_to_change(line)
        for pattern, new in CHANGES:
            for found in re.finditer(pattern, code):
                put = str(int(found.group()) + 1) if new == "PLUS_1" else new
                text = line[:found.start()] + put + line[found.end():]
                yield Mutant(path, number, f"{found.group().strip() or found.group()} -> {put.strip() or 'nothing'}", text)


class Build:
    """The commands of a build folder: how a source is compiled, and how the test program is linked."""

    def __init__(self, folder, test_folders):
        self.folder = folder
        self.unchanged = {}  # by path: the code of the source as it is
        if not os.path.exists(os.path.join(folder, "build.ninja")):
            subprocess.check_call(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                                   "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG", "-DCMAKE_UNITY_BUILD=OFF", "-DGRETA_TESTS=ON",
                                   "-DGRETA_VULKAN=OFF", "-DGRETA_HIP=OFF", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
                                   f"-DGRETA_TEST_FOLDERS={test_folders}"])
        subprocess.check_call(["ninja", "-C", folder, "greta_tests"])
        commands = self.run(["ninja", "-C", folder, "-t", "commands", "greta_tests"]).split("\n")
        self.compiling = {}
        for command in commands:
            found = re.search(r" -c (\S+\.cpp)$", command)
            if found:
                self.compiling[os.path.relpath(os.path.join(folder, found.group(1)), ROOT)] = command
        self.linking = next(c for c in reversed(commands) if "-o tests/greta_tests" in c)
        self.linking = self.linking.split(" && ")[1] if self.linking.startswith(": && ") else self.linking
        self.linker = next((["-fuse-ld=lld"] for name in ("ld.lld",) if self.works(name)), [])

    @staticmethod
    def run(command):
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    @staticmethod
    def works(name):
        try:
            return subprocess.run([name, "--version"], stdout=subprocess.DEVNULL).returncode == 0
        except OSError:
            return False

    def object_of(self, path, lines, scratch):
        """Compiles the source with these lines. Returns the object's path, or None where it does not compile."""
        command = [word for word in shlex.split(self.compiling[path]) if not word.startswith(("-W", "-O"))]
        command = command[1:] if os.path.basename(command[0]) == "ccache" else command  # nobody compiles it again
        source = os.path.join(ROOT, path)
        made = os.path.join(scratch, "mutant.o")
        changed = os.path.join(scratch, os.path.basename(path))  # which the object names
        with open(changed, "w") as file:
            file.write(f'#line 1 "{source}"\n' + "\n".join(lines))
        command += ["-O0", "-w", "-iquote", os.path.dirname(source)]
        command[command.index("-o") + 1] = made
        command[command.index("-c") + 1] = changed
        for flag in ("-MF", "-MT"):
            if flag in command:
                command[command.index(flag) + 1] = os.path.join(scratch, "mutant.d")
        return None if subprocess.run(command, cwd=self.folder, stderr=subprocess.DEVNULL).returncode else made

    def compile_unchanged(self, path):
        with tempfile.TemporaryDirectory() as scratch, open(os.path.join(ROOT, path)) as file:
            self.unchanged[path] = self.code_of(self.object_of(path, file.read().split("\n"), scratch))

    def program_of(self, mutant, scratch):
        """Compiles and links a mutant. Returns the program's path, or None where it does not compile or is the same code."""
        with open(os.path.join(ROOT, mutant.path)) as file:
            lines = file.read().split("\n")
        lines[mutant.line - 1] = mutant.text
        made = self.object_of(mutant.path, lines, scratch)
        if not made or self.code_of(made) == self.unchanged[mutant.path]:
            return None
        words = shlex.split(self.compiling[mutant.path])
        original = words[words.index("-o") + 1]
        program = os.path.join(scratch, "mutant")
        link = shlex.split(self.linking)
        link[link.index("-o") + 1] = program
        link = self.with_archives_opened([made if word == original else word for word in link], made)
        if subprocess.run(link + self.linker, cwd=self.folder, stderr=subprocess.DEVNULL).returncode:
            sys.exit(f"the program with a mutant of {mutant.path} does not link")
        return program

    @staticmethod
    def with_archives_opened(link, made):
        """Objects in front of archives win, so that a mutant of an archive's member stands in for it."""
        return link if made in link else link[:1] + [made] + link[1:]

    @staticmethod
    def code_of(path):
        """The bytes of an object, without what is for debuggers."""
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, "code.o")
            subprocess.check_call(["objcopy", "--strip-debug", path, out])
            with open(out, "rb") as file:
                return file.read()


class Tests:
    """The tests of a source: the quick ones, and all of them, each with the seconds that a mutant may take."""

    def __init__(self, program, path, only_quick):
        timed = {}  # a test may run several times, with one line each
        for seconds, name in re.findall(r"^([0-9.]+) s: (.*)$", self.timed(program, path), re.M):
            timed[name] = timed.get(name, 0) + float(seconds)
        self.whole = [TARGETS[path]], self.limit(sum(timed.values()))
        quick = [(seconds, name) for name, seconds in timed.items() if seconds <= QUICK_SECONDS]
        self.names = tempfile.NamedTemporaryFile("w", suffix=".txt")
        self.names.write("\n".join(re.sub(r"([\\,\[\]*\"~])", r"\\\1", name) for _, name in quick) + "\n")
        self.names.flush()
        self.rounds = [(["-f", self.names.name], self.limit(sum(seconds for seconds, _ in quick)))] if quick else []
        if not quick or (len(quick) < len(timed) and not only_quick):
            self.rounds.append(self.whole)

    @staticmethod
    def timed(program, path):
        """How long each test of the unchanged program takes, in Catch2's lines. They are kept beside the program."""
        name = hashlib.sha256(TARGETS[path].encode()).hexdigest()[:16]
        kept = os.path.join(os.path.dirname(program), f"times-{name}.txt")
        if not os.path.exists(kept) or os.path.getmtime(kept) < os.path.getmtime(program):
            done = subprocess.run([program, TARGETS[path], "--abort", "-d", "yes"], stdout=subprocess.PIPE, text=True)
            if done.returncode:
                sys.exit(f"the tests of {path} do not pass without a mutant")
            with open(kept, "w") as file:
                file.write(done.stdout)
        with open(kept) as file:
            return file.read()

    @staticmethod
    def limit(seconds):
        return max(LEAST_SECONDS, TIMES_AS_LONG * seconds)

    def find(self, program, folder):
        for words, seconds in self.rounds:
            try:
                done = subprocess.run([program, *words, "--abort", "--allow-running-no-tests"], cwd=folder, timeout=seconds,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            except subprocess.TimeoutExpired:
                return True
            if done.returncode not in (0, 4):
                return True
        return False


def try_mutant(build, mutant, tests, end):
    """found, survived, none where there is nothing to try, or late."""
    if time.monotonic() > end:
        return "late"
    with tempfile.TemporaryDirectory() as scratch:
        program = build.program_of(mutant, scratch)
        if not program:
            return "none"
        return "found" if tests.find(program, scratch) else "survived"


def known():
    if not os.path.exists(KNOWN):
        return set()
    with open(KNOWN) as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]
    return {(row[0], row[1]) for row in rows}


def chosen(arguments):
    paths = arguments.paths or list(TARGETS)
    equal = known()
    for path in paths:
        if path not in TARGETS:
            sys.exit(f"{path} is no source of TARGETS")
        of_path = [m for m in mutants_of(path) if (m.path, m.text.strip()) not in equal]
        if arguments.each and len(of_path) > arguments.each:
            of_path = random.Random(f"{arguments.seed} {path}").sample(of_path, arguments.each)
        yield from sorted(of_path, key=lambda m: m.line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build/mutants"))
    parser.add_argument("--folders", default="")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--each", type=int, default=12)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--report")
    parser.add_argument("paths", nargs="*")
    arguments = parser.parse_args()
    build = Build(os.path.abspath(arguments.build), arguments.folders)
    mutants = list(chosen(arguments))
    tests = {}
    for path in sorted({m.path for m in mutants}):
        if path not in build.compiling:
            sys.exit(f"{path} is not compiled for greta_tests")
        build.compile_unchanged(path)
        tests[path] = Tests(os.path.join(build.folder, "tests/greta_tests"), path, arguments.quick)
    report = open(arguments.report, "w") if arguments.report else None
    counts = {"found": 0, "survived": 0, "none": 0, "late": 0}
    end = time.monotonic() + arguments.minutes * 60
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, result in zip(mutants, pool.map(lambda m: try_mutant(build, m, tests[m.path], end), mutants)):
            counts[result] += 1
            if result == "survived":
                line = f"{mutant.path}\t{mutant.line}\t{mutant.change}\t{mutant.text.strip()}"
                print(line, flush=True)
                if report:
                    report.write(line + "\n")
                    report.flush()
    tried = counts["found"] + counts["survived"]
    print(f"{tried} mutants, {counts['found']} found, {counts['survived']} survived, {counts['none']} equal or wrong, {counts['late']} not tried")
    return 0


if __name__ == "__main__":
    sys.exit(main())
