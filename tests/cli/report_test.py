"""report: one page about a profile, read as text and in Chromium without a window (skipped where there is none)."""
import base64
import copy
import json
import random
import re
import struct
import subprocess
import sys
import unittest
import zlib

from sampling_test import Folder
from support import LIMIT, MODEL, PROGRAM, ROOT, main

sys.path.insert(0, str(ROOT / "tests" / "serve"))
import browser  # noqa: E402

PROFILE = ["profile", "-m", str(MODEL), "--device", "cpu", "-t", "2", "-p", "Once upon a time", "-n", "12", "-o", "json"]


def colours(png):
    """How many different pixels a PNG of 8-bit RGB or RGBA has."""
    at, data, header = 8, b"", None
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        body = png[at + 8: at + 8 + size]
        header = body if kind == b"IHDR" else header
        data += body if kind == b"IDAT" else b""
        at += size + 12
    width, height, depth, form = struct.unpack_from(">IIBB", header)
    assert depth == 8 and form in (2, 6)
    step = 3 if form == 2 else 4
    raw, seen = zlib.decompress(data), set()
    for line in range(height):  # filtered values tell plain areas from drawn ones as well
        row = raw[line * (width * step + 1) + 1: (line + 1) * (width * step + 1)]
        seen.update(row[i: i + step] for i in range(0, len(row), step))
    return len(seen)


