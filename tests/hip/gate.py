"""Holds the machine code of all HIP kernels to rules, and against a baseline.

    gate.py KERNELS --llvm FOLDER --clang CLANG [--baselines FOLDER] [--update] [--complete] [--list] [NAME...]

KERNELS has a line for each kernel and target: name, target, threads of a group, generated source and code object, with
tabs between (build/release/generated/hip_kernels.tsv). NAME... chooses kernels; it may have wildcards. The tools of
FOLDER read the code objects.

Nobody runs these kernels where they are made. What no emulator sees is seen here: registers, memory that spills, waits
between the dies of a GPU, the length of loops. RULES says what must be true of which kernels. A baseline has the
figures of each kernel (tests/hip/baseline/TARGET.tsv); it is of one compiler, and another is held to the rules alone.
What has grown past the slack fails. --update writes the baseline, and --complete fails on kernels that it lacks.
"""
import argparse
import concurrent.futures
import dataclasses
import fnmatch
import os
import re
import subprocess
import sys
import typing

import code_paths
import machine_code

BASELINE_CLANG = "22"


@dataclasses.dataclass(frozen=True)
class Rule:
    name: str
    kernels: str  # patterns with blanks between
    targets: str
    broken: typing.Callable  # gives what is wrong with a kernel, or None

    def covers(self, kernel):
        return matches(kernel.name, self.kernels) and matches(kernel.target, self.targets)


def matches(name, patterns):
    """Whether one of the patterns fits, and none of those that begin with an exclamation mark."""
    words = patterns.split()
    return (any(fnmatch.fnmatchcase(name, word) for word in words if word[0] != "!")
            and not any(fnmatch.fnmatchcase(name, word[1:]) for word in words if word[0] == "!"))


def forbids(pattern, why):
    search = re.compile(f"^({pattern})[^\n]*", re.M).search

    def broken(kernel):
        found = search(kernel.text)
        return f"'{found.group()}': {why}" if found else None

    return broken


def needs(pattern, why):
    search = re.compile(f"^({pattern})", re.M).search
    return lambda kernel: None if search(kernel.text) else why


def at_most(field, limit, why):
    def broken(kernel):
        value = kernel.number(field)
        return f"{value} {field}, at most {limit}: {why}" if value > limit else None

    return broken


def group_is_stated(kernel):
    value = kernel.number("max_flat_workgroup_size")
    return None if value == kernel.threads else f"compiled for groups of {value} threads, its line says {kernel.threads}"


def group_is_row(kernel):
    """The threads of a decode row are a field of its block, so it is compiled for more than its line says."""
    value = kernel.number("max_flat_workgroup_size")
    return None if kernel.threads <= value <= 512 else f"compiled for groups of {value} threads, not {kernel.threads} to 512"


def wave_is_right(kernel):
    value, wanted = kernel.number("wavefront_size"), 64 if kernel.wide else 32
    return None if value == wanted else f"waves of {value} lanes, not {wanted}"


def no_hidden(kernel):
    return f"takes {kernel.hidden[0]}, which the backend does not pass" if kernel.hidden else None


def ordered(atomic, before, behind):
    """An atomic that gives its old value is a ticket: what other groups wrote is seen behind the last one alone if caches
    are written back before it and forgotten behind it."""
    atomic, before, behind = (re.compile(word) for word in (atomic, before, behind))

    def broken(kernel):
        texts = [line[2] for line in kernel.lines]
        for i, text in enumerate(texts):
            if not text.startswith("global_atomic") or not atomic.search(text):
                continue
            for word, part, where in ((before, texts[:i], "before"), (behind, texts[i + 1:], "behind")):
                if not any(map(word.match, part)):
                    return f"no '{word.pattern}' {where} '{text}'"
        return None

    return broken


def meets_over_dies(kernel):
    """Groups of a persistent kernel write their die's cache back, drop what it holds, and know their die."""
    for pattern in ("buffer_wbl2 sc1", "buffer_inv sc1", "s_getreg_b32 .*XCC_ID"):
        if not re.search(f"^{pattern}", kernel.text, re.M):
            return f"no '{pattern}'"
    return None


