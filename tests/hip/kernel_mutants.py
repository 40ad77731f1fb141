"""Plants mistakes in HIP kernels, and sees that the self-test on the mock runtime finds each of them.

    kernel_mutants.py PROGRAM MOCK CLANG FLAG... [-- all | -- NAME...]

PROGRAM is greta-cli, MOCK the build folder of tests/mock_hip, CLANG and the FLAGs are what that compiles kernels with.
NAME... chooses mutants by the kernel that they are tried with. Otherwise a barrier of each source is tried, or all of them,
and the swapped layouts. A mutant is a copy of one source with one line changed. It
is built as a library that is loaded before the mock runtime, which then runs it in place of its own kernel. Several orders
of waves and lanes are tried, since a mistake may be right by chance in one.
"""
import concurrent.futures
import os
import re
import resource
import subprocess
import sys
import tempfile
import typing

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SEEDS = "0123"
MOST_SECONDS = 300
STACK_BYTES = 64 << 20
BARRIER = re.compile(r"(group_)?barrier\(\);|meet_threads\(GROUP\);")
ARCH, KIND, MACROS = "gfx942", "wave64", ("-D__GFX9__", "-D__gfx942__")  # as tests/mock_hip has them


class Mutant(typing.NamedTuple):
    kernel: str
    source: str
    what: str
    change: typing.Callable  # makes the wrong text of the right one


def without(index):
    """Takes barrier `index` of a source away."""
    def change(text):
        found = list(BARRIER.finditer(text))[index]
        return text[:found.start()] + "(void)0;" + text[found.end():]
    return change


def swapped(right, wrong):
    def change(text):
        if right not in text:
            sys.exit(f"no source has '{right}' any more: change the mutant with it")
        return text.replace(right, wrong, 1)
    return change


# Sources with barriers, and the kernel that each is tried with.
BARRIERS = {
    "kernels/hip/attention/split.h": "attention_split",
    "kernels/hip/attention/attention_split.hip": "attention_split",
    "kernels/hip/attention/attention_heads.h": "attention_heads",
    "kernels/hip/attention/attention_plain.hip": "attention_plain",
    "kernels/hip/sample/sample_filtered.h": "sample_plain",
    "kernels/hip/sample/sample_plain.hip": "sample_plain",
    "kernels/hip/reduce.h": "sample_plain",
    "kernels/hip/matvec/matmul_rows.hip": "matmul_rows_q8_0_planes",
    "kernels/hip/matvec/matmul_rows_normed.hip": "matmul_rows_normed_q8_0_planes",
    "kernels/hip/matvec/normed_results.h": "matmul_rows_normed_q8_0_planes",
    "kernels/hip/matvec/matmul_rows_float.hip": "matmul_rows_float_f16",
    "kernels/hip/matvec/matmul_rows_float_normed.hip": "matmul_rows_float_normed_f16",
    "kernels/hip/matvec/matmul_expert_rows.hip": "matmul_expert_rows_q8_0_planes",
    "kernels/hip/matvec/matmul_expert_summed.hip": "matmul_expert_summed_q8_0_planes",
    "kernels/hip/norm/rope_heads.hip": "rope_heads",
    "kernels/hip/gemm/tile.h": "matmul_tiles_mfma_q8_0_planes",
    "kernels/hip/gemm/ping_pong.h": "matmul_wide_mfma_q8_0_planes",
    "kernels/hip/gemm/slots.h": "matmul_expert_tiles_mfma_q8_0_planes",
    "kernels/hip/attention/tiles.h": "attention_wide_mfma",
    "kernels/hip/group_ticket.h": "matmul_rows_normed_q8_0_planes",
    "kernels/hip/experts/route.h": "route_plain",
    "kernels/hip/experts/route_matmul.hip": "route_matmul",
    "kernels/gpu/dot/shared/iq_rows.h": "matmul_rows_iq2_s_planes",
    "kernels/gpu/quant/shared/iq_grid.h": "embed_plain_iq2_s",
}

# Barriers that no run on the mock can miss, by their source and index: without them the kernel is right too, but for the last.
UNSEEN = {
    ("kernels/hip/sample/sample_filtered.h", 0): "a bin that is cleared too early decides the same",
    ("kernels/hip/sample/sample_filtered.h", 5): "the sums before have barriers",
    ("kernels/hip/sample/sample_plain.hip", 3): "the maximum behind it begins with a barrier",
    ("kernels/hip/matvec/matmul_rows_float_normed.hip", 1): "the ticket before has barriers",
    ("kernels/hip/group_ticket.h", 0): "groups of one thread of the mock run one after the other, so no other group is early",
}

