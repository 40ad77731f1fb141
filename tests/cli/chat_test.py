"""Conversations on a terminal: editing, history, signals, commands, colours, and what a pipe gets."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import termios

from support import LIMIT, MODEL, PROGRAM, CliTest, main

SHORT = ["chat", "-c", "512", "--temp", "0", "-n", "8"]
# Goes on for many seconds, so that Ctrl-C finds it at work however busy the machine is.
ENDLESS = ["chat", "--temp", "0", "-c", "8192", "--exact", "-t", "1", "--ignore-eos"]
ESCAPE = "\x1b"


class Chat(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def begin(self, *args, env=None, ready=r"Ctrl-D leaves\s+> "):
        terminal = self.terminal(*(args or SHORT), state=self.folder / "state", env=env)
        terminal.wait_for(ready)
        return terminal

    def saved(self, terminal):
        """The conversation so far, by /save."""
        path = self.folder / "saved.json"
        terminal.send(f"/save {path}\r".encode())
        terminal.wait_for(r"messages in [^\n]*saved\.json\s+> ")
        messages = json.loads(path.read_text())
        path.unlink()
        return messages

    def leave(self, terminal):
        terminal.send(b"\x04")
        self.assertEqual(terminal.exit_code(), 0)


class Lines(Chat):
    def test_questions_and_answers(self):
        for simple in ([], ["--simple-io"]):
            terminal = self.begin(*SHORT, *simple)
            terminal.send(b"Tell me a story about a beaver.\r")
            first = terminal.wait_for(r"(?s)beaver\.\s+\w.+\n> ")
            terminal.send(b"And then?\r")
            terminal.wait_for(r"(?s)then\?\s+\w.+\n> ")
            messages = self.saved(terminal)
            self.assertEqual([m["role"] for m in messages], ["user", "assistant"] * 2)
            self.assertIn(" ".join(messages[1]["content"].split()), " ".join(first.split()))
            alone = self.out("chat", *SHORT[1:], "-p", "Tell me a story about a beaver.")
            self.assertEqual(messages[1]["content"] + "\n", alone)
            self.leave(terminal)

    def test_editing(self):
        terminal = self.begin()
        terminal.send("Wer ist der Bär ü日本x\x7f\x01".encode() + b"Sag: \x05?\r")
        terminal.wait_for(r"(?s)\?\s+\w.+\n> ")
        self.assertEqual(self.saved(terminal)[0]["content"], "Sag: Wer ist der Bär ü日本?")
        self.leave(terminal)

    def test_several_lines_in_one_message(self):
        for simple in ([], ["--simple-io"]):
            terminal = self.begin(*SHORT, *simple)
            terminal.send(b"one\\\r")
            terminal.wait_for(r"\.\.\. ")
            terminal.send(b"two\r")
            terminal.wait_for(r"(?s)two\s+\S.+\n> ")
            terminal.send(b'"""three\r')
            terminal.wait_for(r"\.\.\. ")
            terminal.send(b"\r")
            terminal.wait_for(r"\.\.\. ")
            terminal.send(b'four\\\r')
            terminal.wait_for(r"\.\.\. ")
            terminal.send(b'"""\r')
            terminal.wait_for(r'(?s)"""\s+\S.+\n> ')
            users = [m["content"] for m in self.saved(terminal) if m["role"] == "user"]
            self.assertEqual(users, ["one\ntwo", "three\n\nfour\\"])
            self.leave(terminal)

    def test_a_paste_is_one_message(self):
        terminal = self.begin()
        self.assertIn(ESCAPE + "[?2004h", terminal.whole)
        terminal.send(b"\x1b[200~first\rsecond\rthird\x1b[201~")
        terminal.wait_for("third")
        terminal.send(b"!\r")
        terminal.wait_for(r"(?s)!\s+\S.+\n> ")
        self.assertEqual(self.saved(terminal)[0]["content"], "first\nsecond\nthird!")
        self.leave(terminal)
        self.assertGreaterEqual(terminal.whole.count(ESCAPE + "[?2004l"), 2)

    def test_history(self):
        terminal = self.begin()
        for text in ("the first one", "line\\\rand\\\\line"):
            terminal.send(text.encode() + b"\r")
            terminal.wait_for(r"(?s)(one|line)\s+\S.+\n> ")
        self.leave(terminal)
        path = self.folder / "state/greta/history"
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(path.read_text(), "the first one\nline\\nand\\\\\\\\line\n")
        again = self.begin()
        again.send(b"\x1b[A\x1b[A\r")
        again.wait_for(r"(?s)first one\s+\S.+\n> ")
        self.assertEqual(self.saved(again)[0]["content"], "the first one")
        self.leave(again)

    def test_a_history_of_any_kind(self):
        path = self.folder / "state/greta/history"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * 300_000 + b"\n" + b"\xff\xfe\x00bad\n" + b"line\n" * 3000)
        terminal = self.begin()
        terminal.send(b"\x1b[A\x1b[A\x1b[B\r")
        terminal.wait_for(r"(?s)line\s+\S.+\n> ")
        self.leave(terminal)
        self.assertLessEqual(path.read_bytes().count(b"\n"), 1001)
        path.unlink()
        path.parent.rmdir()
        path.parent.write_text("a file where the folder should be")
        terminal = self.begin()
        terminal.send(b"Hi\r")
        terminal.wait_for(r"(?s)Hi\s+\S.+\n> ")
        self.leave(terminal)

    def test_a_full_disk_keeps_the_history(self):
        """A limit on the size of files stands for it. A long history is shortened at the start."""
        path = self.folder / "state/greta/history"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"line {i}\n" for i in range(1500)))
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            terminal = self.begin()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self.leave(terminal)
        self.assertEqual(path.read_text().count("\n"), 1500)
        self.assertEqual([p.name for p in path.parent.iterdir()], ["history"])
        self.leave(self.begin())
        self.assertEqual(path.read_text().count("\n"), 1000)

    def test_a_narrow_terminal_that_is_resized(self):
        terminal = self.begin()
        termios.tcsetwinsize(terminal.fd, (10, 20))
        os.kill(terminal.pid, signal.SIGWINCH)
        terminal.send("Erzähl mir 日本 von dem Biber, der am großen Fluss wohnt".encode())
        terminal.wait_for("wohnt")
        termios.tcsetwinsize(terminal.fd, (24, 80))
        os.kill(terminal.pid, signal.SIGWINCH)
        terminal.send(b"!\r")
        terminal.wait_for(r"(?s)!\s+\S.+\n> ")
        self.assertEqual(self.saved(terminal)[0]["content"],
                         "Erzähl mir 日本 von dem Biber, der am großen Fluss wohnt!")
        self.leave(terminal)