def loop_at_most(limit):
    def broken(kernel):
        value = machine_code.instructions_a_weight(kernel)
        if value is None:
            return "no loop with v_dot4 to count"
        return f"{value:.2f} instructions a weight in the inner loop, at most {limit}" if value > limit else None

    return broken


def group_at_most(rounds, limit):
    def broken(kernel):
        value = code_paths.whole_group_a_weight(kernel, rounds)
        if value is None:
            return "no loop with v_dot4 to count"
        return f"{value:.2f} instructions a weight in groups of {rounds} rounds, at most {limit}" if value > limit else None

    return broken


def takes_turns(kernel):
    """Waves of one half multiply, at a higher priority, while those of the other load: the loops of the two halves have the
    same barriers, and store together at the last."""
    most = len(machine_code.matrix_products(kernel.tile_loop()))
    turns = sorted("".join(machine_code.turns(loop)) for loop in kernel.loops()
                   if most and len(machine_code.matrix_products(loop)) == most)
    wanted = ["load multiply load multiply store ", "multiply load multiply load store "]
    return None if turns == wanted else f"its halves take the turns {turns}"


def tile_loop_at_most(limit):
    def broken(kernel):
        value = machine_code.others_a_product(kernel)
        if value is None:
            return "no loop with matrix instructions to count"
        return f"{value:.2f} other instructions for each matrix instruction, at most {limit}" if value > limit else None

    return broken


def under_way(*least):
    """Loads of the next step stay under way while this one is multiplied: in each of so many loops at least these matrix
    instructions lie between any load and the wait for it."""
    def broken(kernel):
        found = code_paths.products_under_way(kernel)
        if len(found) >= len(least) and all(count >= limit for count, limit in zip(found, least)):
            return None
        return f"loads wait behind {found} matrix instructions in its loops, at least {list(least)}"

    return broken


