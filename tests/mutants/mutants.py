"""Plants one mistake at a time in the library, and sees that the tests find it.

    mutants.py [--build FOLDER] [--folders LIST] [--tests SPEC] [--jobs N] [--each N] [--seed N] [--minutes N]
               [--list FILE [--again]] [PATH...]

A mutant is one line of a source, changed in one place: a comparison that takes the neighbour in or leaves it out, a
condition that is dropped or turned round, a number that is one too large, a sum that is a difference. PATHs choose
sources of SOURCES; without them all are tried. --each mutants are made of each (16; 0: of each line), which --seed draws.

All of them are compiled once, side by side: an expression `a < b` becomes `mutant(7) ? a <= b : a < b`, and a variable of
the environment says which one is live. Those that do not compile in this way are left out. Indices are checked by the
standard library, as the sanitizers do in CI. A first run without a mutant
notes which tests come by which mutants. Then each mutant meets the tests that come by it, quick ones first. It is found
if one of them fails, crashes, or takes too long; one that no test comes by has survived.

The build folder (build/mutants) is made with tests, without GPUs and without unity builds; --folders names the folders of
tests that it has (GRETA_TEST_FOLDERS). --tests chooses among its tests, as Catch2 does. With --minutes no mutant is begun
after so long. Results go into the rows of --list: path, line, change, the line as it becomes, what came of it, and the test
that found it. Rows of mutants that are not tried again stay. --again tries those that survived, and no others. Mutants of
equal.tsv, which change nothing that can be seen, are not tried.
"""
import argparse
import collections
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
HERE = os.path.dirname(os.path.abspath(__file__))
EQUAL = os.path.join(HERE, "equal.tsv")
TESTS = "~[long]~[hip]"
LEAST_SECONDS, TIMES_AS_LONG = 20, 6  # tests may take so many times as long as without a mutant, and at least this
ROUNDS = (1, 8, 60, 1e9)  # seconds of tests that are run at a time

SOURCES = [
    "src/engine/executor/page_pool.cpp", "src/engine/executor/cache_groups.cpp", "src/engine/executor/checkpoints.cpp",
    "src/engine/executor/sequences.cpp", "src/engine/executor/executor.cpp", "src/engine/executor/cache_copies.cpp",
    "src/engine/executor/step_upload.cpp", "src/engine/executor/step_profile.cpp", "src/engine/executor/draft_head.cpp",
    "src/engine/executor/shared_pages.cpp", "src/engine/serve/page_index.cpp", "src/engine/serve/prefix_cache.cpp",
    "src/engine/serve/scheduler.cpp", "src/engine/serve/waiting_line.cpp", "src/engine/serve/mailbox.cpp",
    "src/engine/session/state.cpp", "src/engine/sampling/sampler.cpp", "src/engine/sampling/dry.cpp",
    "src/engine/model/tensor_store.cpp", "src/engine/model/weight_parts.cpp", "src/engine/write/writing.cpp",
    "src/engine/write/stop.cpp", "src/graph/plan.cpp", "src/graph/run.cpp", "src/gguf/gguf.cpp", "src/gguf/header.cpp",
    "src/gguf/source.cpp", "src/gguf/values.cpp", "src/text/grammar/grammar.cpp", "src/text/grammar/state.cpp",
    "src/text/grammar/parse.cpp", "src/text/chat/parser.cpp", "src/text/chat/parser_calls.cpp",
]


class Mutant(typing.NamedTuple):
    path: str
    line: int  # from 1
    change: str
    text: str  # the line as it becomes

    def key(self):
        return self.path, str(self.line), self.text.strip()


# What is changed into what. Operators stand between blanks here, as the formatter writes them, so that brackets of templates
# and pointers are left alone.
CHANGES = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r" \+ 1\b", ""), (r" - 1\b", ""), (r" \+ ", " - "), (r" - ", " + "),
    (r"\bif \(!", "if ("), (r"\bif \((?!!)(?=[^;{]*\) (return|continue|break)\b)", "if (false && "),
    (r"(?<=[ (,])([0-9]+)(?=[),; ])", "PLUS_1"), (r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min"),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r" \+= ", " -= "), (r"\+\+(?=\w)", "--"),
]
LEFT_ALONE = re.compile(r'^\s*(//|#|using |static_assert|template|constexpr|static constexpr|\*|namespace|friend|extern)')


def code_of(line):
    """The line with blanks in place of strings, characters and comments."""
    return re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'|//.*', lambda m: "\0" * len(m.group()), line)


