"""bench: presets, warm runs, another program in turn, and the history of saved results."""
import json
import pathlib
import stat
import sys
import xml.etree.ElementTree

from sampling_test import Folder
from support import MODEL, PROGRAM, main

BENCH = ["bench", "-m", str(MODEL), "--device", "cpu", "-t", "2"]
HEAD = pathlib.Path(__file__).parents[1] / "golden" / "heads" / "qwen35-head.gguf"
TINY = ["-p", "16", "-n", "4", "-r", "3"]


def row(speeds, commit="c1", time="2026-01-01T00:00:00Z", prompt=512, **more):
    return {"build_commit": commit, "test_time": time, "model_identity": "m", "device": "a cpu", "n_prompt": prompt,
            "n_gen": 0, "n_depth": 0, "n_threads": 2, "type_k": "f16", "type_v": "f16", "samples_ts": speeds, **more}


class Presets(Folder):
    def test_a_preset_sets_what_is_left_open(self):
        rows = json.loads(self.out(*BENCH, "--preset", "smoke", "-o", "json"))
        self.assertEqual([(each["n_prompt"], each["n_gen"], len(each["samples_ns"]), each["preset"]) for each in rows],
                         [(32, 0, 2, "smoke"), (0, 8, 2, "smoke")])
        rows = json.loads(self.out(*BENCH, "--preset", "perf", "-p", "8", "-n", "0", "-d", "0", "-r", "1", "-o", "json"))
        self.assertEqual([(each["n_prompt"], len(each["samples_ns"])) for each in rows], [(8, 1)])
        self.assertIn("verify", self.error(2, *BENCH, "--preset", "quick"))

    def test_results_of_two_presets_are_not_compared(self):
        a = self.file("a.json", json.dumps([row([10.0] * 6, preset="perf")]))
        b = self.file("b.json", json.dumps([row([10.0] * 6, preset="verify")]))
        self.assertIn("the preset differs", self.error(1, "bench", "compare", a, b))

    def test_runs_that_are_not_counted(self):
        (row,) = json.loads(self.out(*BENCH, "-p", "16", "-n", "0", "-r", "2", "-o", "json"))
        self.assertTrue(2 <= row["warm_up_runs"] <= 8)
        self.assertTrue(row["warm"] or row["warm_up_runs"] == 8)
        self.assertEqual(len(row["samples_ns"]), 2)


