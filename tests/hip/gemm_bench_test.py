"""greta-bench-matmul --ops gemm on the mock runtime: names, constants and results of its lines.

    gemm_bench_test.py PROGRAM MOCK
"""
import json
import os
import subprocess
import sys

PROGRAM, MOCK = sys.argv[1:3]
SMALL = ["130", "512", "16"]  # rows, columns, tokens: a tile and a part of one, and two ranges of columns


def run(*words):
    env = {**os.environ, "LD_LIBRARY_PATH": os.path.join(MOCK, "lib"), "MOCK_HIP_ARCH": "gfx942"}
    return subprocess.run([PROGRAM, "--ops", "gemm", "-d", "hip0", *words], env=env, capture_output=True, text=True, check=False)


def main():
    done = run("-t", "f16,bf16,q4_k", "--sweep", "tile=128x16:128x64,splits=1:2:9", *SMALL)
    assert done.returncode == 0, done.stderr
    head, *lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert head["backend"] == "hip" and head["arch"] == "gfx942", head
    for op in ("f16 GEMM", "bf16 GEMM", "W4A16 GEMM"):
        found = [line for line in lines if line["op"] == op]
        # Nine groups do not share two ranges of columns.
        assert sorted((line["tile"], line["splits"]) for line in found) == [
            ("128x16", 1), ("128x16", 2), ("128x64", 1), ("128x64", 2)], found
        assert all(line["right"] and "tiles_mfma" in line["kernel"] for line in found), found
        assert [line["tile"] for line in found if line["chosen"]] == ["128x16"], found
    assert len(lines) == 12, lines

    for words, said in ((["--sweep", "waves"], "the constants are tile, splits"), (["--sweep", "step=32"], "in their code"),
                        (["-t", "q4_9"], "no type q4_9")):
        done = run(*words)
        assert done.returncode == 1 and said in done.stderr, (words, done)


main()