class Signals(Chat):
    def test_ctrl_c_stops_the_answer_and_keeps_it(self):
        for simple in ([], ["--simple-io"]):
            terminal = self.begin(*ENDLESS, *simple)
            for animal in ("beaver", "fox"):
                terminal.send(f"Tell me a story about a {animal}.\r".encode())
                terminal.wait_for(animal + r"\.\s+\w+ \w+")
                terminal.send(b"\x03")
                terminal.wait_for(r"\n> ")
            messages = self.saved(terminal)
            self.assertEqual([m["role"] for m in messages], ["user", "assistant"] * 2)
            self.assertTrue(all(m["content"] for m in messages))
            self.leave(terminal)

    def test_ctrl_c_at_the_prompt_clears_the_line(self):
        terminal = self.begin()
        terminal.send(b"not this")
        terminal.wait_for("not this")
        terminal.send(b"\x03")
        terminal.wait_for(r"\n> ")
        terminal.send(b"\x03")
        terminal.wait_for(r"Ctrl-D or /exit leaves\s+> ")
        terminal.send(b"but this\r")
        terminal.wait_for(r"(?s)but this\s+\S.+\n> ")
        self.assertEqual(self.saved(terminal)[0]["content"], "but this")
        self.leave(terminal)

    def test_the_terminal_is_as_before(self):
        for end in (b"\x04", b"/exit\r", signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(end=end):
                terminal = self.begin()
                terminal.send(b"abc")
                terminal.wait_for("abc")
                self.assertNotEqual(termios.tcgetattr(terminal.fd), terminal.settings)
                if end == signal.SIGINT:
                    terminal.send(b"\x03")
                    terminal.wait_for(r"\n> ")
                    terminal.send(b"\x04")
                elif isinstance(end, bytes):
                    terminal.send(b"\x15" + end)
                else:
                    os.kill(terminal.pid, end)
                while terminal.read():
                    pass
                self.assertEqual(termios.tcgetattr(terminal.fd), terminal.settings)
                self.assertEqual(terminal.whole.count(ESCAPE + "[?2004h"), terminal.whole.count(ESCAPE + "[?2004l"))


class Commands(Chat):
    def test_the_table(self):
        terminal = self.begin()
        terminal.send(b"/help\r")
        text = terminal.wait_for(r"(?s)/quit.+\n> ")
        for word in ("clear", "regen", "system", "save", "load", "set", "stats", "undo", "exit", "tools"):
            self.assertIn("/" + word, text)
        terminal.send(b"/sett\r")
        terminal.wait_for(r"did you mean /set\?[^\n]*\s+> ")
        terminal.send(b"/save\r")
        terminal.wait_for(r"/save FILE[^\n]*\s+> ")
        terminal.send(b"/undo\r")
        terminal.wait_for(r"no question[^\n]*\s+> ")
        terminal.send(b"/stats\r")
        terminal.wait_for(r"nothing was answered[^\n]*\s+> ")
        terminal.send(b"//help\r")
        terminal.wait_for(r"(?s)help\s+\S.+\n> ")
        self.assertEqual(self.saved(terminal)[0]["content"], "/help")
        terminal.send(b"/stats\r")
        terminal.wait_for(r"prompt \d+ tokens, 0 of them reused, .+ context \d+ of 512[^\n]*\s+> ")
        terminal.send(b"/exit\r")
        self.assertEqual(terminal.exit_code(), 0)

    def test_undo_regen_clear_and_system(self):
        terminal = self.begin(*SHORT, "-sys", "Be brief.", "--exact")
        terminal.send(b"Tell me a story.\r")
        terminal.wait_for(r"(?s)story\.\s+\S.+\n> ")
        first = self.saved(terminal)
        self.assertEqual(first[0], {"role": "system", "content": "Be brief."})
        terminal.send(b"/regen\r")
        terminal.wait_for(r"(?s)regen\s+\S.+\n> ")
        self.assertEqual(self.saved(terminal), first)  # greedy and exact: the same
        terminal.send(b"/set temp 2\r/regen\r")
        terminal.wait_for(r"(?s)regen\s+\S.+\n> ")
        other = self.saved(terminal)
        self.assertEqual(other[:2], first[:2])
        self.assertEqual(len(other), 3)
        terminal.send(b"/undo\r")
        terminal.wait_for(r"is gone[^\n]*\s+> ")
        terminal.send(b"/system Be long.\r")
        self.assertEqual(self.saved(terminal), [{"role": "system", "content": "Be long."}])
        terminal.send(b"One more.\r")
        terminal.wait_for(r"(?s)more\.\s+\S.+\n> ")
        terminal.send(b"/clear\r")
        self.assertEqual(self.saved(terminal), [{"role": "system", "content": "Be long."}])
        self.leave(terminal)

    def test_save_and_load(self):
        terminal = self.begin()
        terminal.send(b"Tell me a story.\r")
        terminal.wait_for(r"(?s)story\.\s+\S.+\n> ")
        before = self.saved(terminal)
        for name, text in (("no.json", None), ("cut.json", "[{"), ("number.json", "7"), ("role.json", '[{"content": "x"}]'),
                           ("bad.json", '[{"role": "user", "content": "ok"}, {"role": "user"}]')):
            path = self.folder / name
            if text is not None:
                path.write_text(text)
            terminal.send(f"/load {path}\r".encode())
            terminal.wait_for(r"greta-cli: \S[^\n]*\s+> ")
            self.assertEqual(self.saved(terminal), before)
        good = [{"role": "system", "content": "x"}, {"role": "user", "content": "y"}, {"role": "assistant", "content": "z"}]
        (self.folder / "good.json").write_text(json.dumps({"messages": good}))
        terminal.send(f"/load {self.folder / 'good.json'}\r".encode())
        terminal.wait_for(r"3 messages from[^\n]*\s+> ")
        self.assertEqual(self.saved(terminal), good)
        terminal.send(b"/save /nowhere/at/all\r")
        terminal.wait_for(r"nowhere.+No such file[^\n]*\s+> ")
        self.leave(terminal)

    def test_set(self):
        terminal = self.begin()
        terminal.send(b"/set\r")
        text = terminal.wait_for(r"(?s)predict +8\s+> ")
        self.assertRegex(text, r"temp +0\b")
        terminal.send(b"/set top_k x\r")
        terminal.wait_for(r"greta-cli: .*top-k[^\n]*\s+> ")
        terminal.send(b"/set flavour 1\r")
        terminal.wait_for(r"no setting flavour[^\n]*\s+> ")
        terminal.send(b"/set top_k 7\r/set temperature 0.5\r/set n 3\r/set\r")
        text = terminal.wait_for(r"(?s)predict +3\s+> ")
        self.assertRegex(text, r"top-k +7\b")
        self.assertRegex(text, r"temp +0\.5\b")
        self.leave(terminal)

    def test_more_than_the_context_holds(self):
        terminal = self.begin("chat", "-c", 256, "--temp", 0, "-n", 8)
        terminal.send(b"Tell me a story.\r")
        terminal.wait_for(r"(?s)story\.\s+\S.+\n> ")
        before = self.saved(terminal)
        terminal.send(b"word " * 300 + b"\r")
        terminal.wait_for(r"/clear starts anew[^\n]*\s+> ")
        self.assertEqual(self.saved(terminal), before)
        self.leave(terminal)


class Streams(Chat):
    def test_colours(self):
        dim = ESCAPE + r"\[[0-9;]*m"
        for env, args, coloured in (({"NO_COLOR": "1"}, [], False), ({"NO_COLOR": ""}, [], True),
                                    ({"NO_COLOR": "1"}, ["--color", "on"], True), ({"NO_COLOR": ""}, ["--color", "off"], False),
                                    ({"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, [], True)):
            with self.subTest(env=env, args=args):
                terminal = self.begin(*SHORT, *args, env=env)
                self.assertEqual(bool(re.search(dim, terminal.whole)), coloured)
                self.leave(terminal)

    def test_nothing_but_the_answer_in_a_pipe(self):
        done = subprocess.run([PROGRAM, *SHORT, "-m", MODEL], input=b"Tell me a story.\nAnd end it.\n", capture_output=True,
                              timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(ESCAPE.encode(), done.stdout + done.stderr)
        self.assertEqual(done.stdout.count(b"\n"), done.stdout.strip().count(b"\n") + 1)

    def thinking(self):
        form = ("{% for m in messages %}{{ '<|' ~ m.role ~ '|>\\n' ~ m.content ~ '<|end|>\\n' }}{% endfor %}"
                "{{ '<|assistant|>\\n<think>\\n' }}{# </think> #}")
        return ["--chat-template", form, "-p", "Tell me a story about a beaver.", "--reasoning-budget", "4", "-n", "12",
                "--ignore-eos"]

    def test_reasoning(self):
        base = [*SHORT, *self.thinking()]
        hidden, err = self.run_cli(*base)
        self.assertGreater(len(hidden), 4)
        shown, thoughts = self.run_cli(*base, "--reasoning", "show")
        self.assertEqual(shown, hidden)
        self.assertGreater(len(thoughts), len(err))
        raw, _ = self.run_cli(*base, "--reasoning", "raw", "--reasoning-budget", "-1")
        self.assertNotEqual(raw, hidden)
        terminal = self.terminal(*base, "-i", "--color", "on", state=self.folder)
        terminal.wait_for(r"(?s)\w.+\n> ")
        self.assertIn(ESCAPE + "[2m", terminal.whole)
        self.leave(terminal)

    def test_template_arguments_and_files(self):
        form = self.folder / "form.jinja"
        form.write_text("{{ mood }} {{ enable_thinking }} {{ messages[0].content }}{{ tools | length }}")
        tools = self.folder / "tools.json"
        tools.write_text('[{"name": "f"}]')
        system = self.folder / "system.txt"
        system.write_text("A system message.\n")
        _, err = self.run_cli("chat", "-c", "512", "-n", "1", "-p", "x", "--chat-template-file", str(form), "--jinja",
                              "--chat-template-kwargs", '{"mood": "good"}', "-rea", "off", "--tools", str(tools),
                              "-sysf", str(system), "--verbose-prompt")
        self.assertIn("good False A system message.1", err)
        for args in (["--chat-template-kwargs", "{"], ["--chat-template-kwargs", "[1]"]):
            self.error(2, "chat", "-p", "x", *args)
        self.error(1, "chat", "-q", "-p", "x", "--chat-template", "{% if %}")
        self.error(1, "chat", "-q", "-p", "x", "--chat-template", "noform")
        self.error(1, "chat", "-q", "-p", "x", "--tools", str(form))
        self.assertIn("no thanks", self.error(1, "chat", "-q", "-p", "x", "--chat-template", "{{ raise_exception('no thanks') }}"))

    def test_single_turn(self):
        terminal = self.begin(*SHORT, "-st")
        terminal.send(b"Tell me a story.\r")
        self.assertEqual(terminal.exit_code(), 0)
        self.assertIn("story", terminal.whole)

    def test_stop_strings(self):
        whole = self.out("chat", "-p", "Tell me a story.", *SHORT[1:])
        stop = whole.split()[3]
        cut = self.out("chat", "-p", "Tell me a story.", *SHORT[1:], "-r", stop)
        self.assertEqual(cut.strip(), whole[: whole.index(stop)].strip())

    def test_timings(self):
        _, err = self.run_cli(*SHORT, "-p", "Hi", "--show-timings")
        self.assertRegex(err, r"prompt \d+ tokens, 0 of them reused, [\d.]+ t/s; generated \d+ tokens, [\d.]+ t/s")


class LlamaFlags(CliTest):
    def test_taken(self):
        args = ["-fa", "on", "-ngl", "99", "-tb", "2", "--no-mmap", "--no-warmup", "-b", "2048", "--keep", "4", "--offline",
                "-sm", "none", "--color", "off", "-fit", "off", "--jinja", "--log-colors", "off", "-lv", "4"]
        out, err = self.run_cli("chat", *args, "-p", "Hi", "-n", "2", "--temp", "0", "-c", "128")
        self.assertEqual(out, self.out("chat", "-p", "Hi", "-n", "2", "--temp", "0", "-c", "128"))
        self.assertRegex(err, r"prompt \d+ tokens")  # -lv 4 is -v
        self.assertEqual(self.run_cli("chat", *args[:-2], "-q", "-p", "Hi", "-n", "1")[1], "")

    def test_mapping(self):
        def plan(*args):
            return json.loads(self.out("info", "--json", "--device", "cpu", *args))["memory_plan"]

        mapped, copied = plan(), plan("--no-mmap")
        self.assertGreater(mapped["mapped_bytes"], 0)
        self.assertEqual(copied["mapped_bytes"], 0)
        self.assertGreaterEqual(copied["weights_bytes"], mapped["weights_bytes"] + mapped["mapped_bytes"])
        told = ["run", "--device", "cpu", "-p", "Once", "-n", "8", "--temp", "0", "-c", "128"]
        for args in (["--no-mmap"], ["-lm", "none"], ["--load-mode", "mmap"], ["--load-mode", "auto"]):
            self.assertEqual(self.out(*told, *args), self.out(*told))
        self.assertIn("--load-mode", self.run_cli(*told, "-lm", "mlock")[1])

    def test_refused(self):
        for args, word in ((["-hf", "some/model"], "-m FILE"), (["--mlock"], "vmtouch"), (["-sm", "row"], "layer or none"),
                           (["-no-cnv"], "run"),
                           (["--rope-scale", "2"], "file"), (["--in-prefix", "x"], "template")):
            self.assertIn(word, self.error(2, "chat", "-p", "x", *args))

    def test_devices_and_log_file(self):
        self.assertIn("cpu", [line.split()[0] for line in self.out("--list-devices").splitlines()])
        self.assertEqual(len(self.out("run", "--list-devices").splitlines()), len(self.out("devices").splitlines()))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "log")
            _, err = self.run_cli("run", "-p", "Once", "-n", "1", "--log-file", str(path))
            self.assertEqual(path.read_text(), err)
            self.assertIn("bundled model", err)
        self.assertIn("nowhere", self.error(1, "run", "-p", "x", "--log-file", "/nowhere/log"))

    def test_completion(self):
        script = self.out("--completion-bash")
        check = script + '\nCOMP_WORDS=(greta-cli chat --single-t); COMP_CWORD=2; _greta_cli; echo "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", check], capture_output=True, timeout=LIMIT, text=True)
        self.assertEqual((done.stdout, done.stderr), ("--single-turn\n", ""))

    def test_completions_of_other_shells(self):
        """All options of the help are there. A shell that is installed reads its script."""
        options = set(re.findall(r"--[a-z][a-z-]+", self.out("chat", "-h"))) - {"--show"}
        for shell, form in (("zsh", "{}["), ("fish", "-l {} ")):
            script = self.out(f"--completion-{shell}")
            for option in ("--single-turn", "--top-k", "--device", "--context-shift", "--tools"):
                self.assertIn(option, options)
                self.assertIn(form.format(option if shell == "zsh" else option[2:]), script)
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", "/dev/stdin"], input=script, capture_output=True, timeout=LIMIT, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_manual(self):
        page = self.out("--manual")
        for word in ("run", "chat", "bench", "\\-\\-single\\-turn", "\\-\\-top\\-k"):
            self.assertIn("\\fB" + word.split(" ")[0], page.replace("\\fB\\-c, ", "\\fB"))
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True, timeout=LIMIT, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    main()