# Kernels of decode, by what their products are of.
DOT_ROWS = "matmul_rows_* matmul_expert_rows_* matmul_expert_summed_* !*_float_*"
ALL_ROWS = "matmul_rows_* matmul_expert_rows_* matmul_expert_summed_*"
NOT_ROWS = "!matmul_rows_* !matmul_expert_rows_* !matmul_expert_summed_*"
TILES = "matmul_tiles_* matmul_expert_tiles_* matmul_wide_*"
NOT_TILES = "* !matmul_tiles_* !matmul_expert_tiles_* !matmul_wide_*"
PROMPTS = "attention_tiles_* attention_wide_* attention_prefix_*"
# Tiles of types whose pieces are loaded a step ahead, as they lie (kernels/gpu/pieces).
AHEAD_TILES = "matmul_tiles_*_q4_k* matmul_tiles_*_f16"
AHEAD_WIDE = "matmul_wide_*_q4_k* matmul_wide_*_f16 matmul_wide_*_q8_0*"
NOT_MATRICES = f"{NOT_TILES} !attention_tiles_* !attention_wide_* !attention_prefix_* !scan_chunks"
GFX94 = "gfx942 gfx950 gfx9-4-generic"
# Its matrix instruction makes two products of the others', so each of them has twice as many others. For Q4_K it has 16
# more for 32 of them in tiles, 64 in wide ones: conversions to halves by pairs, which this target has, in place of
# multiply-adds to halves.
NOT_GFX950 = "!gfx950"
RULES = [
    Rule("flat", "*", "*", forbids("flat_", "an address has lost its ADDRESS type")),
    Rule("scratch", "*", "*", at_most("private_segment_fixed_size", 0, "bytes of scratch memory for each lane")),
    Rule("spilled vector registers", "*", "*", at_most("vgpr_spill_count", 0, "they go to memory")),
    Rule("spilled scalar registers", "* !decode_stages !attention_behind", "*",
         at_most("sgpr_spill_count", 0, "they go to vector registers")),
    Rule("spilled scalar registers", "attention_behind", "*",  # two on gfx90a, since what is not finite stays so
         at_most("sgpr_spill_count", 2, "they go to vector registers")),
    Rule("calls", "*", "*", forbids("s_swappc_b64", "a function was not inlined")),
    Rule("group", f"* {NOT_ROWS}", "*", group_is_stated),
    Rule("group", ALL_ROWS, "*", group_is_row),
    Rule("wave", "*", "*", wave_is_right),
    Rule("hidden arguments", "*", "*", no_hidden),
    Rule("vector registers", NOT_MATRICES, "gfx9*", at_most("vgpr_count", 128, "four waves on a SIMD")),
    Rule("vector registers", NOT_MATRICES, "gfx1*", at_most("vgpr_count", 192, "eight waves on a SIMD")),
    # A state of 128 keys by 32 columns in 64 threads; a model has few such groups.
    Rule("scan registers", "scan_chunks", "*", at_most("vgpr_count", 256, "two waves on a SIMD of CDNA, all that RDNA has")),
    Rule("shared memory", NOT_TILES, "*", at_most("group_segment_fixed_size", 32 * 1024, "two groups on a unit")),
    Rule("meetings", "decode_stages", GFX94, meets_over_dies),
    Rule("ticket", "* !decode_stages", GFX94, ordered(r"\bsc0\b", "buffer_wbl2 sc1", "buffer_inv sc1")),
    Rule("ticket", "* !decode_stages", "gfx90a", ordered(r"\bglc\b", r"s_waitcnt.*vmcnt\(0\)", "buffer_wbinvl1_vol")),
    Rule("ticket", "*", "gfx10* gfx11*", ordered(r"\bglc\b", r"s_waitcnt_vscnt null, 0x0", "buffer_gl1_inv")),
    Rule("ticket", "*", "gfx12*", ordered("TH_ATOMIC_RETURN", "s_wait_storecnt 0x0", "global_inv scope:SCOPE_DEV")),
    Rule("16-byte loads", ALL_ROWS, "*", needs("global_load_(dwordx4|b128)", "no loads of 16 bytes")),
    Rule("products of bytes", DOT_ROWS, "*", needs("v_dot4", "no v_dot4")),
    Rule("tile registers", TILES, "gfx9*", at_most("vgpr_count", 256, "two waves on a SIMD")),
    Rule("tile registers", "matmul_tiles_*_q4_k*", "gfx1*", at_most("vgpr_count", 240, "six waves on a SIMD")),
    Rule("tile memory", f"{TILES} !matmul_wide_*", "*",
         at_most("group_segment_fixed_size", 40 * 1024, "a tile, and tables of 8 KiB")),
    Rule("turns", "matmul_wide_*", "*", takes_turns),
    Rule("matrix instructions", f"{TILES} {PROMPTS} products_mfma products_wmma", "*", needs("v_(mfma|wmma)", "no matrix instructions")),
    Rule("tile loop", "matmul_tiles_*_q4_k*", f"gfx9* {NOT_GFX950}", tile_loop_at_most(2.35)),
    Rule("tile loop", "matmul_wide_*_q4_k*", f"gfx9* {NOT_GFX950}", tile_loop_at_most(1.3)),
    Rule("tile loop", "matmul_tiles_*_q4_k*", "gfx950", tile_loop_at_most(5.1)),
    Rule("tile loop", "matmul_wide_*_q4_k*", "gfx950", tile_loop_at_most(2.9)),
    Rule("tile loop", "matmul_tiles_*_q4_k*", "gfx1*", tile_loop_at_most(6.5)),
    Rule("attention registers", "attention_tiles_* attention_prefix_*", "gfx9*", at_most("vgpr_count", 168, "three waves on a SIMD")),
    Rule("attention registers", "attention_wide_*", "gfx9*", at_most("vgpr_count", 128, "two groups on a unit")),
    Rule("attention loop", "attention_tiles_* attention_prefix_*", f"gfx9* {NOT_GFX950}", tile_loop_at_most(7.5)),
    Rule("attention loop", "attention_wide_*", f"gfx9* {NOT_GFX950}", tile_loop_at_most(9.2)),
    Rule("attention loop", "attention_tiles_* attention_prefix_*", "gfx950", tile_loop_at_most(15)),
    Rule("attention loop", "attention_wide_*", "gfx950", tile_loop_at_most(18.4)),
    Rule("attention loop", "attention_tiles_*", "gfx1*", tile_loop_at_most(15.5)),
    Rule("attention loop", "attention_wide_* attention_prefix_*", "gfx1*", tile_loop_at_most(20.5)),
    Rule("prefetch", "attention_tiles_* attention_prefix_*", f"gfx9* {NOT_GFX950}", under_way(16, 16, 8, 8)),
    Rule("prefetch", "attention_tiles_* attention_prefix_*", "gfx950", under_way(8, 8, 4, 4)),
    Rule("prefetch", "attention_tiles_*", "gfx1*", under_way(16, 16, 8, 8)),
    Rule("prefetch", "attention_prefix_*", "gfx11*", under_way(8, 8)),
    Rule("prefetch", "attention_prefix_*", "gfx12*", under_way(8)),  # not in the loop of q8_0 keys
    Rule("prefetch", AHEAD_TILES, f"gfx9* {NOT_GFX950}", under_way(64, 32, 8)),
    Rule("prefetch", AHEAD_TILES, "gfx950", under_way(32, 16, 4)),
    Rule("prefetch", AHEAD_TILES, "gfx1*", under_way(32, 16, 4)),
    Rule("prefetch", AHEAD_WIDE, f"gfx9* {NOT_GFX950}", under_way(64, 64)),
    Rule("prefetch", AHEAD_WIDE, "gfx950", under_way(32, 32)),
    Rule("indexed registers", f"{TILES} {PROMPTS}", "*",
         forbids("s_set_gpr_idx_on|v_movrel", "a loop over registers was not unrolled")),
    Rule("products loop", "products_mfma products_wmma", f"* {NOT_GFX950}", tile_loop_at_most(1)),
    Rule("products loop", "products_mfma", "gfx950", tile_loop_at_most(1.5)),
    Rule("row registers", "matmul_rows_q4_k*", "gfx9*", at_most("vgpr_count", 80, "six waves on a SIMD")),
    Rule("row registers", "matmul_rows_q4_k*", "gfx1*", at_most("vgpr_count", 96, "sixteen waves on a SIMD")),
    Rule("row loop", "matmul_rows_q4_k*", "gfx9*", loop_at_most(2.0)),
    # Whole groups of 256 threads go through it 2 times at a depth of 4096, 7 times at 14336.
    Rule("row group", "matmul_rows_q4_k*", "gfx9*", group_at_most(2, 3.4)),
    Rule("row group", "matmul_rows_q4_k*", "gfx9*", group_at_most(7, 2.3)),
    Rule("row loop", "matmul_rows_q4_k*", "gfx10* gfx11*", loop_at_most(2.2)),
    Rule("row loop", "matmul_rows_q4_k*", "gfx12*", loop_at_most(2.3)),
]