class Report(Folder):
    def setUp(self):
        super().setUp()
        self.profile = self.folder / "profile.json"
        self.profile.write_text(self.out(*PROFILE))

    def page(self, *more):
        path = self.folder / "report.html"
        self.out("report", self.profile, "-o", path, *more)
        self.assertLess(path.stat().st_size, 2 << 20)
        return path

    def test_numbers_are_those_of_the_profile(self):
        text = self.page().read_text()
        profile = json.loads(self.profile.read_text())
        embedded = json.loads(re.search(r'id="profile">(.*?)</script>', text).group(1))
        timeline = json.loads(re.search(r'id="timeline">(.*?)</script>', text).group(1))
        self.assertEqual(timeline, profile.pop("timeline"))
        self.assertEqual(embedded, profile)
        cells = [re.findall(r"<t[dh]>(.*?)</t[dh]>", line) for line in text.splitlines() if line.startswith("<tr")]
        for steps in profile["steps"]:
            self.assertIn([steps["kind"], str(steps["steps"]), str(steps["tokens"]), f"{steps['median_ns'] / 1e6:.3f}",
                           f"{1e9 * steps['tokens'] / steps['ns']:.1f}"], cells)
            for stage in steps["stages"]:
                for kernel in stage["kernels"]:
                    self.assertIn([f"  {kernel['kernel']}", str(kernel["launches"]), f"{kernel['ns'] / steps['steps'] / 1e3:.2f}",
                                   f"{kernel['gb_s']:.2f}", f"{kernel['tflop_s']:.4f}", kernel["bound"], f"{kernel['roof_percent']:.1f}"], cells)
        self.assertNotIn("http://", text.replace("http://www.w3.org/2000/svg", ""))
        self.assertNotIn("https://", text)

    def test_a_baseline_stands_beside(self):
        text = self.page("--baseline", self.profile).read_text()
        self.assertIn("<th>speed-up</th>", text)
        self.assertIn("<td>1.000</td></tr>", text)  # against itself
        self.assertIn("baseline us", text)

    def test_names_of_a_file_are_text(self):
        profile = json.loads(self.profile.read_text())
        profile["model_filename"] = "<script>window.harmed = 1</script>"
        profile["timeline"][0][1] = "</script><b>"
        self.profile.write_text(json.dumps(profile))
        text = self.page().read_text()
        self.assertEqual(text.count("<script"), 3)
        self.assertNotIn("<b>", text)

    def test_what_is_no_profile(self):
        for content in ("", "[]", "{}", '{"kind": "greta profile"}', '{"kind": "greta profile", "steps": 3}', "\x00\x01"):
            other = self.file("other.json", content)
            self.assertIn("greta-cli profile -o json", self.error(1, "report", other))
            self.assertIn("greta-cli profile -o json", self.error(1, "report", self.profile, "--baseline", other))
        self.assertIn("none.json", self.error(1, "report", self.folder / "none.json"))
        self.error(2, "report")

    def test_damaged_profiles_are_refused_in_words(self):
        draw = random.Random(7)
        whole = json.loads(self.profile.read_text())
        whole["timeline"] = whole["timeline"][:20]
        values = [None, -1, 1e300, "text", [], {}, True, [[]], [None, 1], 10 ** 25]

        def places(at):
            for key, value in at.items() if isinstance(at, dict) else enumerate(at) if isinstance(at, list) else ():
                yield at, key
                yield from places(value)

        for _ in range(60):
            profile = copy.deepcopy(whole)
            for _ in range(draw.randint(1, 3)):
                inside, key = draw.choice(list(places(profile)))
                inside[key] = draw.choice(values)
            bad = self.file("bad.json", json.dumps(profile))
            done = subprocess.run([PROGRAM, "report", bad], capture_output=True, timeout=LIMIT)
            self.assertIn(done.returncode, (0, 1), json.dumps(profile)[:2000])  # and no signal
            if done.returncode == 1:
                self.assertIn("greta-cli profile -o json", done.stderr.decode())

    def test_what_a_driver_and_sensors_tell(self):
        profile = json.loads(self.profile.read_text())
        kernel = profile["steps"][-1]["stages"][0]["kernels"][0]["kernel"]
        profile["machine_code"] = {kernel: "Register Count 64, Stack Size <0>"}
        profile["counters"].append({"name": "GPU power, W", "values": 3, "least": 90.5, "median": 400.25, "most": 412.5})
        profile["missing"] = ["clocks <of> it"]
        self.profile.write_text(json.dumps(profile))
        text = self.page().read_text()
        for words in ("<th>the driver tells</th>", "<td>Register Count 64, Stack Size &lt;0&gt;</td>", "<td>GPU power, W</td><td>90.50</td><td>400.25</td><td>412.50</td>",
                      "Not there: clocks &lt;of&gt; it"):
            self.assertIn(words, text)

    def test_a_long_timeline_is_cut(self):
        profile = json.loads(self.profile.read_text())
        profile["timeline"] = [["device", "gate up " * 30, i * 1000, 900, "kernel"] for i in range(20000)]
        profile["spans"] = 20000
        self.profile.write_text(json.dumps(profile))
        self.assertRegex(self.page().read_text(), r"The first \d+ of 20000 spans are shown")

    @unittest.skipUnless(browser.find(), "there is no Chromium")
    def test_in_a_browser(self):
        url = self.page("--baseline", self.profile).as_uri()
        page = browser.Browser()
        self.addCleanup(page.close)
        page.open(url)
        shot = lambda: base64.b64decode(page.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])
        ink = "(c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size)(document.getElementById('chart'))"
        self.assertGreater(page.run(ink), 5)  # the timeline is not blank
        before = page.run("document.getElementById('chart').toDataURL()")
        page.run("document.getElementById('step').click()")
        self.assertNotEqual(page.run("document.getElementById('chart').toDataURL()"), before)
        self.assertGreater(page.run("document.querySelectorAll('svg circle').length"), 3)
        for width, dark in ((1100, False), (360, True)):
            page.size(width, 800, mobile=width < 500)
            page.dark(dark)
            self.assertLessEqual(page.run("document.documentElement.scrollWidth"), width)
            self.assertGreater(colours(shot()), 20)
        ground = "getComputedStyle(document.body).backgroundColor"
        self.assertEqual(page.run(ground), "rgb(29, 32, 33)")
        page.dark(False)
        self.assertEqual(page.run(ground), "rgb(255, 255, 255)")
        self.assertGreater(len(page.call("Page.printToPDF")["data"]), 10000)
        self.assertEqual(page.console, [])
        self.assertEqual([each for each in page.requests if each != url and not each.startswith("data:")], [])


if __name__ == "__main__":
    main()