class Against(Folder):
    def other(self, name, rows, code=0):
        """A program that prints results, and writes down how it was called."""
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\nimport sys\nopen({str(self.folder / 'calls')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
                        f"print({json.dumps(rows)!r})\nsys.exit({code})\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def test_itself(self):
        result = json.loads(self.out(*BENCH, *TINY, "--against", PROGRAM, "--threshold", "100", "-o", "json"))
        self.assertEqual([(each["test"], each["a_runs"], each["b_runs"]) for each in result["tests"]], [("pp16", 6, 6), ("tg4", 6, 6)])

    def test_another_program(self):
        own = json.loads(self.out(*BENCH, *TINY, "-o", "json"))
        slow = [{**each, "samples_ts": [speed / 1000 for speed in each["samples_ts"]]} for each in own]
        out, _ = self.run_cli(*BENCH, *TINY, "--against", str(self.other("old-greta", slow)))
        self.assertEqual(out.count("faster"), 2)
        calls = (self.folder / "calls").read_text().splitlines()
        self.assertEqual(len(calls), 2)
        self.assertTrue(all(call.startswith("bench --device cpu -m ") and call.endswith("-o json") for call in calls), calls)
        fast = [{**each, "samples_ts": [speed * 1000 for speed in each["samples_ts"]]} for each in own]
        self.run_cli(*BENCH, *TINY, "--against", str(self.other("old-greta", fast)), code=3)

    def test_llama_bench_names_things_otherwise(self):
        rows = [{"n_prompt": 16, "n_gen": 0, "n_depth": 0, "n_threads": 8, "n_batch": 2048, "type_k": "f16", "type_v": "f16", "samples_ts": [0.001, 0.0011, 0.0012]}]
        out, _ = self.run_cli(*BENCH, *TINY, "--against", str(self.other("llama-bench", rows)))
        self.assertRegex(out, r"pp16 .* faster")
        self.assertTrue((self.folder / "calls").read_text().startswith("-m "))

    def test_what_cannot_be(self):
        self.assertIn("none: No such file", self.error(1, *BENCH, *TINY, "--against", self.folder / "none"))
        self.assertIn("exit code 4", self.error(1, *BENCH, *TINY, "--against", self.other("bad", [], 4)))
        self.assertIn("expected a list", self.error(1, *BENCH, *TINY, "--against", self.other("bad", {"a": 1})))
        self.assertIn("--against", self.error(2, *BENCH, *TINY, "--against", PROGRAM, "--profile"))
        self.assertIn("md or json", self.error(2, *BENCH, *TINY, "--against", PROGRAM, "-o", "csv"))


class Drafts(Folder):
    def rows(self, *args, model=MODEL):
        return json.loads(self.out("bench", "-m", str(model), "--device", "cpu", "-t", "2", "-r", "2", "-o", "json", *args))

    def test_who_knows_the_text(self):
        right, wrong = self.rows("-n", "40", "--draft", "3", "--draft-right", "100,0")
        self.assertEqual((right["test"], wrong["test"]), ("tg40 known 3, 100 % right", "tg40 known 3, 0 % right"))
        self.assertGreater(right["tokens_per_step"], 3)
        self.assertGreaterEqual(right["n_accepted"], right["n_drafted"] - 2 * 3)
        self.assertEqual((wrong["n_accepted"], wrong["tokens_per_step"]), (0, 1))
        for row in (right, wrong):
            self.assertEqual(len(row["samples_ns"]), 2)
            self.assertAlmostEqual(row["speedup"], row["drafted_ts"] / row["plain_ts"], places=6)
            self.assertAlmostEqual(row["time_per_step"] * row["speedup"], row["tokens_per_step"], places=6)

    def test_a_second_model_and_a_layer_of_the_file(self):
        for args, model in ((["-md", str(MODEL)], MODEL), (["--spec-type", "draft-mtp"], HEAD)):
            (row,) = self.rows("-n", "40", "--draft-right", "100", *args, model=model)
            self.assertGreater(row["tokens_per_step"], 2.5)
        # The likeliest tokens are written, which the same model guesses.
        (row,) = self.rows("-n", "40", "-md", str(MODEL))
        self.assertEqual(row["n_accepted"], row["n_drafted"])
        self.assertGreater(row["tokens_per_step"], 2.5)
        out, _ = self.run_cli("bench", "-m", str(MODEL), "--device", "cpu", "-r", "1", "-n", "8", "--spec-type", "ngram")
        self.assertRegex(out, r"tokens/step .*\n.*\n\| llama .* tg8 ngram 3 \|")

    def test_what_cannot_be(self):
        for words, args in (("go with each other", ["--spec-type", "draft-simple"]), ("does not go with", ["--spec-type", "ngram", "--draft-right", "50"]),
                            ("--draft goes with -n", ["--draft", "3", "--profile"])):
            self.assertIn(words, self.error(2, *BENCH, *args))
        self.assertIn("nextn_predict_layers", self.error(1, *BENCH, "-n", "4", "--spec-type", "draft-mtp"))


class History(Folder):
    def fill(self):
        """Five files: the third one is 10 % slower, and so are those after it."""
        for i, speed in enumerate((100, 100, 90, 90, 90)):
            samples = [speed + part / 10 for part in range(8)]
            self.file(f"r{4 - i}.json", json.dumps([row(samples, f"commit{i}", f"2026-01-0{i + 1}T00:00:00Z")]))

    def test_where_the_speed_changed(self):
        self.fill()
        (course,) = json.loads(self.out("bench", "history", self.folder, "-o", "json"))
        self.assertEqual([record["commit"] for record in course["records"]], [f"commit{i}" for i in range(5)])
        changes = [record["change_percent"] for record in course["records"]]
        self.assertEqual([change is None for change in changes], [True, True, False, True, True])
        self.assertAlmostEqual(changes[2], -9.96, delta=0.1)
        self.assertEqual([round(record["median_ts"], 2) for record in course["records"]], [100.35, 100.35, 90.35, 90.35, 90.35])
        text = self.out("bench", "history", self.folder)
        self.assertEqual(text.count("-10.0 %"), 1)
        (course,) = json.loads(self.out("bench", "history", self.folder, "-o", "json", "--threshold", "20"))
        self.assertEqual({record["change_percent"] for record in course["records"]}, {None})

    def test_a_picture(self):
        self.fill()
        root = xml.etree.ElementTree.fromstring(self.out("bench", "history", self.folder, "-o", "svg"))
        kinds = [each.tag.split("}")[1] for each in root]
        self.assertEqual((kinds.count("circle"), kinds.count("line")), (5, 4))
        self.assertEqual(sum(each.get("fill") == "#f57900" for each in root if each.tag.endswith("circle")), 1)

    def test_a_page(self):
        self.fill()
        page = self.folder / "history.html"
        text = self.out("bench", "history", self.folder, "--report", page)
        self.assertEqual(text, self.out("bench", "history", self.folder))
        html = page.read_text()
        self.assertEqual(html.count("<tr class=\"stage\">"), 1)  # the change
        for i in range(5):
            self.assertIn(f"<td>commit{i}</td>", html)
        self.assertIn("-10.0 %", html)
        self.assertNotIn("<script", html)
        self.assertNotIn("http", html.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", ""))

    def test_few_runs_tell_nothing(self):
        for i, speed in enumerate((100, 10)):
            self.file(f"{i}.json", json.dumps([row([speed + 0.1, speed + 0.2], f"c{i}", f"2026-01-0{i + 1}T00:00:00Z")]))
        text = self.out("bench", "history", self.folder)
        self.assertEqual(text.count("too few runs"), 2)
        self.assertNotIn("%", text)

    def test_other_files_are_named_and_left_out(self):
        self.fill()
        self.file("notes.json", "no results")
        self.file("notes.txt", "[]")
        out, err = self.run_cli("bench", "history", str(self.folder))
        self.assertIn("notes.json", err)
        self.assertNotIn("notes.txt", err)
        self.assertEqual(out.count("t/s"), 5)

    def test_what_cannot_be(self):
        self.assertIn("no file", self.error(1, "bench", "history", self.folder))
        self.assertIn("none", self.error(1, "bench", "history", self.folder / "none"))
        self.error(2, "bench", "history")
        self.assertIn("svg", self.error(2, "bench", "history", self.folder, "-o", "csv"))


if __name__ == "__main__":
    main()
