"""The terminal of a conversation: its width, the banner, keys of any kind, files, completion, and odd terminals."""
import json
import os
import re
import signal
import termios
import textwrap
import time

from sampling_test import Folder
from support import main

SHORT = ["chat", "-c", "512", "--temp", "0", "-n", "8"]
READY = r"Ctrl-D leaves\s+> "
ENDLESS = ["chat", "--temp", "0", "-c", "8192", "--exact", "-t", "1", "--ignore-eos"]


class Console(Folder):
    def begin(self, *args, columns=80, rows=24, env=None, ready=READY):
        terminal = self.terminal(*(args or SHORT), state=self.folder, env=env)
        termios.tcsetwinsize(terminal.fd, (rows, columns))
        terminal.wait_for(ready)
        return terminal

    def saved(self, terminal):
        path = self.folder / "saved.json"
        terminal.send(f"/save {path}\r".encode())
        terminal.wait_for(r"(?s)messages in.+saved\.json\s+> ")
        return json.loads(path.read_text())

    def leave(self, terminal):
        terminal.send(b"\x04")
        self.assertEqual(terminal.exit_code(), 0)


class Width(Console):
    STORY = ["-p", "Tell me a story about a beaver.", "--temp", "0", "-n", "80", "-c", "512"]

    def lines(self, columns, *args):
        """The lines of an answer on a terminal of this width, and those of the same in a pipe."""
        terminal = self.terminal(*args, "-q", state=self.folder)
        termios.tcsetwinsize(terminal.fd, (24, columns))
        self.assertEqual(terminal.exit_code(), 0)
        return terminal.whole.replace("\r\n", "\n").split("\n"), self.out(*args, "-q").split("\n")

    def test_lines_end_between_words(self):
        for columns in (20, 40, 72):
            for args in (["chat", *self.STORY], ["run", *self.STORY]):
                lines, whole = self.lines(columns, *args)
                self.assertGreater(max(map(len, whole)), 100)
                filled = [textwrap.wrap(line, columns, break_on_hyphens=False) or [""] for line in whole]
                self.assertEqual(lines, [line for part in filled for line in part])

    def test_no_line_ends_in_a_pipe(self):
        self.assertGreater(max(map(len, self.out("chat", *self.STORY, "-q").split("\n"))), 100)

    def test_wide_characters_long_words_and_code(self):
        grammar = ('root ::= "日本語日本語日本語日本語 " "abcdefghijklmnopqrstuvwxyz0123456789 " '
                   '"a b\\n```\\none two three four five six seven\\n```\\none two three four five six"\n')
        terminal = self.terminal("chat", "-p", "x", "-q", "-c", "512", "-n", "300", "--grammar", grammar, state=self.folder)
        termios.tcsetwinsize(terminal.fd, (24, 20))
        self.assertEqual(terminal.exit_code(), 0)
        self.assertEqual(terminal.whole.replace("\r\n", "\n"),
                         "日本語日本語日本語日\n本語\nabcdefghijklmnopqrstuvwxyz0123456789 a b\n```\n"
                         "one two three four five six seven\n```\none two three four\nfive six\n")

    def test_odd_sizes(self):
        for rows, columns in ((1, 1), (2, 3), (1, 10000), (24, 0), (0, 0), (65535, 65535)):
            with self.subTest(rows=rows, columns=columns):
                lines, whole = self.lines(columns, "chat", *self.STORY)
                self.assertEqual("".join("".join(lines).split()), "".join("".join(whole).split()))
                terminal = self.begin(rows=rows, columns=columns, ready="Ctrl-D leaves")
                os.kill(terminal.pid, signal.SIGWINCH)
                terminal.send("Erzähl mir 日本 von dem Biber\r".encode())
                terminal.send(b"/timings\r")
                terminal.wait_for("are shown")
                terminal.send(b"/exit\r")
                self.assertEqual(terminal.exit_code(), 0)

    def test_no_terminal_of_a_known_kind(self):
        for env in ({"TERM": ""}, {"TERM": "dumb"}, {"TERM": "no-such"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "LANG": ""},
                    {"LC_ALL": "de_DE.ISO-8859-1"}, {"LC_ALL": "no_SUCH"}):
            with self.subTest(env=env):
                terminal = self.begin(env=env, ready="Ctrl-D leaves")
                terminal.send("Der Bär?\r".encode())
                terminal.wait_for(r"(?s)\?\s+(> )?\w.+\n> ")
                self.assertEqual(self.saved(terminal)[0]["content"], "Der Bär?")
                self.leave(terminal)
                if env.get("TERM") in ("", "dumb"):
                    self.assertNotIn("\x1b[?2004h", terminal.whole)


