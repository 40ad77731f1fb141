"""cmake/story.sh and test.sh: a line for each stage, details in a log, and what to type next. The commands that install
and build are stand-ins that print as much as the real ones."""
import os
import pathlib
import pty
import re
import select
import shutil
import stat
import subprocess
import tempfile
import unittest

from support import LIMIT, ROOT, main

NOISE = "for i in $(seq 1 400); do echo \"[$i/400] Building object $i\"; done"


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copytree(ROOT / "cmake", self.folder / "cmake")
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name in ("dpkg-query", "apt-get", "apt-cache", "sudo"):
            self.command(name, "echo installed 9.9")
        self.command("cmake", NOISE)
        self.command("ctest", "echo '100% tests passed'")
        program = self.folder / "build/release/bin/greta-cli"
        program.parent.mkdir(parents=True)
        self.command("greta-cli", "echo Once upon a time there was a beaver.", program)

    def command(self, name, script, path=None):
        path = path or self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def start(self, script, **kwargs):
        env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}
        return subprocess.Popen(["sh", str(self.folder / "cmake" / script)], env=env, cwd="/", **kwargs)

    def run_script(self, script, code=0):
        done = self.start(script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        text = done.communicate(timeout=LIMIT)[0].decode()
        self.assertEqual(done.returncode, code, text)
        return text

    def test_a_line_for_each_stage(self):
        text = self.run_script("story.sh")
        lines = text.splitlines()
        self.assertLess(len(lines), 20, text)
        self.assertRegex(lines[0], r"^Details are in .+/build/story\.log\.$")
        self.assertRegex(lines[1], r"^Packages to build with \(1 to 5 minutes\) \.\.\. done in \d+ s$")
        self.assertRegex(lines[2], r"^The program \(about \d+ minutes with \d+ at once, .+\) \.\.\. done in \d+ s$")
        self.assertIn("there was a beaver", text)
        self.assertRegex(text, r"(?s)What to type next:\n  build/release/bin/greta-cli chat .+-m FILE\.gguf")
        self.assertIn("[400/400]", (self.folder / "build/story.log").read_text())

    def test_the_tests(self):
        text = self.run_script("test.sh")
        self.assertLess(len(text.splitlines()), 12, text)
        self.assertIn("tests passed", text)

    def test_a_failure_shows_the_end_of_the_log(self):
        self.command("cmake", NOISE + "; echo 'error: no compiler' >&2; exit 1")
        text = self.run_script("story.sh", code=1)
        self.assertRegex(text, r"The program .+ failed after \d+ s\n\nThe end of .+/build/story\.log:\n")
        self.assertIn("error: no compiler", text)
        self.assertLess(len(text.splitlines()), 30, text)
        self.assertNotIn("there was a beaver", text)

    def test_progress_on_a_terminal(self):
        self.command("cmake", NOISE + "; sleep 3")
        try:
            master, slave = pty.openpty()
        except OSError as error:
            self.skipTest(f"the system has no pseudo-terminal: {error}")
        running = self.start("story.sh", stdout=slave, stderr=slave, stdin=slave)
        os.close(slave)
        seen = ""
        while select.select([master], [], [], LIMIT)[0]:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            seen += data.decode()
            if not data:
                break
        os.close(master)
        self.assertEqual(running.wait(), 0, seen)
        self.assertIn("[400/400]", seen)
        self.assertLess(seen.count("\n"), 20, seen)
        self.assertTrue(re.search(r"The program [^\r\n]*done in \d+ s\r\n", seen), seen)


if __name__ == "__main__":
    main()
