"""greta-cli tune: tables are made, used, listed, carried about and chosen from again; damaged ones are not used."""
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from support import LIMIT, MODEL, PROGRAM, CliTest, main, start

RECORDED = pathlib.Path(__file__).with_name("recorded_tunes")
CPU = ["--device", "cpu", "-t", "2"]
RUN = ["run", "-m", MODEL, *CPU, "--temp", "0", "-n", "4", "-p", "Once"]


class Tune(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name)
        self.shapes = self.cache / "shapes"
        self.shapes.write_text("q4_k 96x512\nq8_0 64x256 gate\n")

    def tune(self, *args, code=0):
        done = subprocess.run([PROGRAM, "tune", *map(str, args)], capture_output=True, text=True, timeout=LIMIT,
                              env={**os.environ, "XDG_CACHE_HOME": str(self.cache)}, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def run_model(self, *args):
        done = subprocess.run([PROGRAM, *map(str, [*RUN, *args])], capture_output=True, text=True, timeout=LIMIT,
                              env={**os.environ, "XDG_CACHE_HOME": str(self.cache)}, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def table(self):
        (path,) = (self.cache / "greta").glob("tuning-cpu-*.jsonl")
        return path

    def tuned(self):
        self.tune("--shapes", self.shapes, "--tokens", "1,4", *CPU)
        return self.table()

    def test_a_tune_makes_a_table_and_a_second_one_goes_on(self):
        _, err = self.tune("--shapes", self.shapes, "--tokens", "1", *CPU)
        self.assertRegex(err, r"2 entries, 2 of them new; \d+ do not run their default; 0 left")
        _, err = self.tune("--shapes", self.shapes, "--tokens", "1,4", *CPU)
        self.assertRegex(err, r"4 entries, 2 of them new")
        before = self.table().read_bytes()
        self.tune("--shapes", self.shapes, "--tokens", "1,4", *CPU)
        self.assertEqual(self.table().read_bytes(), before)

    def test_a_device_without_a_table(self):
        for args in (["--list"], ["--export", str(self.cache / "t.jsonl")], ["--report", str(self.cache / "t.html")]):
            _, err = self.tune(*args, *CPU, code=1)
            self.assertIn("there is no table of this device yet", err)

    def test_each_line_is_json_and_the_list_says_the_same(self):
        lines = [json.loads(line) for line in self.tuned().read_text().splitlines()]
        self.assertEqual(lines[0]["greta_tuning"], 1)
        entries = [line["entry"] for line in lines if "entry" in line]
        out, _ = self.tune("--json", "--list", *CPU)
        listed = json.loads(out)
        self.assertEqual({each["entry"] for each in listed}, set(entries))
        self.assertEqual(sum(each["chosen"] for each in listed), len(entries))
        self.assertEqual(sum(each["default"] for each in listed), len(entries))
        for each in listed:
            if each["verdict"] == "right":
                self.assertLess(float(each["nmse"]), 1e-3)
                self.assertTrue(each["ns"])
        text, _ = self.tune("--list", *CPU)
        for entry in entries:
            self.assertIn(entry, text)

    def test_recorded_timings_give_the_same_choice_bit_for_bit(self):
        recorded = sorted(RECORDED.glob("*.jsonl"))
        self.assertTrue(recorded)
        for path in recorded:
            again = self.cache / path.name
            _, err = self.tune("--replay", path, "--export", again)
            self.assertIn("the choices are those of the file", err)
            self.assertEqual(again.read_bytes(), path.read_bytes())

    def test_the_page_has_every_candidate_and_asks_for_nothing(self):
        path = RECORDED / "cpu.jsonl"
        page = self.cache / "page.html"
        self.tune("--replay", path, "--report", page)
        text = page.read_text()
        listed = json.loads(self.tune("--replay", path, "--json")[0])
        embedded = json.loads(re.search(r'id="table">(.*?)</script>', text).group(1))
        self.assertEqual(embedded, listed)
        self.assertEqual(text.count("<h2>"), len({each["entry"] for each in listed}))
        self.assertEqual(text.count("<circle "), sum(len(each["ns"]) for each in listed))
        self.assertEqual(text.count(", chosen</td>"), sum(each["chosen"] for each in listed))
        for each in listed:
            if each["high"] and not each["default"]:
                self.assertIn(f"<td>{each['ratio']:.3f} [{each['low']:.3f}, {each['high']:.3f}]</td>", text)
        self.assertNotRegex(text, "https?:")
        self.assertLess(len(text), 2 << 20)
        self.tuned()
        self.tune("--report", page, *CPU)
        self.assertRegex(page.read_text(), r"The roofs are [0-9.]+ GB/s and [0-9.]+ TFLOP/s")

    def test_a_model_runs_with_its_table_and_without(self):
        plain, _ = self.run_model("--no-tuning")
        self.tune("-m", MODEL, "--tokens", "1", *CPU)
        tuned, err = self.run_model()
        self.assertNotIn("tuning", err)
        self.assertTrue(tuned.startswith(plain.split()[0]))

    def test_a_damaged_table_is_told_and_not_used(self):
        path = self.tuned()
        text = path.read_bytes()
        path.write_bytes(text[:-40])
        _, err = self.run_model()
        self.assertIn("the table is damaged", err)
        _, err = self.run_model("--no-tuning")
        self.assertNotIn("tuning", err)
        _, err = self.tune("--list", *CPU, code=1)
        self.assertIn("damaged", err)

    def test_another_drivers_table_is_told_and_not_used(self):
        path = self.tuned()
        path.rename(path.with_name(path.name.rsplit("-", 1)[0] + "-0123456789abcdef.jsonl"))
        _, err = self.run_model()
        self.assertIn("of another driver or version of GRETA", err)

    def test_tables_are_carried_about(self):
        path = self.tuned()
        carried = self.cache / "carried.jsonl"
        self.tune("--export", carried, *CPU)
        self.assertEqual(carried.read_bytes(), path.read_bytes())
        path.unlink()
        self.tune("--import", carried, *CPU)
        self.assertEqual(path.read_bytes(), carried.read_bytes())
        _, err = self.tune("--import", carried, "--device", "cpu", "-t", "1", code=1)
        self.assertIn("this is another device", err)
        carried.write_text("not a table")
        _, err = self.tune("--import", carried, *CPU, code=1)
        self.assertIn("no tuning table", err)

    def test_two_tunes_at_once_are_refused(self):
        path = self.tuned()
        with open(f"{path}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _, err = self.tune("--shapes", self.shapes, *CPU, code=1)
        self.assertIn("another tune of this device is at work", err)

    def test_a_table_that_cannot_be_written_leaves_the_old_one(self):
        path = self.tuned()
        before = path.read_bytes()
        limit = "import resource,os,sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); os.execv(sys.argv[1], sys.argv[1:])"
        done = subprocess.run(["python3", "-c", limit, PROGRAM, "tune", "--shapes", str(self.shapes), "--tokens", "8", *CPU],
                              capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL,
                              env={**os.environ, "XDG_CACHE_HOME": str(self.cache)})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(path.read_bytes(), before)

    def test_ctrl_c_keeps_what_is_known(self):
        self.shapes.write_text("".join(f"q4_k {n}x4096\n" for n in range(1024, 3072, 64)))
        program = start("tune", "--shapes", self.shapes, "--tokens", "32", *CPU,
                        env={**os.environ, "XDG_CACHE_HOME": str(self.cache)})
        deadline = time.monotonic() + LIMIT
        while not list((self.cache / "greta").glob("tuning-cpu-*.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.05)
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=LIMIT)
        self.assertEqual(program.returncode, 130, err)
        self.assertIn(b"stopped: ", err)
        out, _ = self.tune("--json", *CPU, "--list")
        self.assertTrue(json.loads(out))

    def test_misuse(self):
        for args, words in (([], "tune needs"), (["--shapes", self.shapes, "--budget", "soon"], "--budget takes"),
                            (["--shapes", self.shapes, "--tokens", "0", *CPU], "--tokens")):
            _, err = self.tune(*args, code=2)
            self.assertIn(words, err)
        self.shapes.write_text("q4_k of some size\n")
        _, err = self.tune("--shapes", self.shapes, *CPU, code=1)
        self.assertIn("is no shape", err)
        _, err = self.tune("--shapes", self.cache / "nowhere", *CPU, code=1)
        self.assertIn("nowhere", err)


if __name__ == "__main__":
    main()
