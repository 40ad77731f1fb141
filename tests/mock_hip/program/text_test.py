#!/usr/bin/env python3
"""text_test.py GRETA_CLI BUNDLED_MODEL [TEST_DATA]: on the mock of HIP's runtime the program writes the CPU's text.

With --exact both run plain kernels, whose logits agree but for their last bits. The texts are greedy ones, and ones drawn
with each kind of filter, and without. Without TEST_DATA only the bundled model is run. A model that does not fit on the GPU
writes it too, with the layers that find no room on the processor.
"""
import os
import subprocess
import sys

FILTERS = ["--top-k", "40", "--top-p", "0.9", "--min-p", "0.05", "--repeat-penalty", "1.1"]
NO_FILTER = ["--top-k", "0", "--top-p", "1", "--min-p", "0"]
TOP_P = ["--top-k", "0", "--top-p", "0.9", "--min-p", "0"]
# Too little memory for the bundled model, which has eight layers and 4.5 MB; and for its cache beside it.
LITTLE = [["--mem-limit", "4M", "-c", "64", "-b", "32"], ["--mem-limit", "8M", "-c", "1024", "-b", "32"]]
DRAWS = [["--temp", "0"], ["--temp", "0.8", "--seed", "7", *FILTERS], ["--temp", "1.2", "--seed", "5", *NO_FILTER],
         ["--temp", "1", "--seed", "3", *TOP_P]]


def run(cli, device, model, tokens, draw, *more):
    command = [cli, "run", "--device", device, "-m", model, "-p", "Once upon a time", "-n", str(tokens), "--exact", *draw, *more]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}: {done.stderr.decode()}"
    assert len(done.stdout.split()) > tokens // 4, f"{' '.join(command)}: only {done.stdout!r}"
    return done


def write(*arguments):
    return run(*arguments, "-q").stdout


def check_lack_of_room(cli, model, little):
    for option in ([], ["-ngl", "all"]):
        command = [cli, "info", "-m", model, "--device", "hip0", *little, *option]
        plan = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert ("cpu" in plan.stdout) == (not option), plan.stdout + plan.stderr
    split = run(cli, "hip0", model, 16, DRAWS[0], *little)
    assert b"the model does not fit on hip0: of its 8 layers" in split.stderr, split.stderr
    assert split.stdout == write(cli, "cpu", model, 16, DRAWS[0], *little[2:]), split.stdout
    print(f"ok   with {little[1]}: {split.stderr.decode().strip().splitlines()[-1]}")


def main():
    cli, bundled, data = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else os.environ.get("GRETA_TEST_DATA", "")
    cases = [(bundled, 16, DRAWS[0]), (bundled, 16, DRAWS[1])]
    if data:
        stories = os.path.join(data, "models", "stories260K-f32.gguf")
        cases += [(stories, 200, DRAWS[0])] + [(stories, 48, draw) for draw in DRAWS[1:]]
    for model, tokens, draw in cases:
        what = f"{os.path.basename(model)}, {tokens} tokens, {' '.join(draw)}"
        cpu, hip = (write(cli, device, model, tokens, draw) for device in ("cpu", "hip0"))
        assert cpu == hip, f"{what}:\n  cpu  {cpu!r}\n  hip0 {hip!r}"
        print(f"ok   {what}")
    for little in LITTLE:
        check_lack_of_room(cli, bundled, little)
    return 0


if __name__ == "__main__":
    sys.exit(main())