def lines_of(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read().split("\n")


def mutants_of(path):
    for number, line in enumerate(lines_of(path), 1):
        if LEFT_ALONE.match(line):
            continue
        code = code_of(line)
        for pattern, new in CHANGES:
            for found in re.finditer(pattern, code):
                put = str(int(found.group()) + 1) if new == "PLUS_1" else new
                text = line[:found.start()] + put + line[found.end():]
                yield Mutant(path, number, f"{found.group().strip() or found.group()} -> {put.strip() or 'nothing'}", text)


# What stands before an expression on its line, and what may be left of one that goes on elsewhere.
BEFORE = re.compile(r'\s*(\}?\s*else )?\s*((if|for|while|switch) (?=\())?')
STARTS = re.compile(r'\s*(return |case |else |do )*\s*')
CUT = re.compile(r'^\s*(&&|\|\||[-+*/:?<]|==) |( (&&|\|\||[-+*/?:<=]|==))?\s*$')


def expression_around(code, begin, end):
    """Where the expression begins and ends, on its line, in which code[begin:end] lies; None if that is not seen."""
    left, depth = begin, 0
    while left > 0:
        c = code[left - 1]
        if c in ")]}":
            depth += 1
        elif c in "([{":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (c in ";," or (c in "=?:" and code[left - 2:left + 1] == f" {c} ")):
            break
        left -= 1
    right, depth = end, 0
    while right < len(code):
        c = code[right]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (c in ";," or code[right:right + 3] in (" ? ", " : ")):
            break
        right += 1
    # Statements that begin with `if (...) ` or `return `.
    while left < begin:
        head = BEFORE.match(code, left, right)
        at = head.end()
        if head.group(3):
            depth = 0
            while at < right:
                depth += (code[at] == "(") - (code[at] == ")")
                at += 1
                if depth == 0:
                    break
        else:
            at = STARTS.match(code, left, right).end()
        if at == left or at > begin:
            break
        left = at
    for found in re.finditer(CUT, code[left:right]):
        if found.start() == 0 and found.end() and left + found.end() <= begin:
            left += found.end()
        elif found.start() and left + found.start() >= end:
            right = left + found.start()
            break
    return (left, right) if left <= begin and right >= end and left < right else None


def woven(line, mutants):
    """The line with the first of these (number, mutant), and others of the same expression, chosen by `mutant`."""
    code, at, variants, taken = code_of(line), None, [], []
    for number, mutant in mutants:
        text = mutant.text
        begin = next(i for i in range(len(line) + 1) if line[:i + 1] != text[:i + 1])
        tail = 0
        while tail < min(len(line), len(text)) - begin and line[-1 - tail] == text[-1 - tail]:
            tail += 1
        around = expression_around(code, begin, len(line) - tail)
        if around is None or at not in (None, around):
            continue
        at = around
        kind = "bool" if mutant.change.startswith("if (!") else ""  # else an optional and its ! become an optional
        variants.append((number, kind, text[at[0]:len(text) - (len(line) - at[1])]))
        taken.append(number)
    if at is None:
        return line, []
    expression = line[at[0]:at[1]]
    for number, kind, variant in variants:
        expression = f"(greta_mutant({number}) ? {kind}({variant}) : {kind}({expression}))"
    return line[:at[0]] + expression + line[at[1]:], taken


PRELUDE = "extern bool greta_mutant(int number);\n"
# Part of the program: which mutant is live, and, where a file is named for it, which tests come by which mutants.
SWITCH = r"""
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/interfaces/catch_interfaces_reporter.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
static std::atomic<bool> passed[4096];
bool greta_mutant(int number) {
  static const int live = std::getenv("GRETA_MUTANT") ? std::atoi(std::getenv("GRETA_MUTANT")) : 0;
  passed[number].store(true, std::memory_order_relaxed);
  return number == live;
}
struct Notes : Catch::EventListenerBase {
  using EventListenerBase::EventListenerBase;
  std::FILE* file = std::getenv("GRETA_MUTANT_NOTES") ? std::fopen(std::getenv("GRETA_MUTANT_NOTES"), "w") : nullptr;
  std::chrono::steady_clock::time_point begun;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    for (auto& each : passed) each = false;
    begun = std::chrono::steady_clock::now();
    if (file) std::fprintf(file, "%s\t", info.name.c_str()), std::fflush(file);
  }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (!file) return;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
    std::fprintf(file, "%s\t%f\t", stats.totals.assertions.failed ? "failed" : "passed", seconds.count());
    for (int i = 0; i < 4096; ++i)
      if (passed[i]) std::fprintf(file, " %d", i);
    std::fprintf(file, "\n"), std::fflush(file);
  }
};
CATCH_REGISTER_LISTENER(Notes)
"""


def notes_of(path):
    """By test: how it ended, its seconds, and the mutants that it came by. One that never ended has none of these."""
    with open(path, errors="replace") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.strip()]
    return {row[0]: (row[1], float(row[2]), [int(n) for n in row[3].split()]) if len(row) == 4 else None for row in rows}


