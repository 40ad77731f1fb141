"""What is looked at rather than read: where the bytes of a file are, and pictures of bench."""
import json
import re
import subprocess
import sys
import xml.etree.ElementTree

from sampling_test import Folder
from support import LIMIT, MODEL, PROGRAM, ROOT, main

BENCH = ["bench", "-m", str(MODEL), "-r", "1", "-p", "16", "-n", "4"]


def shapes(svg):
    """The numbers of rectangles, circles and lines, and the texts."""
    root = xml.etree.ElementTree.fromstring(svg)
    names = [each.tag.split("}")[1] for each in root]
    texts = [each.text for each in root if each.tag.endswith("text")]
    return names.count("rect"), names.count("circle"), names.count("line"), texts


class Info(Folder):
    def test_bars(self):
        text = self.out("info")
        contents = json.loads(self.out("info", "--json"))
        total = sum(tensor["size_bytes"] for tensor in contents["tensors"])
        for kind in ("type", "part"):
            shares = contents[f"bytes_by_{kind}"]
            self.assertEqual(sum(shares.values()), total)
            self.assertEqual(list(shares.values()), sorted(shares.values(), reverse=True))
            table = re.search(rf"bytes by {kind}\n((?:  .+\n)+)", text).group(1).splitlines()
            self.assertEqual(len(table), len(shares))
            for line, (name, size) in zip(table, shares.items()):
                found = re.fullmatch(r"  (.{14}) (#*) +(\S+ \S+) +([\d.]+) %", line)
                self.assertEqual(found.group(1).strip(), name)
                self.assertEqual(len(found.group(2)), int(40 * size / max(shares.values()) + 0.5))
                self.assertAlmostEqual(float(found.group(4)), 100 * size / total, delta=0.06)
        self.assertEqual(set(contents["bytes_by_part"]), {"embedding", "attention", "feed-forward", "norms"})


class Readme(Folder):
    def test_its_pictures_are_those_of_the_measured_files(self):
        script = ROOT / "docs" / "figures" / "make_readme.py"
        subprocess.run([sys.executable, "-B", script, PROGRAM, self.folder], check=True, timeout=LIMIT)
        readme = (ROOT / "README.md").read_text()
        for name in ("comparison", "recording"):
            subprocess.run([sys.executable, "-B", script.parent / f"make_{name}.py", self.folder], check=True, timeout=LIMIT)
        for name in ("bytes.svg", "speed.svg", "roofline.svg", "comparison.svg", "recording.svg"):
            self.assertIn(f"(docs/figures/{name})", readme)
            self.assertEqual((self.folder / name).read_text(), (script.parent / name).read_text(), f"run {script}")


class Bench(Folder):
    def test_labels_do_not_lie_on_each_other(self):
        row = json.loads(self.out(*BENCH, "--profile", "-o", "json"))[0]
        row["stages"] = [{"stage": f"stage{i}", "bytes": 1000, "flops": 1000 + i, "ns": 1000, "roof_percent": 5} for i in range(8)]
        svg = self.out("bench", "--draw", self.file("row.json", json.dumps([row])))
        places = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>stage\d, 5 %<', svg)
        heights = sorted(float(y) for _, y in places)
        self.assertEqual(len(heights), 8)
        self.assertTrue(all(b - a >= 12 for a, b in zip(heights, heights[1:])), heights)
        # Two dots of one height that are far from each other have their labels beside them.
        row["stages"] = [{"stage": name, "bytes": 10**6, "flops": flops, "ns": flops / 1000, "roof_percent": 5}
                         for name, flops in (("left", 10**6), ("right", 10**9))]
        svg = self.out("bench", "--draw", self.file("row.json", json.dumps([row])))
        places = re.findall(r'y="([\d.]+)"[^>]*>(?:left|right), 5 %<', svg)
        self.assertEqual([float(y) - 4 for y in places], [float(y) for y in re.findall(r'cy="([\d.]+)"', svg)])

    def test_a_bar_for_each_test(self):
        rects, circles, _, texts = shapes(self.out(*BENCH, "-o", "svg"))
        self.assertEqual((rects, circles), (1 + 2 * 2, 0))  # the ground, and for each test a bar on its roof
        self.assertIn("pp16", texts)
        self.assertIn("tg4", texts)
        self.assertTrue(any(re.fullmatch(r"[\d.]+ t/s, \d+ % of the bandwidth", text) for text in texts), texts)
        self.assertTrue(any(re.fullmatch(r"[\d.]+ t/s, \d+ % of the arithmetic", text) for text in texts), texts)

    def test_the_roofline_of_a_profile(self):
        path = self.file("rows.json", self.out(*BENCH, "--profile", "-o", "json"))
        rows = json.loads(path.read_text())
        svg = self.out("bench", "--draw", path)
        _, circles, _, texts = shapes(svg)
        stages = [stage for row in rows for stage in row["stages"] if stage["bytes"] and stage["flops"]]
        self.assertEqual(circles, len(stages))
        for stage in stages:
            self.assertTrue(any(text.startswith(stage["stage"] + ", ") for text in texts))
        self.assertEqual(svg, self.out("bench", "--draw", path))

    def test_names_do_not_break_the_picture(self):
        rows = json.loads(self.out(*BENCH, "-o", "json"))
        rows[0]["device"] = "<script>&\"'"
        path = self.file("rows.json", json.dumps(rows))
        self.assertTrue(any("<script>&" in text for text in shapes(self.out("bench", "--draw", path))[3]))

    def test_what_cannot_be_drawn(self):
        for text in ("", "[]", "{}", "[1]", '[{"n_prompt": "x"}]', "[{}]"):
            path = self.file("wrong.json", text)
            self.assertIn("bench -o json prints", self.error(1, "bench", "--draw", path))
        self.assertIn("No such file", self.error(1, "bench", "--draw", self.folder / "none"))


if __name__ == "__main__":
    main()
