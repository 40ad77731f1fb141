"""The rule by which .ci/run chooses jobs: what changed since the last whole run, and a sample of the others.

    stages_test.py ROOT

Hashes contents that a reader would call the same, and others; plants a change of a kernel; sees that samples of many
commits reach every job; and reads the head and the inputs of every stage.
"""
import glob
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(sys.argv.pop(1))
spec = importlib.util.spec_from_file_location("plan", os.path.join(ROOT, ".ci/plan.py"))
plan = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plan)


def write(root, path, text):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as file:
        file.write(text)


class Hashes(unittest.TestCase):
    def hash_of(self, files, name="src", build="build"):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                write(root, path, text)
            return plan.Inputs(root, build).all(name)

    def test_moves_comments_and_indentation_change_nothing(self):
        first = self.hash_of({"src/a.cpp": '#include "x/b.h"\nint a;  // one\n', "src/b.h": "int b;\n"})
        moved = {"src/c/d.cpp": '#include "y/z/b.h"\n/* two\n lines */\n  int a;\n', "src/e.h": "int b;\n\n"}
        self.assertEqual(first, self.hash_of(moved))

    def test_code_strings_and_data_change_it(self):
        first = self.hash_of({"src/a.cpp": 'f("a // b");\n', "src/a.tsv": "1 // 2\n"})
        for path, text in (("src/a.cpp", 'f("a // c");\n'), ("src/a.tsv", "1 // 3\n"), ("src/b.h", "int b;\n")):
            changed = {"src/a.cpp": 'f("a // b");\n', "src/a.tsv": "1 // 2\n", path: text}
            self.assertNotEqual(first, self.hash_of(changed), path)

    def test_a_number_with_separators_begins_no_string(self):
        first, second = ("int a = 1'000;  // it's\nint b = %d;\n" % value for value in (1, 2))
        self.assertNotEqual(self.hash_of({"src/a.cpp": first}), self.hash_of({"src/a.cpp": second}))

    def test_a_kernel_counts_with_its_table_rows(self):
        row = '{"norm", "vulkan", 1},\n'
        files = {"build/kernels/vulkan/norm.spv": "code", "build/kernels/vulkan/rope.spv": "code",
                 "build/generated/kernel_rows.inc": row}
        first, rope = self.hash_of(files, "kernel:norm*"), self.hash_of(files, "kernel:rope")
        for path, text in (("build/kernels/vulkan/norm.spv", "planted fault"),
                           ("build/generated/kernel_rows.inc", row.replace("1", "2"))):
            self.assertNotEqual(first, self.hash_of({**files, path: text}, "kernel:norm*"), path)
            self.assertEqual(rope, self.hash_of({**files, path: text}, "kernel:rope"), path)
        self.assertEqual(plan.ABSENT, self.hash_of(files, "kernel:sum"))

    def test_a_hip_kernel_counts_with_its_code_objects_and_rows(self):
        files = {"build/kernels/hip/norm_plain.gfx942.hsaco": "code", "build/kernels/hip/norm_plain.gfx1100.hsaco": "code",
                 "build/kernels/hip/rope_plain.gfx942.hsaco": "code",
                 "build/generated/kernel_rows.inc": '{"norm", "hip", "gfx942"},\n{"norm", "vulkan", ""},\n',
                 "build/generated/hip_kernels.tsv": "norm\tgfx942\t64\tx\t/a/norm_plain.gfx942.hsaco\n"
                                                    "norm\tgfx1100\t64\tx\t/a/norm_plain.gfx1100.hsaco\n"
                                                    "rope\tgfx942\t64\tx\t/a/rope_plain.gfx942.hsaco\n"}
        first, rope = self.hash_of(files, "hip:norm*"), self.hash_of(files, "hip:rope")
        for path, text in (("build/kernels/hip/norm_plain.gfx1100.hsaco", "planted fault"),
                           ("build/generated/kernel_rows.inc", '{"norm", "hip", "gfx90a"},\n')):
            self.assertNotEqual(first, self.hash_of({**files, path: text}, "hip:norm*"), path)
            self.assertEqual(rope, self.hash_of({**files, path: text}, "hip:rope"), path)
        self.assertEqual(plan.ABSENT, self.hash_of(files, "hip:sum"))

    def test_an_input_that_names_nothing_is_an_error(self):
        with self.assertRaises(SystemExit):
            self.hash_of({"src/a.cpp": ""}, "source")