class Resize(Console):
    LINE = b"Tell me a story about a beaver who lived by the river and had many friends, pls"  # 79 characters

    def after(self, terminal, columns):
        """What is written where the width of the terminal changes."""
        terminal.seen = terminal.whole = ""
        termios.tcsetwinsize(terminal.fd, (24, columns))
        terminal.wait_for(r"p\s*l\s*s")  # the last word may be broken
        return terminal.whole

    def test_the_line_is_drawn_where_it_began(self):
        """The terminal has broken the line anew: the cursor goes up by the lines that are above it now."""
        terminal = self.begin(columns=60)
        terminal.send(self.LINE)
        terminal.wait_for("pls")
        for columns, above in ((40, 2), (90, 0), (20, 4), (60, 1)):
            up = f"\x1b[{above}A" if above else ""
            self.assertIn(f"\r{up}\x1b[J> Tell me", self.after(terminal, columns))
        terminal.send(b"\x01" + 4 * b"\x1b[C")  # "> Tell" is before the cursor
        terminal.seen = ""
        self.assertIn("\r\x1b[J> Tell me", self.after(terminal, 30))
        # At 30 columns the second line ends with a blank, which is not drawn: the terminal keeps it as a line.
        terminal.send(b"\x05")
        time.sleep(0.3)
        terminal.read()
        self.assertIn("\r\x1b[1A\x1b[J> Tell me", self.after(terminal, 82))
        terminal.send(b"\x15")
        self.leave(terminal)

    def test_notes_break_between_words(self):
        terminal = self.begin(columns=40, ready=r"leaves\s+> ")
        terminal.send(b"/help\r")
        seen = terminal.wait_for(r"(?s)write //.+> ")
        self.assertIn("greta-cli: /help lists the commands,\r\n", terminal.whole)
        self.assertLessEqual(max(map(len, seen.replace("\r\n", "\n").split("\n"))), 40, seen)
        self.assertRegex(seen, r"\n  /regen                  answer the\s+\n {26}last question\s+\n {26}once more")
        self.leave(terminal)


class Banner(Console):
    def test_two_lines(self):
        terminal = self.terminal("chat", "-c", "512", "--device", "cpu", state=self.folder)
        seen = terminal.wait_for(READY)
        banner = re.findall(r"greta-cli: [^\r\n]*", seen)
        self.assertEqual(len(banner), 2, seen)
        self.assertRegex(banner[0], r"tales-llama-7m-q4_k_m\.gguf \(bundled\) on cpu \(.+\), context 512 of 1024 tokens$")
        self.assertIn("/help", banner[1])
        self.leave(terminal)

    def test_quiet(self):
        terminal = self.terminal(*SHORT, "-q", state=self.folder)
        self.assertNotIn("greta-cli:", terminal.wait_for("> "))
        self.leave(terminal)