# What a baseline has of a kernel, and how much it may grow: a part of it, and beside this a number. The loop is that of a
# row, or that of a tile.
COLUMNS = {"vgprs": (0, 4), "sgprs": (0, 16), "lds": (0, 0), "bytes": (0.1, 256), "loop": (0.03, 0.02)}


def figures(kernel):
    loop = machine_code.others_a_product(kernel) or machine_code.instructions_a_weight(kernel)
    return {"vgprs": kernel.number("vgpr_count"), "sgprs": kernel.number("sgpr_count"),
            "lds": kernel.number("group_segment_fixed_size"), "bytes": kernel.code_bytes,
            "loop": round(loop, 3) if loop else 0}


def grown(kernel, before):
    """What of a kernel is more than its baseline allows."""
    for column, now in figures(kernel).items():
        part, number = COLUMNS[column]
        if now > before[column] * (1 + part) + number:
            yield f"{now} {column}, the baseline has {before[column]:g}"


def read_baseline(path):
    """The figures of each kernel by its name, and the clang that they are of."""
    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {name: dict(zip(COLUMNS, map(float, values))) for name, *values in lines}


def write_baseline(path, kernels):
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"# clang {BASELINE_CLANG}\n# kernel\t" + "\t".join(COLUMNS) + "\n")
        for kernel in sorted(kernels, key=lambda kernel: kernel.name):
            file.write("\t".join([kernel.name, *(f"{value:g}" for value in figures(kernel).values())]) + "\n")


