"""Forms of the command line, exit codes, what goes to which stream, bad input, signals and pipes."""
import fcntl
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import tempfile
import termios
import time

from support import LIMIT, MODEL, PROGRAM, CliTest, main, start

COMMANDS = ["run", "chat", "info", "devices", "bench", "tokenize", "logits", "ppl", "template",
            "selftest", "kernel", "tune", "verify", "embed", "profile", "report"]
GREEDY = ["--temp", "0", "-c", "256"]
# Goes on for many seconds, so that a signal finds it at work however busy the machine is.
ENDLESS = ["--temp", "0", "-c", "8192", "--exact", "-t", "1", "--ignore-eos"]


class Forms(CliTest):
    def test_alone_it_introduces_itself(self):
        out, err = self.run_cli()
        self.assertEqual(len(out.splitlines()), 3)
        self.assertIn("greta-cli chat -p", out)
        self.assertEqual(err, "")

    def test_version(self):
        self.assertRegex(self.out("--version"), r"^greta-cli \d+\.\d+\.\d+, backends: .*cpu")

    def test_help(self):
        out, err = self.run_cli("-h")
        self.assertEqual(err, "")
        for command in COMMANDS:
            self.assertIn(command, out)
            for form in ([command, "-h"], ["-h", command], [command, "--help"]):
                help_text, err = self.run_cli(*form)
                self.assertEqual(err, "")
                self.assertIn("Usage: greta-cli " + command, help_text)

    def test_every_option_in_help_is_taken(self):
        for command in COMMANDS:
            options = []
            for line in self.out(command, "-h").splitlines():
                found = re.match(r"  (-\S+)( \S+)?  ", line)
                for word in found[1].split(",") if found else []:
                    if word not in ("-h", "--help"):
                        options.append([word, "1"] if found[2] else [word])
            self.taken(command, options)

    def taken(self, command, options):
        """All at once where that is refused for nothing but --fly, else in halves down to one."""
        error = self.error(2, command, *sum(options, []), "--fly")
        if len(options) == 1:
            self.assertNotRegex(error, f"not expected:.* {options[0][0]}( |$)")
        elif "not expected: --fly (" not in error:
            self.taken(command, options[:len(options) // 2])
            self.taken(command, options[len(options) // 2:])

    def test_without_a_gpu_it_says_why(self):
        env = {**os.environ, "VK_DRIVER_FILES": "/nonexistent"}
        command = ["run", "-m", MODEL, "-p", "a", "-n", "1", *GREEDY]
        looked = "vulkan" in self.out("--version")
        for more, lines in ([], int(looked)), (["-q"], 0), (["--device", "cpu"], 0):
            _, err = self.run_cli(*command, *more, env=env)
            self.assertEqual(err.count("no GPU to use, running on the CPU"), lines, err)
            self.assertLessEqual(max(map(len, err.splitlines()), default=0), 100)
        self.assertEqual(self.run_cli(*command, "-v", env=env)[1].count("no GPU to use"), int(looked))
        for device in ("vulkan", "vulkan0") if looked else ():
            error = self.error(1, *command, "--device", device, env=env)
            self.assertRegex(error, f"device {device}: no Vulkan .*install")
        out, err = self.run_cli("run", "-m", "no/such.gguf", "-p", "a", code=1, env=env)
        self.assertRegex(err, r"^greta-cli: cannot open 'no/such.gguf'.*\n" + r"greta-cli: no GPU.*\n" * int(looked) + "$")
        bench = self.run_cli("bench", "-p", "1", "-n", "0", "-r", "1", "-t", "1,2", env=env)[1]
        self.assertEqual(bench.count("no GPU to use"), int(looked), bench)

    def test_options_before_and_after_the_command(self):
        for args in (["-m", MODEL, *GREEDY, "run", "-p", "Once", "-n", 4],
                     ["run", "-m", MODEL, *GREEDY, "-p", "Once", "-n", 4],
                     ["-p", "Once", "--temp", 0, "run", "-n", 4, "-c", 256, "--model", MODEL],
                     ["run", "-p", "Once", "--predict=4", "-c256", "-ctk", "f16", "-ctv", "f16",
                      "--temp", 0]):
            self.assertEqual(self.out(*args), self.out("run", "-p", "Once", "-n", 4, *GREEDY))

    def test_values_that_look_like_commands_and_options(self):
        for text in ("run", "chat", "-h", "-ctk", "--version"):
            out = self.out("-p", text, "-n", 0, "run", "-c", 64)
            self.assertEqual(out, text + "\n")

    def test_wrong_usage(self):
        run = ["run", "-p", "x"]
        for args in (["fly"], ["run", "--fly"], ["run", "-p"], [*run, "extra"], ["ppl"],
                     [*run, "-n", "many"], [*run, "-t", "-2"], [*run, "-f", "y"], [*run, "-ctk", "q9"],
                     [*run, "--top-p", "2"], ["logits", "--ids", "1"], ["logits", "--ids", "one", "-o", "x"],
                     ["logits", "--ids", "", "-o", "x"], ["bench", "-p", "0", "-n", "0"],
                     ["bench", "-p", "5,"], ["bench", "-o", "xml"], ["embed", "-p", "x", "--pooling", "all"],
                     ["embed", "-p", "x", "--embd-normalize", "3"], ["ppl", "-f", "x", "--chunks", "0"],
                     ["chat", "-p", ""]):
            with self.subTest(args=args):
                self.error(2, *args)

    def test_run_on_a_terminal_wants_a_prompt(self):
        terminal = self.terminal("run")
        terminal.wait_for("give -p TEXT")
        self.assertEqual(terminal.exit_code(), 2)


class BadInput(CliTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, data, name="file.gguf"):
        path = pathlib.Path(self.folder.name, name)
        path.write_bytes(data)
        return path

    def test_files_that_are_no_models(self):
        whole = MODEL.read_bytes()
        files = {"missing": pathlib.Path(self.folder.name, "missing.gguf"), "folder": self.folder.name,
                 "empty": self.file(b"", "empty.gguf"),
                 "text": self.file(b"Once upon a time\n" * 99, "text.gguf")}
        for size in (3, 10, 23, 24, 100, 5000, 100_000, 1_000_000, len(whole) - 1):
            files[size] = self.file(whole[:size], f"cut{size}.gguf")
        for what, path in files.items():
            for args in (["run", "-p", "x"], ["info"], ["tokenize", "-p", "x"], ["bench"]):
                with self.subTest(what=what, args=args):
                    self.assertEqual(self.error(1, "-m", path, *args).count(pathlib.Path(path).name), 1)

    def test_a_wrong_number_is_said_once(self):
        whole = MODEL.read_bytes()
        key = b"llama.attention.head_count" + struct.pack("<II", 4, 4)
        self.assertEqual(whole.count(key), 1)
        path = self.file(whole.replace(key, key[:-4] + bytes(4)))
        self.assertRegex(self.error(1, "-m", path, "-p", "x"), r"head_count is 0 in layer 0, expected 1 to \d+$")

    def test_notes_come_behind_an_error(self):
        err = self.run_cli("run", "-p", "x", "--device", "nowhere7", code=1)[1].splitlines()
        self.assertRegex(err[0], "^greta-cli: no device 'nowhere7'")
        self.assertRegex(err[1], "bundled model runs")

    def test_what_is_not_there(self):
        self.assertIn("no/such", self.error(1, "run", "-f", "no/such"))
        self.assertIn("no/such", self.error(1, "ppl", "-f", "no/such"))
        self.assertIn("no/such", self.error(1, "logits", "--ids", "1", "-o", "no/such/file.npy"))
        for command in (["run", "-p", "x"], ["info"], ["bench", "-p", "1", "-n", "1"]):
            self.error(1, *command, "--device", "nowhere7")

    def test_more_than_the_context_holds(self):
        for args in (["run", "-p"], ["chat", "-p"]):
            self.run_cli(*args, "word " * 200, "-c", "64", "-q", code=1)
        self.error(1, "logits", "--ids", "5 6 7", "-o", self.file(b"", "x.npy"), "-c", 2)
        self.error(1, "run", "-p", "x", "-q", "-c", 2_000_000_000)

    def test_ids_that_are_no_tokens(self):
        path = pathlib.Path(self.folder.name, "x.npy")
        for ids in ("4096", "-1", "99999999"):
            self.assertIn(ids, self.error(1, "logits", "--ids", ids, "-o", path))
        self.assertFalse(path.exists())

    def test_text_that_is_not_utf8(self):
        path = self.file(b"\xff\xfe Once \xc3", "text")
        self.assertRegex(self.out("tokenize", "-f", path, "--ids"), r"^\d+( \d+)+\n$")
        self.out("run", "-f", path, "-n", 2, *GREEDY)

    def test_what_a_file_says_does_not_steer_the_terminal(self):
        whole = MODEL.read_bytes()
        for honest, hostile in ((b"Tiny model trained", b"\x1b[31m\xc2\x9b\x07 trained"),
                                (b"blk.0.attn_k", b"blk.\x1b[31mk.")):
            data = whole.replace(honest, hostile.ljust(len(honest), b"_"), 1)
            self.assertEqual(len(data), len(whole))
            path = self.file(data)
            for args in (["info"], ["info", "--json"], ["run", "-p", "x", "-n", "1"]):
                done = subprocess.run([PROGRAM, "-m", path, *args], capture_output=True, timeout=LIMIT)
                self.assertNotRegex(done.stdout + done.stderr, rb"[\x00-\x09\x0b-\x1f]")


class Streams(CliTest):
    def test_the_bundled_model_is_said(self):
        out, err = self.run_cli("run", "-p", "Once", "-n", "4", *GREEDY)
        self.assertIn("bundled model runs: " + MODEL.name, err)
        self.assertNotIn("bundled", out)
        named = self.run_cli("run", "-m", str(MODEL), "-p", "Once", "-n", "1", *GREEDY)[1]
        self.assertNotIn("bundled", named)
        self.assertEqual(self.run_cli("run", "-q", "-p", "Once", "-n", "4", *GREEDY), (out, ""))

    def test_the_chosen_context_is_said(self):
        self.assertIn("context of 1024 tokens", self.run_cli("run", "-p", "Once", "-n", "1")[1])
        self.assertNotIn("context", self.run_cli("run", "-p", "Once", "-n", "1", "-c", "0")[1])

    def test_verbose(self):
        err = self.run_cli("run", "-p", "Once", "-n", "4", "-v", "-s", "77")[1]
        self.assertIn("seed 77", err)
        self.assertRegex(err, r"prompt \d+ tokens, [\d.]+ t/s; generated 4 tokens, [\d.]+ t/s")

    def test_a_reader_that_leaves(self):
        child = start("run", "-p", "Once", *ENDLESS)
        os.read(child.stdout.fileno(), 1)
        child.stdout.close()
        self.assertEqual(child.wait(LIMIT), 0)
        self.assertNotIn(b"broken pipe", child.stderr.read().lower())
        child.stderr.close()

    def test_closed_streams(self):
        done = subprocess.run(["sh", "-c", f'exec "{PROGRAM}" run -p Once -n 2 2>&- <&-'], timeout=LIMIT)
        self.assertEqual(done.returncode, 0)
        # Where nobody can get the result, the command has failed.
        for command in ("run -p Once -n 2", "--version", "devices"):
            done = subprocess.run(["sh", "-c", f'exec "{PROGRAM}" {command} >&-'], timeout=LIMIT, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn(b"greta-cli: stdout: ", done.stderr)

    def test_what_turns_the_direction_of_writing_is_shown(self):
        err = self.error(2, "info", "/nowhere/\u202egpj.\u2066\u05d0")
        self.assertIn("/nowhere/\\u202egpj.\\u2066\u05d0", err)

    def test_a_full_disk(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "devices"], stdout=full, stderr=subprocess.PIPE, timeout=LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"greta-cli: stdout: ", done.stderr)
        self.assertIn("/dev/full", self.error(1, "logits", "--ids", "5 6 7", "-o", "/dev/full"))


class CtrlC(CliTest):
    def test_run_stops_and_ends_its_line(self):
        child = start("run", "-p", "Once", *ENDLESS)
        head = os.read(child.stdout.fileno(), 100)
        child.send_signal(signal.SIGINT)
        tail, err = child.communicate(timeout=LIMIT)
        self.assertEqual(child.returncode, 130, err)
        self.assertTrue((head + tail).endswith(b"\n"))

    def test_while_reading_standard_input(self):
        child = start("run", stdin=subprocess.PIPE)
        child.stdin.write(b"Once")
        child.stdin.flush()
        deadline = time.monotonic() + LIMIT
        while self.unread(child.stdin) and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=LIMIT)
        self.assertEqual(child.returncode, 130)

    def test_while_kernels_are_compiled(self):
        if "vulkan0" not in [d["id"] for d in json.loads(self.out("devices", "--json")) if d["usable"]]:
            self.skipTest("no Vulkan device")
        with tempfile.TemporaryDirectory() as nothing_kept:
            run = ["run", "--device", "vulkan0", "-p", "Once", "--exact"]  # kernels that are soon compiled
            terminal = self.terminal(*run, env={"XDG_CACHE_HOME": nothing_kept})
            terminal.wait_for(r"compiling kernels \d+/\d+")
            terminal.send(b"\x03")
            self.assertEqual(terminal.exit_code(), 130)
            self.assertRegex(terminal.whole, r"compiling kernels \d+/\d+[^/]*\r\x1b\[K[^/]*$")  # the line is gone

    @staticmethod
    def unread(pipe):
        return struct.unpack("i", fcntl.ioctl(pipe.fileno(), termios.FIONREAD, b"\0" * 4))[0]

    def test_ppl(self):
        with tempfile.NamedTemporaryFile() as text:
            text.write(b"Once upon a time there was a beaver. " * 2000)
            text.flush()
            child = start("ppl", "-f", text.name, "-c", "128")
            os.read(child.stdout.fileno(), 1)
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=LIMIT)
            self.assertEqual(child.returncode, 130)

    def test_bench(self):
        child = start("bench", "-p", 0, "-n", "1,1000", "-r", 50, "-t", 1, "-o", "jsonl")
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=LIMIT)
        self.assertEqual((child.returncode, out), (130, b""), err)


class Chat(CliTest):
    MORE = ["--temp", "0", "-c", "512", "-n", "24"]

    def test_a_pipe_is_one_message(self):
        out, err = self.run_cli("chat", *self.MORE, stdin=b"Tell me a story about a beaver.\n")
        self.assertGreater(len(out), 20)
        self.assertEqual(out.count("\n"), out.strip("\n").count("\n") + 1)
        self.assertNotIn("<|", out)
        self.assertEqual(out, self.out("chat", "-p", "Tell me a story about a beaver.", *self.MORE))
        other = self.out("chat", "-p", "Tell me a story about a beaver.", "-sys", "Be brief.", *self.MORE)
        self.assertNotEqual(other, "")


if __name__ == "__main__":
    main()