# Layouts in which two things have changed places.
SWAPPED = [
    ("matmul_rows_q8_0_planes", "kernels/hip/matvec/sums_int8.h", "load<uvec4>(x.quants + unit * 32)",
     "load<uvec4>(x.quants + unit * 32 + 16)"),
    ("matmul_rows_q8_0_planes", "kernels/hip/matvec/group.h", "(share.slice * share.sets + set) * kWaveRows",
     "(set * share.slices + share.slice) * kWaveRows"),
    ("attention_split", "kernels/hip/attention/split.h", "vec4{sums[0].x, sums[0].y, sums[1].x, sums[1].y}",
     "vec4{sums[0].x, sums[1].x, sums[0].y, sums[1].y}"),
    ("matmul_tiles_mfma_q8_0_planes", "kernels/hip/gemm/tile.h", "kLayout.row_of_result(lane(), r)", "(r * 4 + lane() / 16)"),
    ("matmul_wide_mfma_q8_0_planes", "kernels/hip/gemm/ping_pong.h", "kPitch / 2, fragments", "0, fragments"),
    ("matmul_wide_mfma_q8_0_planes", "kernels/hip/gemm/matmul_tiles.h", "t.index % token_tiles", "t.index / token_tiles"),
    ("matmul_expert_tiles_mfma_q8_0_planes", "kernels/hip/gemm/slots.h", "word * 4 + j;", "word * 4 + 3 - j;"),
    ("attention_tiles_mfma", "kernels/hip/attention/tile_cache.h", "place * 4 + s / 2 % 4", "place * 4 + 3 - s / 2 % 4"),
    ("attention_tiles_mfma", "kernels/hip/attention/tile_cache.h", "score / kLayout.results * 16", "(1 - score / kLayout.results) * 16"),
    ("kv_write_plain", "kernels/hip/attention/cache.h", "head * kPageTokens + position % kPageTokens",
     "position % kPageTokens * kPageTokens + head"),
]


def read(source):
    with open(os.path.join(ROOT, source), encoding="utf-8") as file:
        return file.read()


def mutants(every):
    """One mutant of each source, or all of them, and the swapped layouts."""
    for source, kernel in BARRIERS.items():
        tried = 0
        for i, found in enumerate(BARRIER.finditer(read(source))):
            if (source, i) in UNSEEN or (tried and not every):
                continue
            tried += 1
            line = read(source)[:found.start()].count("\n") + 1
            yield Mutant(kernel, source, f"no barrier in line {line}", without(i))
    for kernel, source, right, wrong in SWAPPED:
        yield Mutant(kernel, source, f"{wrong} for {right}", swapped(right, wrong))


def build(mutant, folder, mock, compiler):
    """The library of a mutant, in a folder of its own."""
    changed = os.path.join(folder, mutant.source)
    os.makedirs(os.path.dirname(changed))
    with open(changed, "w", encoding="utf-8") as file:
        file.write(mutant.change(read(mutant.source)))
    library = os.path.join(folder, "mutant.so")
    source = os.path.join(mock, f"{mutant.kernel}.{KIND}.cpp")
    subprocess.run([compiler[0], "-I", folder, *compiler[1:], *MACROS, "-g0", "-shared", source, "-o", library,
                    "-L", os.path.join(mock, "lib"), "-l:libamdhip64.so.7"], cwd=ROOT, check=True)
    return library


def finds(program, mock, mutant, library):
    """The first order in which the self-test finds the mistake, or None. One shape is tried before all shapes."""
    for shapes in (["--quick"], []):
        for seed in SEEDS:
            env = {**os.environ, "LD_LIBRARY_PATH": os.path.join(mock, "lib"), "MOCK_HIP_ARCH": ARCH,
                   "MOCK_HIP_SEED": seed, "LD_PRELOAD": library}
            done = subprocess.run([program, "selftest", "--device", "hip0", "--op", mutant.kernel, *shapes], env=env,
                                  capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
            if done.returncode not in (0, 1):
                raise RuntimeError(f"{mutant.source}, {mutant.what}: exit code {done.returncode}: {done.stderr}")
            if done.returncode:
                return f"{seed}{' of one shape' if shapes else ''}"
    return None


def enlarge_stacks():
    """Gives threads of programs that are started from here larger stacks. Shared memory of all the mock's kernels, 8 MB, is
    a thread's own, and if the library is there from a program's start it lies on the thread's stack."""
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES if most == resource.RLIM_INFINITY else min(STACK_BYTES, most), most))


def main():
    enlarge_stacks()
    words = sys.argv[1:]
    names = words[words.index("--") + 1:] if "--" in words else []
    program, mock, *compiler = words[:words.index("--")] if names else words
    if not os.path.isfile(os.path.join(mock, f"attention_split.{KIND}.cpp")):
        print(f"skipped: {mock} has no kernels of {KIND}, since no target of gfx9 was built")
        return 77
    every = names == ["all"]
    chosen = [mutant for mutant in mutants(bool(names)) if every or not names or mutant.kernel in names]

    def tried(mutant):
        with tempfile.TemporaryDirectory() as folder:
            return mutant, finds(program, mock, mutant, build(mutant, folder, mock, compiler))

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, seed in pool.map(tried, chosen):
            failures += seed is None
            print(f"{mutant.kernel}, {mutant.source}, {mutant.what}: {f'seen in order {seed}' if seed else 'NOT SEEN'}", flush=True)
    print(f"{len(chosen)} mutants, {failures} not seen")
    return 1 if failures or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