def read_kernels(path, names, llvm):
    """Machine code of the kernels of a list, a code object at a time."""
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.strip()]
    chosen = [row for row in rows if not names or any(fnmatch.fnmatchcase(row[0], name) for name in names)]
    tools = [os.path.join(llvm, tool) for tool in ("llvm-objdump", "llvm-readelf")]
    objects = sorted({row[4] for row in chosen})
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        contents = dict(zip(objects, pool.map(machine_code.read, objects, *([tool] * len(objects) for tool in tools))))
    kernels = []
    for name, target, threads, _, path in chosen:
        fields, code = contents[path]
        if name not in fields or not code.get(name):
            sys.exit(f"{path} has no kernel {name}")
        kernels.append(machine_code.Kernel(name, target, int(threads), *fields[name], code[name]))
    return kernels


def failures_of(kernels, baselines):
    """Pairs of a kernel and a rule's name with what is wrong."""
    for kernel in kernels:
        for rule in RULES:
            if rule.covers(kernel) and (wrong := rule.broken(kernel)):
                yield kernel, f"{rule.name}: {wrong}"
        before = baselines.get(kernel.target, {}).get(kernel.name)
        if before:
            for wrong in grown(kernel, before):
                yield kernel, f"growth: {wrong}"


def tools_are_there(llvm):
    """Whether the code objects can be read; without tools a test is skipped."""
    missing = [tool for tool in ("llvm-objdump", "llvm-readelf") if not os.path.isfile(os.path.join(llvm, tool))]
    if missing:
        print(f"skipped: there is no {' and no '.join(missing)} in {llvm} beside clang")
    return not missing


def clang_version(clang):
    said = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"version (\d+)", said).group(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels")
    parser.add_argument("names", nargs="*")
    for name in ("--llvm", "--clang"):
        parser.add_argument(name, required=True)
    parser.add_argument("--baselines", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "baseline"))
    for name in ("--update", "--complete", "--list"):
        parser.add_argument(name, action="store_true")
    args = parser.parse_intermixed_args()

    if not tools_are_there(args.llvm):
        return 77
    try:
        kernels = read_kernels(args.kernels, args.names, args.llvm)
    except RuntimeError as error:  # a tool that cannot read a code object
        sys.exit(str(error))
    targets = sorted({kernel.target for kernel in kernels})
    paths = {target: os.path.join(args.baselines, f"{target}.tsv") for target in targets}
    version = clang_version(args.clang)
    compared = version == BASELINE_CLANG
    if args.update:
        if not compared or args.names:
            sys.exit(f"a baseline is of all kernels as clang {BASELINE_CLANG} makes them; this is clang {version}")
        os.makedirs(args.baselines, exist_ok=True)
        for target, path in paths.items():
            write_baseline(path, [kernel for kernel in kernels if kernel.target == target])
    elif not compared:
        print(f"the baseline is of clang {BASELINE_CLANG}, this is clang {version}: the rules alone")
    baselines = {target: read_baseline(path) if compared else {} for target, path in paths.items()}

    if args.list:
        for kernel in kernels:
            print(kernel.name, kernel.target, *(f"{name} {value:g}" for name, value in figures(kernel).items()))
    failures = list(failures_of(kernels, baselines))
    for kernel, wrong in failures:
        print(f"FAILED: {kernel.name} {kernel.target}: {wrong}")
    new = [kernel for kernel in kernels if compared and kernel.name not in baselines[kernel.target]]
    print(f"{len(kernels)} kernels for {', '.join(targets)}, {len(failures)} failures, {len(new)} without a baseline")
    return 1 if failures or (new and args.complete) or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
