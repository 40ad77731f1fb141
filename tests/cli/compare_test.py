"""bench compare: statistics as scipy's, planted differences, the exit code, and files that are not what they should be.

compare_reference.json is what make_compare_reference.py has written with scipy.
"""
import csv
import io
import json
import math
import os
import pathlib
import random
import re
import subprocess

from results_test import Folder
from support import LIMIT, MODEL, PROGRAM, ROOT, main

REFERENCE = json.loads((ROOT / "tests/cli/compare_reference.json").read_text())
ROW = {"model_identity": "1", "device": "Processor", "backends": "cpu", "n_threads": 2, "n_batch": 0, "type_k": "f16",
       "type_v": "f16", "n_prompt": 0, "n_gen": 0, "n_depth": 0}


def row(speeds, **more):
    return {**ROW, "n_prompt": 8, "samples_ts": speeds, **more}


def noisy(draw, middle, count=10, noise=0.01):
    return [middle * draw.gauss(1, noise) for _ in range(count)]


class Compare(Folder):
    def files(self, a, b):
        return [self.file(name, json.dumps(rows)) for name, rows in (("a.json", a), ("b.json", b))]

    def compare(self, a, b, *more, code=0):
        return json.loads(self.out("bench", "compare", *self.files(a, b), "--json", *more, code=code))

    def test_statistics_are_scipys(self):
        sets = REFERENCE["sets"]
        self.assertGreater(len(sets), 10)
        found = self.compare([row(each["a"], n_prompt=8 + i) for i, each in enumerate(sets)],
                             [row(each["b"], n_prompt=8 + i) for i, each in enumerate(sets)])
        for mine, theirs in zip(found["tests"], sets):
            for key in ("u", "p", "ratio", "ratio_low", "ratio_high"):
                self.assertTrue(math.isclose(mine[key], theirs[key], rel_tol=1e-9, abs_tol=1e-12), (mine, key))
            self.assertEqual((mine["a_runs"], mine["b_runs"]), (len(theirs["a"]), len(theirs["b"])))
        self.assertTrue(math.isclose(found["geometric_mean"], REFERENCE["geometric_mean"], rel_tol=1e-9))

    def words(self, shift):
        """Of 100 seeds: ten runs with 1 % of noise, and ten more at a shifted speed."""
        draws = [random.Random(seed) for seed in range(100)]
        a = [row(noisy(draw, 100), n_prompt=1 + i) for i, draw in enumerate(draws)]
        b = [row(noisy(draw, 100 * shift), n_prompt=1 + i) for i, draw in enumerate(draws)]
        return [each["word"] for each in self.compare(a, b, "--threshold", 90)["tests"]]

    def test_a_planted_difference_is_found_and_none_where_there_is_none(self):
        self.assertGreaterEqual(self.words(0.95).count("slower"), 95)
        self.assertGreaterEqual(self.words(1.05).count("faster"), 95)
        self.assertGreaterEqual(self.words(1).count("no difference"), 95)

    def test_the_exit_code(self):
        draw = random.Random(1)
        fast, slow = noisy(draw, 100), noisy(draw, 95)
        for a, b, more, code in ((fast, slow, [], 3), (slow, fast, [], 0), (fast, fast, [], 0), (fast, slow[:5], [], 0),
                                 (fast, slow, ["--threshold", "8"], 0), (fast, slow, ["--threshold", "2.5"], 3)):
            self.assertEqual(self.compare([row(a)], [row(b)], *more, code=code)["loss"], code == 3)

    def test_the_table(self):
        draw = random.Random(2)
        rows = [row(noisy(draw, 100)), row(noisy(draw, 50), n_prompt=0, n_gen=4, n_depth=32), row([3.0], n_prompt=9)]
        other = [row(noisy(draw, 120)), row(noisy(draw, 50), n_prompt=0, n_gen=4, n_depth=32), row([3.0], n_prompt=9)]
        lines = self.out("bench", "compare", *self.files(rows, other)).splitlines()
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:-1]]
        self.assertEqual([each[0] for each in cells], ["pp8", "tg4 @ d32", "pp9"])
        self.assertEqual([each[-1] for each in cells], ["faster", "no difference", "too few runs"])
        self.assertEqual(len({len(line) for line in lines[:-1]}), 1)
        self.assertRegex(lines[-1], r"^Geometric mean of B / A: 1\.0\d\d$")

    def test_pairs(self):
        """Runs of a test in several rows count together; tests of one file alone are named; a file may have lines."""
        whole = [row([1.0, 2, 3, 4, 5, 6]), row([1.0], n_prompt=9)]
        parts = [row([1.0, 2, 3]), row([4.0, 5, 6]), row([1.0], n_gen=7)]
        a, b = self.files(whole, parts)
        b.write_text("\n".join(map(json.dumps, parts)) + "\n\n")
        out, err = self.run_cli("bench", "compare", str(a), str(b), "--json")
        self.assertEqual([(each["test"], each["b_runs"], each["p"]) for each in json.loads(out)["tests"]], [("pp8", 6, 1)])
        self.assertIn("a.json: pp9", err)
        self.assertIn("b.json: pp8+tg7", err)
        threads = [row([1.0]), row([2.0], n_threads=4)]
        self.assertEqual([each["ratio"] for each in self.compare(threads, threads[::-1])["tests"]], [1, 1])
        served = {**ROW, "test": "4 x pp8+tg4", "prompt_ts": 7.5, "generate_ts": 3.0, "prompt_alone_ts": None}
        self.assertEqual([each["test"] for each in self.compare([served], [served])["tests"]],
                         ["4 x pp8+tg4, prompts", "4 x pp8+tg4, texts"])

    def test_another_model_or_device(self):
        for key, value, what in (("model_identity", "2", "model"), ("device", "Card", "device"), ("preset", "x", "preset")):
            a, b = self.files([row([1.0])], [row([1.0], **{key: value}, n_threads=7)])
            self.assertIn(f"the {what} differs", self.error(1, "bench", "compare", a, b))
            self.assertIn("too few runs", self.out("bench", "compare", a, b, "--force"))
            a, b = self.files([row([1.0]), row([1.0], **{key: value})], [row([1.0])])
            self.assertIn(f"more than one {what}", self.error(1, "bench", "compare", a, b))

    def test_bad_files(self):
        good = self.file("good", json.dumps([row([1.0])]))
        text = json.dumps([row([1.0, 2.0])])
        bad = [text[:cut] for cut in range(0, len(text), 19)] + ["[]", "[1]", "{}", "null", "\0", "[[]]", '"x"', "nan"]
        bad += [json.dumps([row(value)]) for value in ([], "x", None, ["1"], [0], [-1], [1e400], [None], {}, 5001 * [1.0])]
        bad += [json.dumps([row([1.0], **{key: value})]) for key in ("n_prompt", "n_gen") for value in ("x", None, [], {})]
        bad += [json.dumps([{**ROW, "prompt_ts": "x", "test": "y"}]), "[" * 100000]
        for text in bad:
            path = self.file("bad", text)
            for pair in ((good, path), (path, good)):
                self.assertRegex(self.error(1, "bench", "compare", *pair), r"bad: |no test in common")
        self.assertIn("gone", self.error(1, "bench", "compare", good, self.folder / "gone"))

    def test_damaged_files_are_refused_in_words(self):
        draw = random.Random(5)
        whole = json.dumps([row([100.0, 101.5, 99.25, 100.5, 98.0, 102.0])])
        good = self.file("good.json", whole)
        for _ in range(60):
            text = bytearray(whole.encode())
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(len(text))
                kind = draw.randrange(4)
                if kind == 0:
                    text[at] = draw.randrange(256)
                elif kind == 1:
                    del text[at: at + draw.randint(1, 9)]
                elif kind == 2:
                    text[at:at] = draw.choice([b"[", b"{", b"1e999", b"-1", b"null", b'"', b"99999999999999999999", b"\xff\x00"])
                else:
                    del text[at:]
                    text += b" "
            (self.folder / "bad.json").write_bytes(text)
            done = subprocess.run([PROGRAM, "bench", "compare", good, str(self.folder / "bad.json")], capture_output=True, timeout=LIMIT)
            self.assertIn(done.returncode, (0, 1, 3), text)  # and no signal
            if done.returncode == 1:
                self.assertRegex(done.stderr.decode("utf-8", "replace"), r"^greta-cli: \S", text)
                self.assertEqual(done.stdout, b"")

    def test_misuse(self):
        for words in (["compare"], ["compare", "a"], ["compare", "a", "b", "c"], ["race"], ["compare", "a", "b", "-o", "csv"],
                      ["compare", "a", "b", "--threshold", "-1"]):
            self.error(2, "bench", *words)

    def test_saved_results(self):
        folder, runs = self.folder / "new" / "results", []
        for _ in range(2):
            _, err = self.run_cli("bench", "-m", str(MODEL), "-p", "8", "-n", "2", "-r", "2", "--device", "cpu", "--save", str(folder))
            path = pathlib.Path(re.search(r"saved as (.*\.json)", err)[1])
            self.assertRegex(path.name, r"^\d{8}T\d{6}Z-\w+-\w+(-\d)?\.json$")
            runs.append(json.loads(path.read_text()))
            lines = list(csv.DictReader(io.StringIO(path.with_suffix(".csv").read_text())))
            self.assertEqual([(line["n_prompt"], line["n_gen"]) for line in lines], [("8", "0"), ("0", "2")])
            for line, saved in zip(lines, runs[-1]):
                self.assertEqual((line["os"], line["compiler"]), (saved["os"], saved["compiler"]))
                self.assertEqual(len(saved["samples_ts"]), 2)
        self.assertEqual(len(os.listdir(folder)), 4)  # nothing is replaced, and nothing half is left
        for saved in runs[0]:
            self.assertTrue(saved["os"].startswith("Linux ") and saved["compiler"] and saved["load_average"] >= 0)
            self.assertIn("cpu_governor", saved)
        first, second = sorted(folder.glob("*.json"))
        self.assertIn("too few runs", self.out("bench", "compare", first, second))
        taken = self.file("taken", "a file")
        _, err = self.run_cli("bench", "-m", str(MODEL), "-p", "8", "-n", "0", "-r", "1", "--device", "cpu", "--save",
                              str(taken), code=1)
        self.assertIn("taken", err)
        self.assertEqual(taken.read_text(), "a file")

    def test_with_what_bench_writes(self):
        args = ["bench", "-m", MODEL, "-p", "8", "-n", "2", "-r", "6", "--device", "cpu"]
        a, b = self.file("a", self.out(*args, "--json")), self.file("b", self.out(*args, "-o", "jsonl"))
        found = json.loads(self.out("bench", "compare", a, b, "--json", "--threshold", "100"))
        self.assertEqual([(each["test"], each["a_runs"]) for each in found["tests"]], [("pp8", 6), ("tg2", 6)])


if __name__ == "__main__":
    main()
