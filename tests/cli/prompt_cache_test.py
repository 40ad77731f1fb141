"""--prompt-cache: what was read is not read again, and a file that is wrong is refused and kept."""
import pathlib
import re
import resource
import signal
import stat
import tempfile

from support import CliTest, main, start

PROMPT = "Once upon a time there was a little beaver who lived by the river. He"
# With --exact the bits do not depend on how much of a prompt is fed at once.
RUN = ["run", "--temp", "0", "-c", "256", "-n", "12", "--exact"]


class PromptCache(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "cache"
        self.option = ["--prompt-cache", str(self.path)]

    def tearDown(self):
        self.assertIn([p.name for p in self.path.parent.iterdir()], ([], ["cache"]))  # nothing half-written

    def run_with(self, prompt, *args):
        """The text, and how many tokens of how many were there: (0, 0) where there is no file."""
        out, err = self.run_cli(*RUN, "-p", prompt, *self.option, *args)
        self.assertEqual(out, self.out(*RUN, "-p", prompt))
        found = re.search(r"cache has (\d+) of the (\d+) tokens of the prompt", err)
        self.assertEqual("not there yet" in err, found is None)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def test_the_text_is_the_same_and_the_prompt_is_read_once(self):
        self.assertEqual(self.run_with(PROMPT), (0, 0))
        first = self.path.read_bytes()
        there, count = self.run_with(PROMPT)
        self.assertEqual(there, count - 1)
        self.assertEqual(self.path.read_bytes(), first)  # nothing new, nothing written
        more, longer = self.run_with(PROMPT + " loved a fish")
        self.assertEqual(more, count)
        self.assertGreater(longer, count)
        self.assertGreater(self.path.stat().st_size, len(first))
        beginning, _ = self.run_with("Once upon a time there lived a king.")
        self.assertTrue(2 < beginning < 10, beginning)
        self.assertLess(self.path.stat().st_size, len(first))

    def test_only_its_owner_reads_it_and_no_link_is_followed(self):
        other = self.path.parent.parent / (self.path.parent.name + "-other")
        self.addCleanup(other.unlink)
        other.write_text("another file")
        self.path.with_name("cache.part").symlink_to(other)
        self.run_with(PROMPT)
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        self.assertEqual(other.read_text(), "another file")
        self.path.unlink()
        self.path.symlink_to(other)
        self.assertIn("remove the file", self.run_cli(*RUN, "-p", PROMPT, *self.option, code=1)[1])
        other.write_text("")
        self.run_cli(*RUN, "-p", PROMPT, *self.option)
        self.assertFalse(self.path.is_symlink())
        self.assertEqual(other.read_text(), "")

    def test_read_only(self):
        self.assertEqual(self.run_with(PROMPT, "--prompt-cache-ro"), (0, 0))
        self.assertFalse(self.path.exists())
        self.run_with(PROMPT)
        first = self.path.read_bytes()
        self.run_with(PROMPT + " loved a fish", "--prompt-cache-ro")
        self.assertEqual(self.path.read_bytes(), first)

    def test_what_was_generated(self):
        out = self.out(*RUN, "-p", PROMPT, *self.option, "--prompt-cache-all")
        there, count = self.run_with(out.rstrip("\n") + " And so it went on")
        self.run_cli(*RUN, "-p", PROMPT, "-n", "0", "--prompt-cache", str(self.path))
        self.assertGreater(there, self.run_with(PROMPT)[1] + 5)
        self.assertGreater(count, there)

    def test_a_prompt_is_read_ahead(self):
        self.assertEqual(self.out(*RUN, "-p", PROMPT, "-n", "0", *self.option), PROMPT + "\n")
        there, count = self.run_with(PROMPT)
        self.assertEqual(there, count - 1)

    def test_a_wrong_file(self):
        self.run_with(PROMPT)
        right = self.path.read_bytes()
        half = len(right) // 2
        wrong = {"no saved session": b"x" * 500, "truncated": right[:half],
                 "checksum": right[:half] + bytes([right[half] ^ 1]) + right[half + 1:]}
        for words, content in wrong.items():
            self.path.write_bytes(content)
            error = self.error(1, *RUN, "-p", PROMPT, *self.option)
            self.assertIn(words, error)
            self.assertIn(str(self.path), error)
            self.assertEqual(self.path.read_bytes(), content)
        self.path.write_bytes(right)
        self.assertIn("f32", self.error(1, *RUN, "-p", PROMPT, *self.option, "-ctk", "f32"))
        self.assertIn("context", self.error(1, *RUN, "-p", PROMPT, *self.option, "-c", "10"))
        self.assertIn("not a file", self.error(1, *RUN, "-p", PROMPT, "--prompt-cache", self.path.parent))
        self.assertEqual(self.path.read_bytes(), right)

    def test_an_empty_file_is_none(self):
        self.path.write_bytes(b"")
        self.assertEqual(self.run_with(PROMPT), (0, 0))
        self.assertGreater(self.path.stat().st_size, 1000)

    def test_a_place_where_nothing_can_be_written(self):
        place = self.path / "nowhere"
        out, err = self.run_cli(*RUN, "-p", PROMPT, "--prompt-cache", str(place), code=1)
        self.assertEqual(out, self.out(*RUN, "-p", PROMPT))
        self.assertIn("No such file or directory", err)

    def test_a_disk_that_fills_up(self):
        """A limit on the size of files stands for it. The text comes, and the file that was there stays."""
        self.run_with("Once upon a time")
        first = self.path.read_bytes()
        for limit in (0, 100, 4096, 30000):
            out, err = self.run_cli(
                *RUN, "-p", PROMPT, *self.option, code=1, restore_signals=False,  # SIGXFSZ stays ignored
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            self.assertEqual(out, self.out(*RUN, "-p", PROMPT))
            self.assertIn("File too large", err)
            self.assertEqual(self.path.read_bytes(), first)
        self.assertIn("No space left on device", self.error(1, "logits", "--ids", "1 2", "-o", "/dev/full"))

    def test_ctrl_c_keeps_what_was_read(self):
        args = ["run", "-p", PROMPT, "--temp", "0", "-c", "8192", "--exact", "-t", "1", "--ignore-eos", *self.option]
        program = start(*args)
        program.stdout.read(len(PROMPT) + 1)
        program.send_signal(signal.SIGINT)
        program.communicate()
        self.assertEqual(program.returncode, 130)
        there, count = self.run_with(PROMPT)
        self.assertEqual(there, count - 1)

    def test_a_conversation(self):
        chat = ["chat", "-p", "Tell me a story about a beaver.", "--temp", "0", "-c", "256", "-n", "12", "--exact", "-v"]
        first, _ = self.run_cli(*chat, *self.option)
        again, err = self.run_cli(*chat, *self.option)
        self.assertEqual(again, first)
        prompt, reused = re.search(r"prompt (\d+) tokens, (\d+) of them reused", err).groups()
        self.assertEqual(int(reused), int(prompt) - 1)

    def test_wrong_usage(self):
        self.assertIn("--prompt-cache", self.error(2, *RUN, "-p", "x", "--prompt-cache-ro"))
        self.assertIn("run and chat", self.error(2, "ppl", "-f", "x", *self.option))


if __name__ == "__main__":
    main()
