"""profile: the timeline of a prompt and an answer. What is printed is what the trace holds; spans nest."""
import collections
import json
import pathlib

from sampling_test import Folder
from support import MODEL, main
from trace_file import read_chrome, read_perfetto

PROFILE = ["profile", "-m", str(MODEL), "--device", "cpu", "-t", "2", "-p", "Once upon a time", "-n", "12"]


def crossing(slices):
    """Pairs of slices of one track that overlap and do not nest."""
    found = []
    by_track = collections.defaultdict(list)
    for each in slices:
        by_track[each.track].append(each)
    for each in by_track.values():
        stack = []
        for one in sorted(each, key=lambda s: (s.begin, -s.end)):
            while stack and stack[-1].end <= one.begin:
                stack.pop()
            if stack and one.end > stack[-1].end:
                found.append((stack[-1], one))
            stack.append(one)
    return found


class Profile(Folder):
    def profile(self, *more, name="trace.pftrace"):
        path = self.folder / name
        result = json.loads(self.out(*PROFILE, "-o", "json", "--trace", path, *more))
        return result, path.read_bytes()

    def check(self, result, slices, streams=1):
        self.assertEqual(len(slices), result["spans"])
        self.assertEqual(result["spans_out_of_place"], 0)
        self.assertEqual(crossing(slices), [])
        count = collections.Counter((each.track, each.name) for each in slices)
        for once in ("open device", "open model", "tokenise", "generate"):
            self.assertEqual(count["program", once], 1)
        for host in result["host"]:
            self.assertEqual(count[host["track"], host["name"]], host["count"])
        steps = {each.arguments["step"]: each for each in slices if each.track == "steps"}
        self.assertEqual(sum(each["steps"] for each in result["steps"]), len(steps))
        self.assertEqual(sum(each["tokens"] for each in result["steps"]), sum(each.arguments["tokens"] for each in steps.values()))
        self.assertEqual(count["library", "record"], len(steps))
        self.assertEqual(count["library", "wait"], len(steps))
        self.assertGreaterEqual(count["library", "on_token"], 12 * streams)
        self.assertEqual(result["n_gen"], 12 * streams)

    def test_perfetto(self):
        result, trace = self.profile()
        slices, counters = read_perfetto(trace)
        self.check(result, slices)
        launches = sorted((each for each in slices if each.track == "device"), key=lambda each: each.begin)
        steps = {each.arguments["step"]: each for each in slices if each.track == "steps"}
        for one, other in zip(launches, launches[1:]):
            self.assertLessEqual(one.end, other.begin)
        sums = collections.Counter()
        for each in launches:
            step = steps[each.arguments["step"]]
            self.assertTrue(step.begin <= each.begin and each.end <= step.end)
            sums[each.name, each.arguments["kernel"]] += each.end - each.begin
        printed = collections.Counter()
        for kind in result["steps"]:
            of_kind = 0
            for stage in kind["stages"]:
                self.assertEqual(stage["ns"], sum(kernel["ns"] for kernel in stage["kernels"]))
                of_kind += stage["ns"]
                for kernel in stage["kernels"]:
                    printed[stage["stage"], kernel["kernel"]] += kernel["ns"]
            self.assertEqual(of_kind, kind["device_ns"])
            self.assertLessEqual(kind["device_ns"], kind["wait_ns"])  # the CPU works while the host waits
            self.assertLessEqual(kind["record_ns"] + kind["submit_ns"] + kind["wait_ns"], kind["ns"])
        self.assertEqual(printed, sums)
        self.assertEqual(len(counters["tokens/s"]), len(steps))

    def test_chrome(self):
        result, trace = self.profile(name="trace.json")
        slices, counters = read_chrome(trace)
        exact = [each._replace(begin=round(each.begin * 1000), end=round(each.end * 1000)) for each in slices]
        self.check(result, exact)
        self.assertEqual(list(counters), [each["name"] for each in result["counters"]])
        self.assertEqual({each.track for each in slices}, {"program", "library", "steps", "device"})

    def test_streams_share_steps(self):
        result, trace = self.profile("-np", "3")
        slices, _ = read_perfetto(trace)
        self.check(result, slices, 3)
        self.assertEqual(max(each["tokens"] // each["steps"] for each in result["steps"] if each["kind"] == "decode"), 3)

    def test_counters(self):
        result, trace = self.profile()
        _, counters = read_perfetto(trace)
        for each in result["counters"]:
            values = sorted(value for _, value in counters[each["name"]])
            self.assertEqual(len(values), each["values"], each["name"])
            self.assertEqual((values[0], values[-1]), (each["least"], each["most"]), each["name"])
        names = {each["name"]: each for each in result["counters"]}
        self.assertGreater(names["memory of the process, MiB"]["least"], 1)
        self.assertEqual(names["tokens in the cache"]["most"], result["n_prompt"] + 12 - 1)  # the last one is not read
        for name in ("working memory, MiB", "cache, MiB"):
            self.assertGreater(names[name]["least"], 0)
        counted = "processor, G cycles/s" in names  # where the kernel lets a process count them
        told = " ".join(result["missing"])
        self.assertEqual("cycles" in told, not counted)
        self.assertIn("GPU", told)
        text = self.out(*PROFILE)
        self.assertIn("| tokens in the cache ", text)
        self.assertIn("Not there: clocks and power of a GPU", text)

    def test_requests_of_a_service(self):
        result, trace = self.profile("--requests", "5", "-np", "2")
        slices, counters = read_perfetto(trace)
        self.assertEqual(crossing(slices), [])
        requests = [each for each in slices if each.name == "request"]
        self.assertEqual(len(requests), 5)
        self.assertLessEqual({each.track for each in requests}, {f"requests {i}" for i in range(2, 6)} | {"requests"})
        self.assertEqual({each.arguments["tokens"] for each in requests}, {result["n_prompt"] // 5 + 12})
        self.assertEqual((result["requests"], result["streams"], result["n_gen"]), (5, 2, 5 * 12))
        for name in ("requests that wait", "requests that run", "pages in use"):
            self.assertGreater(len(counters[name]), 0)
        self.assertLessEqual(max(value for _, value in counters["requests that run"]), 2)
        self.assertEqual(counters["requests that wait"][-1][1], 0)  # as of the last step

    def test_the_host_alone(self):
        result, trace = self.profile("--host-only")
        slices, _ = read_perfetto(trace)
        self.check(result, slices)
        self.assertNotIn("device", {each.track for each in slices})
        self.assertEqual({each["device_ns"] for each in result["steps"]}, {0})

    def test_a_prompt_in_the_template(self):
        result, trace = self.profile("--as-message")
        slices, _ = read_perfetto(trace)
        self.assertIn(("program", "template"), {(each.track, each.name) for each in slices})

    def test_words(self):
        text = self.out(*PROFILE)
        for word in ("| decode", "| first", "library: wait", "gate up", "The device's clock may stand"):
            self.assertIn(word, text)
        self.assertNotIn("a clock has jumped", text)

    def test_what_cannot_be(self):
        self.assertIn("--predict", self.error(2, *PROFILE, "-n", "0"))
        self.assertIn("full", self.error(1, *PROFILE, "--trace", "/dev/full/trace").replace("Not a directory", "full"))
        kept = self.folder / "kept.json"
        kept.write_text("old")
        self.error(1, *PROFILE, "-m", self.folder / "none.gguf", "--trace", kept)
        self.assertEqual(kept.read_text(), "old")
        self.assertEqual([each.name for each in pathlib.Path(self.folder).iterdir()], ["kept.json"])


if __name__ == "__main__":
    main()
