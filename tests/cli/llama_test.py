"""Only the name changes: what people type for llama.cpp's programs. llama_flags.txt lists their flags."""
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile

from support import LIMIT, MODEL, PROGRAM, CliTest, has_server, main, vocabulary_gguf

FLAGS = pathlib.Path(__file__).with_name("llama_flags.txt")
SHORT = ["-n", "8", "--temp", "0", "-c", "256"]
CONVERSATION = r"Ctrl-D leaves\s+> "
UNKNOWN = r"has no option|belongs to no option|is an option of|needs a value|there is no command"


def listed():
    """(program, word, values) for each word of each flag; the value is what stands behind the last word."""
    for line in FLAGS.read_text().splitlines():
        if line.startswith("#"):
            continue
        program, *words = line.split(" ")
        names = [word for word in words if re.match(r"--?[A-Za-z]", word)]
        for name in names:
            yield program, name, [str(MODEL) if word == "MODEL" else word for word in words[len(names):]]


class Devices(CliTest):
    """What several devices need is refused in words where they are not there."""

    def test_refused(self):
        run = ["run", "-p", "x", "-n", "1", "--temp", "0"]
        for args, answer in ((["-dev", "cpu,cpu"], "device cpu is named twice"),
                             (["-dev", "cpu,"], 'device "cpu,": a name is empty'),
                             (["-dev", "cpu,neural0"], "no device 'neural0'"),
                             (["-dev", "cpu", "-ts", "1,1"], "2 shares, but 0 devices beside the processor"),
                             (["-dev", "cpu", "-ot", "exps=cpu"], "--override-tensor exps=cpu names no tensor of the model"),
                             (["-dev", "cpu", "-ot", "attn_q=CPU"], "a layer but for its experts is on one device"),
                             (["-dev", "cpu", "-ot", "blk=neural0"], "this device is not among those that are open"),
                             (["-dev", "cpu", "--mem-limit", "1G,1G"], "2 limits of memory for 1 devices"),
                             (["-dev", "cpu", "--no-mmap", "--mem-limit", "64K"], "only 65536 bytes are free")):
            self.assertIn(answer, self.error(1, *run, *args))
        self.assertIn('takes REGEX=DEVICE, not "exps"', self.error(2, *run, "-dev", "cpu", "-ot", "exps"))
        self.assertIn("has no regular expression", self.error(2, *run, "-dev", "cpu", "-ot", "(=cpu"))
        self.assertIn("--main-gpu 2, but --device names 2", self.error(2, *run, "-dev", "cpu,cpu", "-sm", "none", "-mg", "2"))

    def test_the_processor_alone_takes_all(self):
        args = ["run", "-p", "Once", "-n", "4", "--temp", "0", "-dev", "cpu"]
        self.assertEqual(self.out(*args), self.out(*args, "-ngl", "3"))
        self.assertEqual(self.out(*args), self.out(*args, "-cmoe"))  # it has no experts
        self.assertEqual(self.out(*args), self.out(*args, "-ncmoe", "3", "-ot", "blk=CPU"))
        self.assertEqual(self.out(*args), self.out(*args, "-sm", "none", "--mem-limit", "4G"))