class Keys(Console):
    def test_keys_during_an_answer(self):
        """They are not shown within it, and wait for the prompt."""
        terminal = self.begin(*ENDLESS)
        terminal.send(b"Tell me a story about a beaver.\r")
        terminal.wait_for(r"beaver\.\s+\w+ \w+")
        terminal.send(b"XYZZY")
        time.sleep(0.5)
        terminal.send(b"\x03")
        answer = terminal.wait_for(r"\n> ")
        self.assertNotIn("XYZZY", answer)
        terminal.send(b"\x15")
        self.leave(terminal)

    def test_a_line_that_is_typed_ahead(self):
        terminal = self.begin("chat", "-c", "512", "--temp", "0", "-n", "60", "--ignore-eos")
        terminal.send(b"Tell me a story about a beaver.\r")
        terminal.wait_for(r"beaver\.\s+\w+")
        terminal.send(b"And a fox?\r")
        terminal.wait_for(r"(?s)\n> And a fox\?\s+\w.+\n> ")
        self.assertEqual([m["content"] for m in self.saved(terminal) if m["role"] == "user"],
                         ["Tell me a story about a beaver.", "And a fox?"])
        self.leave(terminal)

    def test_the_terminal_is_as_before(self):
        for end in (signal.SIGTERM, signal.SIGHUP):
            terminal = self.begin(*ENDLESS)
            terminal.send(b"Tell me a story about a beaver.\r")
            terminal.wait_for(r"beaver\.\s+\w+")
            self.assertFalse(termios.tcgetattr(terminal.fd)[3] & termios.ECHO)
            os.kill(terminal.pid, end)
            while terminal.read():
                pass
            self.assertEqual(termios.tcgetattr(terminal.fd), terminal.settings)

    def test_a_large_paste(self):
        terminal = self.begin()
        text = b"word and word\r" * 75_000  # 1.05 MB
        terminal.send_all(b"\x1b[200~" + text + b"end\x1b[201~\r")
        terminal.wait_for("the first 1048576 characters are taken")
        terminal.wait_for(r"(?s)room\s+for\s+512.+\n> ")
        terminal.send(b"Hi\r")
        terminal.wait_for(r"(?s)Hi\s+\w.+\n> ")
        self.assertEqual([m["content"] for m in self.saved(terminal)][0], "Hi")
        self.leave(terminal)


class Files(Console):
    def test_read_and_glob(self):
        self.file("one.txt", "first text\n")
        self.file("two.txt", "second text")
        terminal = self.begin()
        terminal.send(f"/read {self.folder}/one.txt\r".encode())
        terminal.wait_for(r"11 bytes of [^>]+one\.txt go before\s+your\s+next\s+message\s+> ")
        terminal.send(b"What is it?\r")
        terminal.wait_for(r"(?s)it\?\s+\w.+\n> ")
        terminal.send(f"/glob {self.folder}/*.txt\r".encode())
        terminal.wait_for(r"(?s)two\.txt go before.+> ")
        terminal.send(b"And these?\r")
        terminal.wait_for(r"(?s)these\?\s+\w.+\n> ")
        asked = [m["content"] for m in self.saved(terminal) if m["role"] == "user"]
        one = f"--- {self.folder}/one.txt ---\nfirst text\n"
        self.assertEqual(asked, [one + "What is it?", one + f"--- {self.folder}/two.txt ---\nsecond text\nAnd these?"])
        self.leave(terminal)

    def test_what_is_no_text(self):
        self.file("binary", b"\x00\x01\x02")
        self.file("latin1", b"B\xe4r")
        self.file("escape", b"\x1b[2J")
        os.mkfifo(self.folder / "pipe")
        with open(self.folder / "large", "wb") as file:
            file.truncate(2**30)
        for number in range(101):
            self.file(f"many{number}", "x")
        terminal = self.begin(columns=200)
        for command, said in (("/read {}", "is a folder"), ("/read /dev/zero", "is no file"), ("/read {}/pipe", "is no file"),
                              ("/read {}/binary", "no text"), ("/read {}/latin1", "no text"), ("/read {}/escape", "no text"),
                              ("/read {}/large", "has 1.00 GiB, and at most 4.00 MiB"), ("/read {}/none", "No such file"),
                              ("/glob {}/none*", "no file fits"), ("/glob {}/many*", "101 files fit"), ("/glob {}", "no file fits"),
                              ("/read", "write /read FILE"), ("/load /dev/zero", "is no file"), ("/load {}", "is a folder")):
            terminal.send(command.format(self.folder).encode() + b"\r")
            terminal.wait_for(re.escape(said) + r"[^\n]*\s+> ")
        terminal.send(b"Hi\r")
        terminal.wait_for(r"(?s)Hi\s+\w.+\n> ")
        self.assertEqual(self.saved(terminal)[0]["content"], "Hi")
        self.leave(terminal)

    def test_completion(self):
        for name in ("alpha.txt", "alpine.txt", "beta.txt"):
            self.file(name, "text of " + name)
        (self.folder / "inner").mkdir()
        terminal = self.begin(columns=200)
        terminal.send(b"/tim\t")
        terminal.wait_for(r"ings")
        terminal.send(b"\r")
        terminal.wait_for(r"are shown[^\n]*\s+> ")
        terminal.send(b"/s\t")
        terminal.wait_for(r"(?s)/system +/save +/set +/stats.+> ")
        terminal.send(b"\x15")
        terminal.send(f"/read {self.folder}/be\t\r".encode())
        terminal.wait_for(r"16 bytes of [^\n]*beta\.txt")
        terminal.wait_for("> ")
        terminal.send(f"/read {self.folder}/al\t".encode())
        terminal.wait_for(r"/al.*p")
        terminal.send(b"\t")
        terminal.wait_for(r"(?s)alpha\.txt +\S+alpine\.txt")
        terminal.send(b"h\t\r")
        terminal.wait_for(r"bytes of [^\n]*alpha\.txt[^\n]*\s+> ")
        terminal.send(f"/read {self.folder}/in\t".encode())
        terminal.wait_for(r"ner/")
        terminal.send(b"\x15a\tb\r")  # a message has nothing to complete
        terminal.wait_for(r"(?s)a\x07?b\s+\w.+\n> ")
        self.leave(terminal)


