#!/usr/bin/env python3
"""golden_test.py GRETA_CLI TEST_DATA: models against goldens of a float64 forward pass.

Through the program, as a user runs it, on the CPU or the device that GRETA_TEST_DEVICE names: logits at every recorded
position, the mean negative log-likelihood of a text, and greedy text. GRETA_GOLDEN_ONLY: words, of which a model's name has
one. Limits stand in docs/numerics.md. Python's own library only.
"""
import array
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

EXACT_F32 = ["--exact", "-ctk", "f32", "-ctv", "f32"]
EXACT_F16 = ["--exact"]
FAST = []
# (arguments, limit of NMSE): plain kernels with an f32 cache, with an f16 cache, whatever kernels are
# fastest here (int8 activations). Keys and values rounded to f16 cost a model of this size up to 2e-6.
MODES = [("exact, f32 cache", EXACT_F32, 1e-9), ("exact, f16 cache", EXACT_F16, 4e-6), ("fast", FAST, 1e-3)]
TIGHTER = {("stories260K-f32", "exact, f16 cache"): 1e-6}
MODELS = """stories260K-f32 stories260K-f16 stories260K-bf16 stories260K-q8_0 stories260K-q4_0
babyllama-tok361-f32 babyllama-tok361-f16 babyllama-tok361-q8_0 babyllama-tok361-q4_0
llama-2-tiny-random tales-llama-7m-f16 tales-llama-7m-q8_0 tales-llama-7m-q4_k_m tales-llama-7m-q2_k""".split()


def read_npy(data):
    """(shape, values) of a little-endian float32 or float64 array."""
    assert data[:6] == b"\x93NUMPY", "not an .npy file"
    size, = struct.unpack_from("<H", data, 8)
    header = eval(data[10:10 + size], {"__builtins__": {}})  # a literal written by numpy or by greta-cli
    values = array.array({"<f4": "f", "<f8": "d"}[header["descr"]])
    values.frombytes(data[10 + size:])
    return header["shape"], values


class Cli:
    def __init__(self, path):
        self.path = path
        self.device = os.environ.get("GRETA_TEST_DEVICE") or "cpu"
        self.folder = tempfile.TemporaryDirectory()

    def call(self, *arguments):
        arguments = (*arguments, "--device", self.device)
        done = subprocess.run([self.path, *arguments], capture_output=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"greta-cli {' '.join(arguments)}: {done.returncode}: {done.stderr.decode()}"
        return done.stdout

    def logits(self, model, ids, mode):
        """A function from position to its row."""
        out = os.path.join(self.folder.name, "logits.npy")
        self.call("logits", "-m", model, "--ids", " ".join(map(str, ids)), "-o", out, *mode)
        with open(out, "rb") as file:
            (rows, vocab), values = read_npy(file.read())
        assert rows == len(ids), f"{rows} rows for {len(ids)} tokens"
        return lambda position: values[position * vocab:(position + 1) * vocab]


def nmse(got, want):
    assert len(got) == len(want), f"{len(got)} logits, golden has {len(want)}"
    error = sum((g - w) ** 2 for g, w in zip(got, want))
    assert not math.isnan(error), "NaN"
    return error / sum(w * w for w in want)


def nlls(row_of, ids):
    """Negative log-likelihood of each token after the first."""
    result = []
    for position, following in enumerate(ids[1:]):
        row = row_of(position)
        top = max(row)
        result.append(math.log(sum(math.exp(x - top) for x in row)) + top - row[following])
    return result


def check_logits(cli, model, golden, arrays):
    worst = {}
    for number, case in enumerate(golden["cases"]):
        positions = case.get("logits_positions", range(len(case["prompt_ids"])))
        (_, vocab), want = arrays[f"logits_{number}.npy"]
        for name, mode, limit in MODES:
            limit = TIGHTER.get((golden["model"].removesuffix(".gguf"), name), limit)
            row_of = cli.logits(model, case["prompt_ids"], mode)
            for i, position in enumerate(positions):
                error = nmse(row_of(position), want[i * vocab:(i + 1) * vocab])
                worst[name] = max(worst.get(name, 0.0), error)
                assert error <= limit, f"{name}: case {number}, position {position}: NMSE {error:.3g} > {limit:g}"
    return worst


def check_nll(cli, model, golden):
    nll = golden.get("nll")
    if not nll:
        return "no text"
    got = nlls(cli.logits(model, nll["ids"], EXACT_F32), nll["ids"])
    if "mean_nll" in nll:
        error = abs(sum(got) / len(got) - nll["mean_nll"])
    else:
        error = max(abs(g - w) for g, w in zip(got, nll["nll"], strict=True))
    assert error <= 1e-4, f"nll off by {error}"
    return f"nll off by {error:.1e}"


def check_greedy(cli, model, golden):
    """Text must be the golden's up to where the golden's best two logits are closer than our error."""
    for case in golden["cases"]:
        if "greedy_text" not in case:
            continue
        count = len(case["greedy_ids"])
        arguments = ["--ignore-eos"] if not case.get("stopped") else []
        got = cli.call("run", "-m", model, "-p", case["prompt"], "-n", str(count), "--temp", "0",
                       "--no-display-prompt", *arguments, *EXACT_F32)
        got = got.decode()[:-1]  # the newline after the text
        want = case["greedy_text"]
        if golden["model"].startswith("stories") or want.startswith(case["prompt"]) and case["prompt"]:
            want = want[len(case["prompt"]):]  # the prompt is part of that golden's text
        if case.get("stopped"):
            want = want.split("<|e")[0]
        if case["smallest_top2_gap"] < 1e-5:
            want = want[:len(want) * case["at_step"] // count // 2]
            got = got[:len(want)]
        assert got == want, f"prompt {case['prompt']!r}:\n  got    {got!r}\n  golden {want!r}"


def main():
    cli, data = Cli(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else os.environ.get("GRETA_TEST_DATA", "")
    if not data:
        print("skipped: GRETA_TEST_DATA is not set")
        return 77
    only = os.environ.get("GRETA_GOLDEN_ONLY", "").split()
    failed = passed = 0
    for name in MODELS:
        if only and not any(word in name for word in only):
            continue
        model = os.path.join(data, "models", name + ".gguf")
        if log := os.environ.get("GRETA_TEST_DATA_LOG"):
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"golden {name}\n")
        with open(os.path.join(data, "golden", name + ".json"), encoding="utf-8") as file:
            golden = json.load(file)
        with zipfile.ZipFile(os.path.join(data, "golden", name + ".npz")) as archive:
            arrays = {entry: read_npy(archive.read(entry)) for entry in archive.namelist() if "logits" in entry}
        try:
            worst = check_logits(cli, model, golden, arrays)
            nll = check_nll(cli, model, golden)
            check_greedy(cli, model, golden)
            passed += 1
            print(f"ok   {name}: " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()) + f", {nll}", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"FAIL {name}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed on {cli.device}")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