class Choice(unittest.TestCase):
    JOBS = [("group", f"job {i}") for i in range(40)] + [("beyond?", f"rest {i}") for i in range(40)]
    HASHES = {name: "hash" for _, name in JOBS}

    def choose(self, commit="a", whole=False, **changed):
        hashes = {**self.HASHES, **{name.replace("_", " "): value for name, value in changed.items()}}
        return plan.choose(self.JOBS, hashes, self.HASHES, commit, 10, whole)

    def test_what_changed_runs(self):
        reasons = self.choose(job_7="other", rest_9="other")
        self.assertEqual({"job 7", "rest 9"}, {name for name, why in reasons.items() if why == "its inputs changed"})

    def test_a_change_of_everything_stays_within_a_whole_run_and_a_few(self):
        chosen = []
        for commit in ("a", "b"):
            reasons = plan.choose(self.JOBS, dict.fromkeys(self.HASHES, "other"), self.HASHES, commit, 10, False)
            chosen.append({name for name in reasons if name.startswith("rest")})
            self.assertEqual([40, plan.MOST_BEYOND], [len(reasons) - len(chosen[-1]), len(chosen[-1])])
        self.assertNotEqual(*chosen)

    def test_what_is_beyond_a_whole_run_comes_last(self):
        first, second = (plan.in_order(self.JOBS, commit) for commit in ("a", "b"))
        self.assertEqual([f"job {i}" for i in range(40)], first[:40])
        self.assertEqual(sorted(first), sorted(second))
        self.assertNotEqual(first, second)

    def test_no_job_begins_when_time_is_up(self):
        script = """work=$1; touch "$work/left.txt"; job_count() { echo 1; }; . .ci/lib.sh
          last_begin=$2; job_command[a]="echo ran"; chosen=(a); run_jobs tests; cat "$work/left.txt" """
        with tempfile.TemporaryDirectory() as work:
            said = [subprocess.check_output(["bash", "-c", script, "bash", work, end], cwd=ROOT, text=True)
                    for end in ("100", "-1")]
        self.assertIn("ran", said[0])
        self.assertEqual("a\n", said[1])

    def test_what_is_not_built_counts_as_changed(self):
        self.assertEqual("its inputs changed", self.choose(job_7=plan.ABSENT)["job 7"])

    def test_a_sample_has_a_job_in_ten_of_each_group(self):
        reasons = self.choose()
        self.assertEqual({"sample"}, set(reasons.values()))
        self.assertEqual([4, 4], [sum(name.startswith(word) for name in reasons) for word in ("job", "rest")])

    def test_samples_rotate_over_all_jobs(self):
        reached = set()
        for commit in range(100):
            reached |= set(self.choose(str(commit)))
        self.assertEqual({name for _, name in self.JOBS}, reached)

    def test_a_whole_run(self):
        reasons = self.choose(whole=True)
        self.assertEqual(40, sum(why == "whole" for why in reasons.values()))
        self.assertEqual(4, sum(why == "sample" for why in reasons.values()))
        first = plan.choose(self.JOBS, self.HASHES, None, "a", 10, False)
        self.assertEqual(set(reasons), set(first), "without a record all that a whole run has runs")


class Stages(unittest.TestCase):
    def test_each_states_minutes_and_inputs_that_are_there(self):
        stages = sorted(glob.glob(os.path.join(ROOT, ".ci/stages/*.sh")))
        self.assertGreater(len(stages), 6)
        for path in stages:
            with open(path, encoding="utf-8") as file:
                head = "".join(file.readlines()[:14])
            name = os.path.basename(path).removesuffix(".sh")
            self.assertRegex(head, rf"\A# {name}: ")
            self.assertRegex(head, r"\n# Minutes: \d+ whole[,;.]")
            self.assertRegex(head, r"\n# Inputs: \S")

    def test_all_stages_can_be_planned(self):
        script = """set -euo pipefail
          work=$1 whole=no plan=yes commit=0; touch "$work/skipped.txt"
          . cmake/setup.sh
          for file in .ci/lib.sh .ci/mesa.sh .ci/lavapipe.sh .ci/stages/*.sh; do . "$file"; done
          for stage in radv lavapipe hip validation sanitizers tsan fuzz package python; do choose_jobs $stage; done"""
        with tempfile.TemporaryDirectory() as work:
            done = subprocess.run(["bash", "-c", script, "bash", work], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout[-2000:] + done.stderr)


unittest.main(verbosity=2)