class Build:
    """A build folder's commands, and the program that they make of its test program with all mutants in it."""

    def __init__(self, folder, test_folders):
        self.folder = folder
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

    @staticmethod
    def run(command):
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    def compile(self, path, source, made, beside):
        """Compiles `source` by the command of `path`. Returns the compiler's messages, or None if there is an object."""
        command = [word for word in shlex.split(self.compiling[path]) if not word.startswith("-W")]
        command = command[1:] if os.path.basename(command[0]) == "ccache" else command
        command += ["-w", "-D_GLIBCXX_ASSERTIONS", "-iquote", beside]
        command[command.index("-o") + 1] = made
        command[command.index("-c") + 1] = source
        for flag in ("-MF", "-MT"):
            if flag in command:
                command[command.index(flag) + 1] = made + ".d"
        done = subprocess.run(command, cwd=self.folder, stderr=subprocess.PIPE, text=True)
        return done.stderr if done.returncode else None

    def weave(self, path, mutants, scratch):
        """Compiles a source with these (number, mutant). Returns its object and the numbers of those that are in it."""
        lines, by_line, inside = lines_of(path), collections.defaultdict(list), {}
        for number, mutant in mutants:
            by_line[mutant.line].append((number, mutant))
        made = os.path.join(scratch, path.replace("/", "."))
        for line, of_line in by_line.items():
            woven_line, taken = woven(lines[line - 1], of_line)
            if taken:
                inside[line] = woven_line, taken
        while inside:
            with open(made, "w") as file:
                text = [inside[n][0] if n in inside else line for n, line in enumerate(lines, 1)]
                file.write(PRELUDE + f'#line 1 "{path}"\n' + "\n".join(text))
            messages = self.compile(path, made, made + ".o", os.path.dirname(os.path.join(ROOT, path)))
            if messages is None:
                return made + ".o", [number for _, taken in inside.values() for number in taken]
            wrong = {int(n) for n in re.findall(re.escape(path) + r":(\d+):\d+: (?:error|  required)", messages)}
            if not wrong & set(inside):
                print(messages[:2000], file=sys.stderr)
                sys.exit(f"{path} does not compile with its mutants, and no line of theirs is named")
            for line in wrong:
                inside.pop(line, None)
        return None, []

    def program_of(self, numbered, scratch, jobs):
        """Compiles and links all. Returns the program and the numbers of the mutants in it."""
        by_path = collections.defaultdict(list)
        for number, mutant in enumerate(numbered, 1):
            by_path[mutant.path].append((number, mutant))
        for path in by_path:
            if path not in self.compiling:
                sys.exit(f"{path} is not compiled for greta_tests")
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            woven_in = dict(zip(by_path, pool.map(lambda p: self.weave(p, by_path[p], scratch), by_path)))
        link, inside = shlex.split(self.linking), []
        switch = os.path.join(scratch, "switch.cpp")
        with open(switch, "w") as file:
            file.write(SWITCH)
        model = next(path for path in self.compiling if path.startswith("tests/"))
        messages = self.compile(model, switch, switch + ".o", scratch)
        if messages:
            sys.exit(messages)
        program = os.path.join(scratch, "greta_tests")
        link[link.index("-o") + 1] = program
        front = [switch + ".o"]
        for path, (made, numbers) in woven_in.items():
            if not made:
                continue
            words = shlex.split(self.compiling[path])
            original = words[words.index("-o") + 1]
            inside += numbers
            if original in link:
                link[link.index(original)] = made
            else:  # in an archive, before which an object wins
                front.append(made)
        done = subprocess.run(link[:1] + front + link[1:], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit("the program does not link:\n" + done.stderr[:2000])
        return program, sorted(inside)


def spec_of(name):
    return re.sub(r'([\\,\[\]*"~])', r"\\\1", name)


class Tests:
    """The tests that come by each mutant, from a run of the program without one."""

    def __init__(self, program, spec, scratch):
        self.program = program
        notes = os.path.join(scratch, "notes")
        environment = os.environ | {"GRETA_MUTANT_NOTES": notes}
        subprocess.run([program, spec], cwd=scratch, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.seconds, self.by_mutant = {}, collections.defaultdict(list)
        failed = []
        for name, note in notes_of(notes).items():
            if note is None or note[0] == "failed":
                failed.append(name)
                continue
            self.seconds[name] = note[1]
            for number in note[2]:
                self.by_mutant[number].append(name)
        if failed:
            print("without a mutant these tests fail, and are left out: " + ", ".join(failed), file=sys.stderr)

    def rounds(self, number):
        """The tests of a mutant, quick ones first, in lists that take the seconds of ROUNDS."""
        names = sorted(self.by_mutant[number], key=self.seconds.get)
        for most in ROUNDS:
            taken, sum_of = [], 0
            while names and sum_of + self.seconds[names[0]] <= most:
                sum_of += self.seconds[names[0]]
                taken.append(names.pop(0))
            if taken:
                yield taken, max(LEAST_SECONDS, TIMES_AS_LONG * sum_of)

    def find(self, number):
        """The test that finds a mutant, or None."""
        with tempfile.TemporaryDirectory() as scratch:
            chosen, notes = os.path.join(scratch, "chosen"), os.path.join(scratch, "notes")
            for names, limit in self.rounds(number):
                with open(chosen, "w") as file:
                    file.write("\n".join(map(spec_of, names)) + "\n")
                environment = os.environ | {"GRETA_MUTANT": str(number), "GRETA_MUTANT_NOTES": notes}
                try:
                    code = subprocess.run([self.program, "-f", chosen, "--abort"], cwd=scratch, env=environment, timeout=limit,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
                except subprocess.TimeoutExpired:
                    code = 1
                if code not in (0, 4):
                    return list(notes_of(notes))[-1]
        return None


def rows_of(path):
    if not path or not os.path.exists(path):
        return []
    with open(path) as file:
        return [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]


def chosen(arguments):
    equal = {(row[0], row[1]) for row in rows_of(EQUAL)}
    again = {(row[0], row[1], row[3]) for row in rows_of(arguments.list) if row[4] == "survived"} if arguments.again else None
    for path in arguments.paths or SOURCES:
        if path not in SOURCES:
            sys.exit(f"{path} is none of SOURCES")
        of_path = [m for m in mutants_of(path) if (m.path, m.text.strip()) not in equal and (again is None or m.key() in again)]
        if again is None and arguments.each and len(of_path) > arguments.each:
            of_path = random.Random(f"{arguments.seed} {path}").sample(of_path, arguments.each)
        yield from sorted(of_path, key=lambda m: m.line)


HEAD = """# Mistakes that were planted by mutants.py: path, line, change, the line as it becomes, what came of it, and the test that
# found it first. `equal` are those of equal.tsv: they change nothing that can be seen.
"""


def write_list(path, results):
    """Puts results into the rows of a list, in the order of paths and lines."""
    rows = {(row[0], row[1], row[3]): row for row in rows_of(path)}
    for mutant, result in results.items():
        rows[mutant.key()] = [mutant.path, str(mutant.line), mutant.change, mutant.text.strip(), *result]
    equal = {(row[0], row[1]) for row in rows_of(EQUAL)}
    for row in rows.values():
        if (row[0], row[3]) in equal and row[4] != "found":  # a line of the same text may be found elsewhere
            row[4:] = ["equal", ""]
    with open(path, "w") as file:
        file.write(HEAD)
        for row in sorted(rows.values(), key=lambda row: (row[0], int(row[1]), row[3])):
            file.write("\t".join(row) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build/mutants"))
    parser.add_argument("--folders", default="")
    parser.add_argument("--tests", default=TESTS)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--each", type=int, default=16)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--list")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("paths", nargs="*")
    arguments = parser.parse_args()
    build = Build(os.path.abspath(arguments.build), arguments.folders)
    mutants = list(chosen(arguments))
    results = {}
    end = time.monotonic() + arguments.minutes * 60
    with tempfile.TemporaryDirectory() as scratch:
        program, inside = build.program_of(mutants, scratch, arguments.jobs)
        print(f"{len(mutants)} mutants, of which {len(inside)} compile", flush=True)
        tests = Tests(program, arguments.tests, scratch)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            def attempt(number):
                return tests.find(number) if time.monotonic() < end else "late"
            for number, name in zip(inside, pool.map(attempt, inside)):
                mutant = mutants[number - 1]
                if name == "late":
                    continue
                results[mutant] = ("found", name) if name else ("survived", "" if tests.by_mutant[number] else "no test")
                if not name:
                    print(f"{mutant.path}\t{mutant.line}\t{mutant.change}\t{mutant.text.strip()}\t{results[mutant][1]}", flush=True)
                if arguments.list:
                    write_list(arguments.list, results)
    found = sum(result[0] == "found" for result in results.values())
    print(f"{len(results)} mutants, {found} found, {len(results) - found} survived, {len(inside) - len(results)} not tried")
    return 0


if __name__ == "__main__":
    sys.exit(main())
