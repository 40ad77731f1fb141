"""info --plan and run -v: the plan of a step, in words, as JSON and as a picture."""
import json
import re
import xml.etree.ElementTree

from sampling_test import Folder
from support import MODEL, main

PLAN = ["info", "-m", str(MODEL), "--plan", "--device", "cpu"]


class Plan(Folder):
    def test_the_sums_are_those_of_the_lines(self):
        for tokens, depth in ((1, 0), (1, 100), (64, 0)):
            plan = json.loads(self.out(*PLAN, "-o", "json", "--tokens", tokens, "--depth", depth))
            lines = plan["lines"]
            self.assertEqual((plan["tokens"], plan["depth"], plan["devices"]), (tokens, depth, ["cpu"]))
            self.assertEqual(sum(line["launches"] for line in lines), plan["launches"])
            self.assertLess(plan["barriers"], plan["launches"] + 1)
            self.assertAlmostEqual(sum(line["least_ns"] for line in lines), plan["least_ns"], delta=1)
            for line in lines:
                reading = line["bytes"] / plan["bandwidth_gb_s"]
                multiplying = line["flops"] / plan["arithmetic_tflop_s"] / 1000
                self.assertAlmostEqual(line["least_ns"], max(reading, multiplying), delta=1 + 0.001 * line["least_ns"])
                self.assertEqual(line["bound"], "arithmetic" if multiplying > reading else "bandwidth")
                ranks = [each["rank"] for each in line["passed"]]
                self.assertEqual(ranks, sorted(ranks, reverse=True))
                self.assertTrue(all(rank > line["rank"] for rank in ranks))
                self.assertTrue(all(each["reason"] for each in line["passed"]))

    def test_it_is_the_plan_that_a_profile_measures(self):
        row = json.loads(self.out("bench", "-m", MODEL, "--device", "cpu", "-r", 1, "-p", 0, "-n", 4, "--profile", "-o", "json"))[0]
        measured = {}
        for stage in row["stages"]:
            for kernel in stage["kernels"]:
                measured[stage["stage"], kernel["kernel"]] = kernel["launches"]
        planned = {}
        for line in json.loads(self.out(*PLAN, "-o", "json"))["lines"]:
            key = line["stage"], line["kernel"]
            planned[key] = planned.get(key, 0) + line["launches"]
        self.assertEqual(planned, measured)

    def test_words_say_why_not_a_kernel_of_a_higher_rank(self):
        text = self.out(*PLAN)
        self.assertNotIn("    not ", text)
        said = self.out(*PLAN, "-v")
        reasons = re.findall(r"^    not (\w+) \(rank (\d+)\): (.+)$", said, re.M)
        plan = json.loads(self.out(*PLAN, "-o", "json"))
        self.assertEqual(len(reasons), sum(len(line["passed"]) for line in plan["lines"]))
        self.assertTrue(any("rows of a step" in reason for _, _, reason in reasons), reasons)
        for line in plan["lines"]:
            self.assertIn(line["kernel"], text)

    def test_only_plain_kernels_pass_over_all_others(self):
        plan = json.loads(self.out(*PLAN, "--exact", "-o", "json"))
        self.assertEqual({line["rank"] for line in plan["lines"]}, {0})
        self.assertTrue(any(each["reason"] == "only plain kernels were asked for" for line in plan["lines"] for each in line["passed"]))

    def test_a_picture(self):
        root = xml.etree.ElementTree.fromstring(self.out(*PLAN, "-o", "svg"))
        texts = [each.text for each in root if each.tag.endswith("text")]
        lines = json.loads(self.out(*PLAN, "-o", "json"))["lines"]
        for line in lines:
            self.assertIn(f"{line['launches']} x {line['kernel']}", texts)
        self.assertEqual(sum("bound by" in text for text in texts), 2)
        bars = [each for each in root if each.tag.endswith("rect")]
        self.assertEqual(len(bars), len(lines) + 3)  # the ground and the two of the legend

    def test_run_tells_the_plan_of_a_token(self):
        _, said = self.run_cli("run", "-m", str(MODEL), "--device", "cpu", "-p", "Once", "-n", "1", "-v")
        self.assertRegex(said, r"plan of a step  1 token behind \d+, \d+ launches")
        _, said = self.run_cli("run", "-m", str(MODEL), "--device", "cpu", "-p", "Once", "-n", "1")
        self.assertNotIn("plan of a step", said)

    def test_what_cannot_be(self):
        self.assertIn("--plan", self.error(2, "info", "-m", MODEL, "-o", "svg"))
        self.assertIn("--tokens", self.error(2, *PLAN, "--tokens", "0"))
        self.assertIn("the context is", self.error(1, *PLAN, "--depth", "1000000"))
        self.assertIn("a step of 512 tokens", self.error(1, *PLAN, "--tokens", "512", "-b", "128"))
        self.error(1, *PLAN[:1], "-m", self.file("none.gguf", "no model"), "--plan")


if __name__ == "__main__":
    main()