class Flags(CliTest):
    def test_every_flag_of_the_list_is_known(self):
        """Each is the same, or taken, or refused with the reason. A wrong value behind it stops what is taken before it runs."""
        seen = 0
        stops = {"cli": ["--top-p", "x"], "bench": ["-r", "x"], "server": ["--top-p", "x"]}
        commands = {"cli": [], "bench": ["bench"], "server": ["serve"]}
        answered = ("--help", "-h", "--usage")
        server = has_server()
        for program, name, values in listed():
            if program == "server" and not server:
                continue
            seen += 1
            command = commands[program]
            stop = [] if name in answered else stops[program]
            done = subprocess.run([PROGRAM, *command, "-m", MODEL, name, *values, *stop],
                                  capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
            with self.subTest(flag=[program, name, *values], err=done.stderr):
                self.assertNotRegex(done.stderr, UNKNOWN)
                self.assertEqual(done.returncode, 0 if name in answered else 2)
                said = done.stderr.splitlines()
                self.assertLessEqual(len(said), 1 if name in answered else 2)
                if name not in answered:
                    self.assertRegex(said[-1], r"^greta-cli: -[^ ]")
        self.assertGreater(seen, 400)

    def test_underscores(self):
        for args in (["--n_predict", "3"], ["--n_predict=3"], ["--predict=3"]):
            self.assertEqual(self.out("run", "-p", "Once", "--temp", 0, "--ctx_size", 64, *args),
                             self.out("run", "-p", "Once", "--temp", 0, "-c", 64, "-n", 3))
        self.assertIn("a_b=1\n", self.out("run", "-p", "a_b=1", "-n", 0, "-c", 64))

    def test_values_mean_the_same(self):
        base = self.out("run", "-p", "Once", *SHORT)
        for args in (["-t", "-1"], ["-dev", "none"], ["--device", "CPU"], ["-mmp", "1"], ["-mmp", "0"],
                     ["--no-kv-offload", "0"], ["--sampler-seq", "kt"], ["--temperature", "0"], ["--temp", "-1"], ["-n8"],
                     ["--temp", "-0.5"]):
            self.assertEqual(self.out("run", "-p", "Once", *SHORT, *args), base)

    def test_a_note_says_what_has_no_effect(self):
        err = self.run_cli("run", "-p", "Once", *SHORT, "-Cr", "0-1")[1]
        self.assertIn("greta-cli: -Cr, --cpu-range: use taskset", err)


class Variables(CliTest):
    def run_with(self, variables, *args, code=0):
        return self.run_cli(*args, code=code, env={**os.environ, **variables})

    def test_they_stand_for_options(self):
        told = self.out("run", "-m", MODEL, "-p", "Once", *SHORT)
        variables = {"LLAMA_ARG_MODEL": str(MODEL), "LLAMA_ARG_CTX_SIZE": "256", "LLAMA_ARG_N_PREDICT": "8",
                     "LLAMA_ARG_TEMPERATURE": "0", "LLAMA_ARG_FLASH_ATTN": "on", "LLAMA_ARG_NO_MMAP": "1",
                     "LLAMA_ARG_DEVICE": "none", "LLAMA_ARG_THREADS": "-1", "LLAMA_ARG_CONTEXT_SHIFT": "0"}
        for args in (["run", "-p", "Once"], ["-p", "Once"]):
            out, err = self.run_with(variables, *args)
            self.assertEqual(out, told)
            self.assertNotIn("bundled", err)
            self.assertIn("greta-cli: LLAMA_ARG_CTX_SIZE stands for --ctx-size 256\n", err)
        self.assertEqual(self.run_with(variables, "run", "-q", "-p", "Once")[1], "")

    def test_an_option_that_was_typed_counts_more(self):
        variables = {"LLAMA_ARG_N_PREDICT": "3", "LLAMA_ARG_MODEL": "no/such.gguf"}
        self.assertEqual(self.run_with(variables, "run", "-m", str(MODEL), "-p", "Once", *SHORT)[0],
                         self.out("run", "-p", "Once", *SHORT))
        self.assertIn("no/such.gguf", self.run_with(variables, "run", "-p", "Once", code=1)[1])

    def test_commands_take_what_they_know(self):
        variables = {"LLAMA_ARG_N_PREDICT": "3", "LLAMA_ARG_TOP_K": "x"}
        self.run_with(variables, "tokenize", "-p", "Once")
        self.run_with(variables, "-h")
        self.run_with(variables, "run", "-h")
        self.assertIn("--top-k takes", self.run_with(variables, "run", "-p", "x", code=2)[1])


class Bench(CliTest):
    def rows(self, *args):
        out = self.out("bench", "-m", MODEL, "-r", 1, "-o", "jsonl", *args)
        return [(row["n_prompt"], row["n_gen"], row["n_depth"]) for row in map(json.loads, out.splitlines())]

    def test_ranges(self):
        self.assertEqual(self.rows("-p", "1-3,8", "-n", 0), [(1, 0, 0), (2, 0, 0), (3, 0, 0), (8, 0, 0)])
        self.assertEqual(self.rows("-p", "4-16*2", "-n", 0), [(4, 0, 0), (8, 0, 0), (16, 0, 0)])
        self.assertEqual(self.rows("-p", 0, "-n", "1", "-d", "0-9+4"), [(0, 1, 0), (0, 1, 4), (0, 1, 8)])
        for wrong in ("5,", "9-3", "1-9*1", "1-9+0", "0-8*2", "-3", "1-2-3", "1-4000000000", "0-2000000000", ""):
            self.assertIn(": -p takes numbers", self.error(2, "bench", "-p", wrong))

    def test_an_option_that_is_given_twice(self):
        self.assertEqual(self.rows("-p", 0, "-n", 1, "-n", 2), [(0, 1, 0), (0, 2, 0)])

    def test_lists_of_types_and_steps(self):
        out = self.out("bench", "-m", MODEL, "-r", 1, "-o", "jsonl", "-p", 8, "-n", 0, "-ctk", "f16,q8_0", "-ctv", "f32",
                       "-b", "4,2048", "-ctk", "f32")
        rows = [(row["type_k"], row["type_v"], row["n_batch"]) for row in map(json.loads, out.splitlines())]
        self.assertEqual(rows, [(key, "f32", batch) for key in ("f16", "q8_0", "f32") for batch in (4, 512)])
        self.assertIn("-ctk takes f32, f16 or q8_0, with commas between them, not", self.error(2, "bench", "-ctk", "f16,q4_0"))
        self.assertIn("-b takes numbers", self.error(2, "bench", "-b", "x"))

    def test_sql_and_results_on_stderr(self):
        told = ["bench", "-m", str(MODEL), "-r", "1", "-p", "4", "-n", "2", "-o", "sql", "-oe", "jsonl"]
        out, err = self.run_cli(*told)
        base = sqlite3.connect(":memory:")
        base.executescript(out)
        self.assertEqual(base.execute("SELECT n_prompt, n_gen, type_k FROM llama_bench").fetchall(), [(4, 0, "f16"), (0, 2, "f16")])
        rows = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
        self.assertEqual([row["n_prompt"] for row in rows], [4, 0])
        base.executescript(out)  # a second run adds its rows
        self.assertEqual(base.execute("SELECT count(*) FROM llama_bench").fetchone(), (4,))
        self.assertIn("--profile does not fit", self.error(2, *told, "--profile"))

    def test_a_prompt_and_its_answer_in_one(self):
        self.assertEqual(self.rows("-p", 0, "-n", 0, "-pg", "8,4", "-pg", "2,1"), [(8, 4, 0), (2, 1, 0)])
        self.assertIn("pp8+tg4", self.out("bench", "-m", MODEL, "-r", 1, "-p", 0, "-n", 0, "-pg", "8,4"))
        for wrong in ("8", "8,4,2", "8;4"):
            self.assertIn(": -pg takes ", self.error(2, "bench", "-pg", wrong))


class NoCommand(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_without_a_terminal_a_text_is_continued(self):
        text = self.out("run", "-m", MODEL, "-p", "Once upon", *SHORT)
        for args in (["-m", MODEL, "-p", "Once upon", *SHORT], [MODEL, "-p", "Once upon", *SHORT],
                     ["-p", "Once upon", *SHORT, MODEL], ["-p", "Once upon", *SHORT, "-no-cnv"],
                     ["run", MODEL, "-p", "Once upon", *SHORT]):
            self.assertEqual(self.out(*args), text)
        self.assertEqual(self.out(*SHORT, "-m", MODEL, stdin=b"Once upon"), text)

    def test_flags_of_conversations_mean_chat(self):
        text = self.out("chat", "-m", MODEL, "-p", "Tell me a story.", *SHORT)
        for flag in ("-cnv", "-st", "-i", "-if"):
            self.assertEqual(self.out("-m", MODEL, "-p", "Tell me a story.", *SHORT, flag), text)
        asked = ["-p", "Tell me a story.", "-sys", "Be brief.", *SHORT]
        self.assertEqual(self.out(*asked), self.out("chat", *asked))

    def test_escapes_are_read_as_llama_cli_does(self):
        self.assertTrue(self.out("-m", MODEL, "-p", r"a\nb", "-n", 0).startswith("a\nb"))
        self.assertTrue(self.out("-m", MODEL, "-p", r"a\nb", "-n", 0, "--no-escape").startswith(r"a\nb"))
        self.assertTrue(self.out("run", "-m", MODEL, "-p", r"a\nb", "-n", 0).startswith(r"a\nb"))

    def test_on_a_terminal_there_is_a_conversation(self):
        for args in (["-m", MODEL, "-p", "Hello", *SHORT], [MODEL, *SHORT], ["-p", "Hello", *SHORT]):
            terminal = self.terminal(*args, state=self.folder)
            terminal.wait_for(CONVERSATION)
            terminal.send(b"\x04")
            self.assertEqual(terminal.exit_code(), 0)

    def test_one_turn_on_a_terminal(self):
        terminal = self.terminal("-m", MODEL, "-p", "Hello", "-st", *SHORT, state=self.folder)
        self.assertEqual(terminal.exit_code(), 0)
        self.assertNotRegex(terminal.seen, CONVERSATION)

    def test_no_conversation_on_a_terminal(self):
        terminal = self.terminal("-m", MODEL, "-p", "Once upon", "-no-cnv", *SHORT, state=self.folder)
        self.assertEqual(terminal.exit_code(), 0)
        self.assertIn("Once upon", terminal.seen)

    def test_a_model_without_a_template(self):
        path = self.folder / "plain.gguf"
        path.write_bytes(vocabulary_gguf([]))
        terminal = self.terminal("-m", path, "-p", "Once", *SHORT, state=self.folder)
        self.assertEqual(terminal.exit_code(), 1)  # it has no tensors, so that only the choice is seen
        self.assertNotRegex(terminal.seen, CONVERSATION)

    def test_a_model_that_is_not_there(self):
        self.assertIn("no/such.gguf", self.error(1, "no/such.gguf", "-p", "x"))
        self.assertIn("no/such.gguf", self.error(1, "info", "no/such.gguf"))
        self.assertIn(str(MODEL), self.out("info", MODEL))


class Slips(CliTest):
    def test_commands(self):
        for word, answer in (("chta", "did you mean chat?"), ("ifno", "did you mean info?"), ("server", "use greta-cli serve"),
                             ("devcies", "did you mean devices?"), ("pull", "nothing is downloaded"),
                             ("quantize", "files are read as they are"), ("fly", "greta-cli -h")):
            error = self.error(2, word)
            self.assertIn(f"there is no command {word}: ", error)
            self.assertIn(answer, error)

    def test_words_that_are_meant_as_options(self):
        self.assertEqual(self.out("version"), self.out("--version"))
        self.assertEqual(self.out("help"), self.out("-h"))
        self.assertEqual(self.out("help", "bench"), self.out("bench", "-h"))

    def test_options(self):
        run = ["run", "-p", "x"]
        for args, answer in (([*run, "--tmep", "0"], "run has no option --tmep: did you mean --temp? (see greta-cli run -h)"),
                             ([*run, "--xyzzy"], "run has no option --xyzzy (see greta-cli run -h)"),
                             (["-p", "x", "--tpo-k", "1"], "did you mean --top-k?"),
                             (["--versoin"], "did you mean --version?"),
                             ([*run, "--n-gen", "4"], "--n-gen is an option of bench, not of run"),
                             ([*run, "-st"], "--single-turn is an option of chat, not of run"),
                             (["bench", "--top-k", "4"], "--top-k is an option of run, not of bench"),
                             (["run", "several", "words", "-p", "x"], '"several" belongs to no option: a text stands behind -p'),
                             ([*run, "--first", "--second"], "--first")):
            self.assertIn(answer, self.error(2, *args))

    def test_values(self):
        run = ["run", "-p", "x"]
        for args, answer in (([*run, "--top-p", "2"], '--top-p takes a number from 0 to 1, not "2"'),
                             ([*run, "--temp", "-x"], '--temp takes a number of at least 0, not "-x"'),
                             ([*run, "--presence-penalty", "x"], '--presence-penalty takes a number, not "x"'),
                             ([*run, "-n", "many"], '--predict takes a whole number of at least -1, not "many"'),
                             ([*run, "-t", "9999"], '--threads takes a whole number from 0 to 1024, not "9999"'),
                             ([*run, "-ctk", "q4_0"], '--cache-type-k takes f32, f16 or q8_0, not "q4_0"'),
                             ([*run, "-ngl", "many"], '--gpu-layers takes a whole number, auto or all, not "many"'),
                             ([*run, "-sm", "row"], '--split-mode takes layer or none, not "row"'),
                             ([*run, "-ncmoe", "-1"], '--n-cpu-moe takes a whole number of at least 0, not "-1"'),
                             ([*run, "-ngl"], "--gpu-layers needs a value"),
                             (["run", "-ngl", "-p", "x"], "-ngl needs a value, but -p follows"),
                             (["bench", "-p", "-n", "3"], "-p needs a value, but -n follows"),
                             (["run", "-p"], "--prompt needs a value"),
                             (["run", "-m", "", "-p", "x"], "--model is empty: is a variable of the shell not set?"),
                             (["-m", "", "-p", "x"], "--model is empty"), (["bench", "-m", ""], "--model is empty"),
                             (["info", "-m", ""], "--model is empty"), (["run", "-f", ""], "--file is empty")):
            error = self.error(2, *args)
            self.assertIn(answer, error)
            self.assertRegex(error, r"\(see greta-cli (\w+ )?-h\)$")
            self.assertNotIn(".000", error)

    def test_an_error_of_bench_names_its_flags(self):
        for args, flags in ((["-p", "1", "-n", "0", "-d", "100000000"], "-p 1 -d 100000000: "),
                            (["-p", "0", "-n", "100000000"], "-n 100000000: "),
                            (["-p", "0", "-n", "0", "-pg", "1,100000000"], "-pg 1,100000000: ")):
            self.assertIn("greta-cli: " + flags, self.error(1, "bench", *args))


if __name__ == "__main__":
    main()