class Retry(Console):
    def test_the_last_question_is_edited(self):
        terminal = self.begin()
        terminal.send(b"/retry\r")
        terminal.wait_for(r"no question yet[^\n]*\s+> ")
        for text in ("Tell me a story.", "And the Bär?"):
            terminal.send(text.encode() + b"\r")
            terminal.wait_for(r"(?s)[.?]\s+\w.+\n> ")
        terminal.send(b"/retry\r")
        terminal.wait_for(r"> And the Bär\?")
        terminal.send(b"\x7f or the fox?\r")
        terminal.wait_for(r"(?s)fox\?\s+\w.+\n> ")
        users = [m["content"] for m in self.saved(terminal) if m["role"] == "user"]
        self.assertEqual(users, ["Tell me a story.", "And the Bär or the fox?"])
        before = self.saved(terminal)
        terminal.send(b"/retry\r")
        terminal.wait_for(r"or the fox\?")
        terminal.send(b"\x03")
        terminal.wait_for(r"\n> ")
        self.assertEqual(self.saved(terminal), before)  # Ctrl-C changes nothing
        terminal.send(b"/retry What now?\r")
        terminal.wait_for(r"(?s)now\?\s+\w.+\n> ")
        self.assertEqual([m["content"] for m in self.saved(terminal) if m["role"] == "user"], ["Tell me a story.", "What now?"])
        self.leave(terminal)

    def test_without_editing(self):
        terminal = self.begin(*SHORT, "--simple-io")
        terminal.send(b"Tell me a story.\r")
        terminal.wait_for(r"(?s)story\.\s+\w.+\n> ")
        terminal.send(b"/retry\r")
        terminal.wait_for(r"write /retry TEXT[^\n]*\s+> ")
        terminal.send(b"/retry Again.\r")
        terminal.wait_for(r"(?s)Again\.\s+\w.+\n> ")
        self.assertEqual([m["content"] for m in self.saved(terminal) if m["role"] == "user"], ["Again."])
        self.leave(terminal)

    def test_timings(self):
        terminal = self.begin(columns=200)
        terminal.send(b"/timings\r")
        terminal.wait_for(r"are shown[^\n]*\s+> ")
        terminal.send(b"Hi\r")
        terminal.wait_for(r"generated \d+ tokens, [\d.]+ t/s[^\n]*\s+> ")
        terminal.send(b"/timings\r")
        terminal.wait_for(r"are not shown[^\n]*\s+> ")
        terminal.send(b"Hello\r")
        self.assertNotIn("t/s", terminal.wait_for(r"(?s)Hello\s+\w.+\n> "))
        self.leave(terminal)


if __name__ == "__main__":
    main()
