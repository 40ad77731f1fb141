"""Holds the inner loops of the CPU's decode rows to the clocks that llvm-mca predicts for several processors.

    gate.py --mca LLVM_MCA --objdump OBJDUMP [--baseline FILE] [--update] OBJECT...

An OBJECT is a compiled file of vector kernels, such as avx512vnni_q4_k.cpp.o. Its loop is the one with the most
instructions of vectors in the function that multiplies rows by one token. The baseline has the clocks of one pass through
it, all data being in the first-level cache. What has grown by more than SLACK fails. A baseline is of one compiler and one
llvm-mca; with others nothing is compared, and the exit code is 77. --update writes the baseline.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

PROCESSORS = ["znver3", "znver4", "sapphirerapids"]  # what LLVM 19 knows of Zen 5 is Zen 4's
SLACK = 1.03
PASSES = 50
# Two rows at a time of types with blocks, four or one of floats, sixteen of packed rows; all times one token.
ROWS = re.compile(r"Rows.*(4rowsILi[24]ELi1E|3rowILi1E)|4Rows4rowsILi1E")
SKIPPED = 77


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def functions(objdump, path):
    """The instructions of each function: pairs of an address and a text."""
    name, found = None, {}
    for line in run([objdump, "-d", "--no-show-raw-insn", "-M", "intel", path]).splitlines():
        if begin := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            name = begin[1]
            found[name] = []
        elif name and (instruction := re.match(r"\s+([0-9a-f]+):\s+(.*)", line)):
            found[name].append((int(instruction[1], 16), instruction[2].strip()))
    return found


def loop_of(instructions):
    """The texts of the loop with the most instructions of vectors, its jump last."""
    most, loop = 0, None
    for address, text in instructions:
        jump = re.match(r"j\w+\s+([0-9a-f]+)\b", text)
        if not jump or not instructions[0][0] <= int(jump[1], 16) < address:
            continue
        body = [text for at, text in instructions if int(jump[1], 16) <= at <= address]
        vectors = sum(bool(re.search(r"[yz]mm", text)) for text in body)
        if vectors > most:
            most, loop = vectors, body
    return loop


def assembly(loop):
    """Text that llvm-mca reads: no comments, no symbols, jumps to the loop's begin, its own word for broadcasts."""
    lines = [".intel_syntax noprefix", ".L0:"]
    for text in loop:
        text = re.sub(r"<.*?>|#.*", "", text)
        text = re.sub(r"\[rip.*?\]", "[rip]", text)
        elements = (64 if "zmm" in text else 32) // (8 if "QWORD BCST" in text else 4)
        text = re.sub(r"WORD BCST (\[.*?\])", rf"WORD PTR \1{{1to{elements}}}", text)
        lines.append(re.sub(r"^(j\w+)\s.*", r"\1 .L0", text))
    return "\n".join(lines) + "\n"


def clocks(mca, loop, processor):
    report = run([mca, f"-mcpu={processor}", f"-iterations={PASSES}"], assembly(loop))
    return int(re.search(r"Total Cycles:\s+(\d+)", report)[1]) / PASSES


def measure(mca, loop):
    """Clocks by processor; those that lack the instructions are left out."""
    found = {}
    for processor in PROCESSORS:
        if processor == "znver3" and any(re.search(r"zmm|[xy]mm(1[6-9]|[23]\d)", text) for text in loop):
            continue
        found[processor] = clocks(mca, loop, processor)
    return found


def slower(kernel, now, before):
    """What has grown past the slack, in words."""
    for processor, value in now.items():
        if processor in before and value > before[processor] * SLACK + 0.5:
            yield f"{kernel}: {value:g} clocks on {processor}, the baseline has {before[processor]:g}"


def versions(mca, objdump, path):
    comment = run([objdump, "-s", "-j", ".comment", path])
    lines = [line[43:] for line in comment.splitlines() if re.match(r" [0-9a-f]{4} ", line)]
    compiler = re.search(r"GCC: \(.*?\) (\d+)", "".join(lines))
    llvm = re.search(r"version (\d+)", run([mca, "--version"]))
    return f"GCC {compiler[1] if compiler else '?'}, LLVM {llvm[1] if llvm else '?'}"


def read_baseline(path):
    lines = open(path, encoding="utf-8").read().splitlines()
    columns = lines[1].split("\t")
    rows = (dict(zip(columns, line.split("\t"))) for line in lines[2:])
    return lines[0][2:], {row["kernel"]: {p: float(row[p]) for p in PROCESSORS if row.get(p, "-") != "-"} for row in rows}


def write_baseline(path, made_by, figures):
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"# {made_by}\n" + "\t".join(["kernel"] + PROCESSORS) + "\n")
        for kernel, now in sorted(figures.items()):
            out.write("\t".join([kernel] + [f"{now[p]:g}" if p in now else "-" for p in PROCESSORS]) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mca", required=True)
    parser.add_argument("--objdump", required=True)
    parser.add_argument("--baseline", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "baseline/rows.tsv"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("objects", nargs="+")
    arguments = parser.parse_args()

    if not all(shutil.which(tool) for tool in (arguments.mca, arguments.objdump)):
        print("llvm-mca or objdump is missing")
        return SKIPPED
    objects = [path for path in arguments.objects if path.endswith(".o")]  # CMake names a precompiled header too
    made_by = versions(arguments.mca, arguments.objdump, objects[0])
    before = {}
    if not arguments.update:
        wanted, before = read_baseline(arguments.baseline)
        if made_by != wanted:
            print(f"the baseline is of {wanted}, these are {made_by}")
            return SKIPPED

    figures, faults, spoiled = {}, [], False
    for path in objects:
        kernel = os.path.basename(path).split(".")[0]
        loops = [loop_of(body) for name, body in functions(arguments.objdump, path).items() if ROWS.search(name)]
        loops = [loop for loop in loops if loop]
        if not loops:
            continue
        loop = max(loops, key=len)
        figures[kernel] = measure(arguments.mca, loop)
        if arguments.update:
            continue
        if kernel not in before:
            faults.append(f"{kernel}: the baseline lacks it; --update writes it")
            continue
        faults += slower(kernel, figures[kernel], before[kernel])
        if not spoiled:  # The gate must see a loop that does everything twice.
            spoiled = True
            if not list(slower(kernel, measure(arguments.mca, loop[:-1] + loop), before[kernel])):
                faults.append(f"{kernel}: twice the loop passes")
    faults += [f"{kernel}: its loop is not found" for kernel in before if kernel not in figures]
    if arguments.update:
        write_baseline(arguments.baseline, made_by, figures)
    print(f"{len(figures)} loops, {len(faults)} faults", *faults, sep="\n")
    return 1 if faults else 0


sys.exit(main())
