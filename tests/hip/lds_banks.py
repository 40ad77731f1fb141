"""Counts how often the lanes of a wave want the same bank of shared memory (LDS), and holds that to a baseline.

    lds_banks.py PROGRAM MOCK CLANG FLAG... [-- --update]

PROGRAM is greta-cli, MOCK the build folder of tests/mock_hip, CLANG and the FLAGs are what that compiles kernels with. Each
kernel is compiled for the host so that all its loads and stores are seen (lds_trace.cpp), and runs the quick self-test on
the mock runtime in place of its own. The figure is clocks of LDS for each phase of an access: 1 is no conflict. It is
counted from addresses, by phases that others have measured on CDNA 4 (lds_trace.cpp); it is no measurement. Accesses are
those of the source: the compiler for AMD may join or split them.

The baseline is tests/hip/baseline/lds_banks.tsv; --update writes it. At last the swizzle of tiles is taken away, which must
show.
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

from kernel_mutants import ARCH, KIND, MACROS, ROOT, enlarge_stacks, read, swapped

BASELINE = os.path.join(ROOT, "tests/hip/baseline/lds_banks.tsv")
HEADER = "# kernel\taccess\tbytes of a lane\tclocks a phase\n"
KERNELS = ("matmul_tiles_mfma_q4_k_planes", "matmul_wide_mfma_q4_k_planes", "matmul_expert_tiles_mfma_q4_k_planes",
           "attention_tiles_mfma", "attention_wide_mfma")
# The quick self-test has heads of 64 values. So that its body for wider ones is seen too, this kernel takes it for all.
WIDER = "attention_tiles_mfma"
WIDER_CHANGE = ("kernels/hip/attention/attention_tiles_mfma.hip", "p.key_width <= 64 && p.value_width <= 64", "false")
SWIZZLE = ("kernels/hip/gemm/tile.h", "(word ^ row % 8)", "word")
MOST_SECONDS = 600


def build(kernel, folder, mock, compiler, change=None):
    """A library with the kernel, whose accesses are seen. `change` is a source, a text in it and what replaces it."""
    if change:
        source, right, wrong = change
        os.makedirs(os.path.dirname(os.path.join(folder, source)))
        with open(os.path.join(folder, source), "w", encoding="utf-8") as file:
            file.write(swapped(right, wrong)(read(source)))
    common = [compiler[0], "-I", folder, *compiler[1:], *MACROS, "-g0"]
    trace, code, library = (os.path.join(folder, name) for name in ("trace.o", "kernel.o", "kernel.so"))
    plain = [word for word in common if not word.startswith("-include") and not word.endswith("device_builtins.h")]
    tracer = os.path.join(ROOT, "tests/hip/lds_trace.cpp")
    subprocess.run([*plain, "-fexceptions", "-c", tracer, "-o", trace], check=True, cwd=ROOT)
    subprocess.run([*common, "-O0", "-fsanitize-coverage=func,trace-loads,trace-stores", "-c",
                    os.path.join(mock, f"{kernel}.{KIND}.cpp"), "-o", code], check=True, cwd=ROOT)
    subprocess.run([compiler[0], "-shared", code, trace, "-o", library, "-L", os.path.join(mock, "lib"),
                    "-l:libamdhip64.so.7", "-lstdc++"], check=True)
    return library


def figures(kernel, program, mock, compiler, change=None):
    """{(access, bytes): clocks a phase} of a kernel."""
    with tempfile.TemporaryDirectory() as folder:
        library = build(kernel, folder, mock, compiler, change)
        env = {**os.environ, "LD_LIBRARY_PATH": os.path.join(mock, "lib"), "MOCK_HIP_ARCH": ARCH, "MOCK_HIP_SEED": "0",
               "MOCK_HIP_THREADS": "1", "LD_PRELOAD": library}
        done = subprocess.run([program, "selftest", "--device", "hip0", "--op", kernel, "--quick"], env=env, check=False,
                              capture_output=True, text=True, timeout=MOST_SECONDS)
    if done.returncode:
        sys.exit(f"{kernel}: exit code {done.returncode}: {done.stdout}{done.stderr}")
    seen = {}
    for line in done.stderr.splitlines():
        if line.startswith("lds "):
            _, access, size, _, phases, clocks = line.split()
            seen[(access, int(size))] = int(clocks) / int(phases)
    if ("loads", 16) not in seen:
        sys.exit(f"{kernel}: no load of 16 bytes from shared memory was seen: {done.stderr}")
    return seen


def read_baseline():
    with open(BASELINE, encoding="utf-8") as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    return {(kernel, access, int(size)): float(clocks) for kernel, access, size, clocks in rows}


def main():
    enlarge_stacks()
    words = sys.argv[1:]
    update = words[-2:] == ["--", "--update"]
    program, mock, *compiler = words[:-2] if update else words
    if not os.path.isfile(os.path.join(mock, f"{KERNELS[0]}.{KIND}.cpp")):
        print(f"skipped: {mock} has no kernels of {KIND}, since no target of gfx9 was built")
        return 77
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        spoiled = pool.submit(figures, KERNELS[0], program, mock, compiler, SWIZZLE)
        wider = pool.submit(figures, WIDER, program, mock, compiler, WIDER_CHANGE)
        all_seen = dict(zip(KERNELS, pool.map(lambda kernel: figures(kernel, program, mock, compiler), KERNELS)))
        all_seen[f"{WIDER}_128"] = wider.result()
    rows = {(kernel, *key): clocks for kernel, seen in all_seen.items() for key, clocks in seen.items()}
    if update:
        with open(BASELINE, "w", encoding="utf-8") as file:
            file.write(HEADER + "".join(f"{kernel}\t{access}\t{size}\t{rows[kernel, access, size]:.2f}\n"
                                        for kernel, access, size in sorted(rows)))
    baseline, failures = read_baseline(), 0
    for (kernel, access, size), clocks in sorted(rows.items()):
        most = baseline.get((kernel, access, size), 1.0)
        failures += clocks > most + 0.01
        print(f"{kernel}: {access} of {size} bytes, {clocks:.2f} clocks a phase, the baseline has {most:.2f}")
    without, right = spoiled.result()["loads", 16], rows[KERNELS[0], "loads", 16]
    print(f"{KERNELS[0]} without its swizzle: loads of 16 bytes, {without:.2f} clocks a phase")
    failures += without < right + 0.5
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
