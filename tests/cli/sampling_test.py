"""Flags of sampling, stop strings, grammars and JSON schemas, and the settings that a model brings along."""
import json
import pathlib
import struct
import tempfile

from support import MODEL, CliTest, main

SHORT = ["-p", "Once upon a time", "-c", "256", "-n", "24"]


def model_with(entries, data=None):
    """The bundled model, or another file, with metadata before its own, a multiple of 32 bytes: the data stays aligned."""
    def text(value):
        return struct.pack("<Q", len(value)) + value

    def entry(key, value):
        kind = {float: 6, int: 4, str: 8}[type(value)]
        payload = text(value.encode()) if kind == 8 else struct.pack("<f" if kind == 6 else "<I", value)
        return text(key.encode()) + struct.pack("<I", kind) + payload

    more = b"".join(entry(key, value) for key, value in entries.items())
    more += entry("pad", " " * (-(len(more) + len(entry("pad", ""))) % 32))
    data = data or MODEL.read_bytes()
    (count,) = struct.unpack_from("<Q", data, 16)
    return data[:16] + struct.pack("<Q", count + len(entries) + 1) + more + data[24:]


class Folder(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


class Sampling(Folder):
    def test_a_seed_gives_the_same_text(self):
        for more in ([], ["--samplers", "top_k;temperature"], ["--mirostat", 2], ["--dry-multiplier", 1],
                     ["--xtc-probability", 0.5], ["--dynatemp-range", 0.5], ["--typical", 0.8],
                     ["--top-nsigma", 1]):
            first = self.out("run", *SHORT, "-s", 5, *more)
            self.assertEqual(self.out("run", *SHORT, "-s", 5, *more), first)
            self.assertNotEqual(self.out("run", *SHORT, "-s", 6, *more), first)

    def test_guessed_tokens_change_no_text(self):
        for more in (["--temp", 0, "-n", 120], ["-s", 5, "-n", 60], ["--temp", 0, "--grammar", 'root ::= ("a cat " | "a king ")+']):
            plain = self.out("run", *SHORT, "--exact", *more)
            for spec in (["--spec", "ngram"], ["--spec-type", "ngram-simple", "--draft-max", 3], ["--spec", "none"]):
                self.assertEqual(self.out("run", *SHORT, "--exact", *more, *spec), plain)
        counting = "One two three four. One two three four. One two three four. One two"
        said = self.run_cli("run", "-p", counting, "-c", "256", "-n", "150", "--temp", "0", "--ignore-eos", "-v", "--spec", "ngram")[1]
        self.assertRegex(said, r"\d+ of \d+ guessed tokens were right")

    def test_biases(self):
        ids = [int(word) for word in self.out("tokenize", "--ids", "-p", " the", "--no-bos").split()]
        biased = self.out("run", *SHORT, "--temp", 0, "-l", f"{ids[-1]}+1000", "--no-display-prompt")
        self.assertEqual(set(biased.split()), {"the"})
        plain = self.out("run", *SHORT, "--temp", 0)
        self.assertEqual(self.out("run", *SHORT, "--temp", 0, "-l", f"{ids[-1]}+0"), plain)
        for wrong in ("5", "x+1", "5+", "5*2", "5+1x", "+5", "5+nan", ""):
            self.assertIn("-l", self.error(2, "run", *SHORT, "-l", wrong))
        self.assertIn("expected 0 to 4095", self.error(1, "run", *SHORT, "-l", "4096+1"))
        self.assertIn("bias of token 5", self.error(1, "run", *SHORT, "-l", "5+1e9"))

    def test_orders(self):
        self.assertIn("nonsense", self.error(1, "run", *SHORT, "--samplers", "top_k;nonsense"))
        self.assertIn("letter q", self.error(2, "run", *SHORT, "--sampling-seq", "kq"))
        self.assertEqual(self.out("run", *SHORT, "-s", 1, "--samplers", "top_k;temperature"),
                         self.out("run", *SHORT, "-s", 1, "--sampling-seq", "kt"))

    def test_numbers_out_of_range(self):
        for flag, value in (("--top-p", "1.5"), ("--min-p", "-1"), ("--top-k", "-1"),
                            ("--mirostat", "3"), ("--dry-base", "0.5"), ("--repeat-penalty", "0"),
                            ("--temp", "x")):
            self.assertIn(flag, self.error(2, "run", *SHORT, flag, value))
        self.assertIn("--mirostat", self.error(2, "run", *SHORT, "--mirostat", 1))

    def test_the_models_own_settings(self):
        path = self.file("own.gguf", model_with({"general.sampling.temp": 0.0, "general.sampling.top_k": 3,
                                                 "general.sampling.sequence": "top_k;temperature"}))
        greedy = self.out("run", *SHORT, "--temp", 0, "--samplers", "top_k;temperature")
        out, err = self.run_cli("run", *SHORT, "-m", str(path), "-v")
        self.assertEqual(out, greedy)
        self.assertIn("--temp 0", err)
        self.assertIn("--top-k 3", err)
        self.assertIn('--samplers "top_k;temperature"', err)
        # Flags say otherwise.
        flags = ["--temp", "1.2", "--top-k", "40", "--samplers", "temperature;top_k", "-s", "3"]
        out, err = self.run_cli("run", *SHORT, "-m", str(path), "-v", *flags)
        self.assertEqual(out, self.out("run", *SHORT, *flags))
        self.assertNotIn("the model's own settings", err)
        # One flag: the others stay the model's.
        out = self.out("run", *SHORT, "-m", path, "--temp", 1.2, "-s", 3)
        self.assertEqual(out, self.out("run", *SHORT, "--temp", 1.2, "-s", 3, "--top-k", 3,
                                       "--samplers", "top_k;temperature"))

    def test_the_models_own_settings_in_chat(self):
        path = self.file("own.gguf", model_with({"general.sampling.temp": 0.0}))
        chat = ["chat", "-p", "Tell me a story.", "-n", "16", "-c", "256"]
        self.assertEqual(self.out(*chat, "-m", path), self.out(*chat, "--temp", 0))
        warm = [*chat, "--temp", 1.5, "-s", 3]
        self.assertEqual(self.out(*warm, "-m", path), self.out(*warm))
        self.assertNotEqual(self.out(*warm), self.out(*chat, "--temp", 0))

    def test_stop_strings(self):
        whole = self.out("run", *SHORT, "--temp", 0, "--no-display-prompt").rstrip("\n")
        stop = whole[10:14]
        for flag in ("-r", "--stop", "--reverse-prompt"):
            out = self.out("run", *SHORT, "--temp", 0, "--no-display-prompt", flag, "@@", flag, stop)
            self.assertEqual(out, whole[: whole.index(stop)] + "\n")


class Drafts(Folder):
    """Who guesses tokens changes no text."""
    RUN = ["run", "-m", str(MODEL), "--device", "cpu", "--exact", *SHORT]

    def test_a_second_model(self):
        for more in (["--temp", "0"], ["--temp", "1", "-s", "5"]):
            plain = self.out(*self.RUN, *more)
            out, err = self.run_cli(*self.RUN, *more, "-md", str(MODEL), "--draft-max", "3", "-v")
            self.assertEqual(out, plain)
            self.assertRegex(err, r"[0-9]+ of [0-9]+ guessed tokens were right; [123]\.[0-9]+ tokens for each step")
        self.assertEqual(self.out(*self.RUN, "--temp", "0", "-md", str(MODEL), "--spec-type", "none"), self.out(*self.RUN, "--temp", "0"))

    def test_what_cannot_guess(self):
        self.assertIn("-md FILE", self.error(2, *self.RUN, "--spec-type", "draft-simple"))
        self.assertIn("not with --spec ngram", self.error(2, *self.RUN, "--spec-type", "ngram", "-md", str(MODEL)))
        self.assertIn("it has no layer that drafts tokens", self.error(1, *self.RUN, "--spec-type", "draft-mtp"))
        other = MODEL.parents[1] / "tests" / "golden" / "heads" / "qwen35-head.gguf"
        self.assertIn("they must be the same", self.error(1, *self.RUN, "-md", str(other)))


class Grammars(Folder):
    def test_a_grammar(self):
        alone = ["run", *SHORT, "--no-display-prompt"]
        out = self.out(*alone, "--grammar", 'root ::= [A-F]{3} "-" [0-9]{2}', "-s", 1)
        self.assertRegex(out, r"^[A-F]{3}-[0-9]{2}\n$")
        path = self.file("g.gbnf", 'root ::= ("yes" | "no") "."')
        self.assertIn(self.out(*alone, "--grammar-file", path), ("yes.\n", "no.\n"))

    def test_wrong_grammars(self):
        path = self.file("g.gbnf", 'root ::= a\n\na ::= "x" (\n')
        self.assertIn("line 4", self.error(1, "run", *SHORT, "--grammar-file", path))
        self.assertIn("left recursion", self.error(1, "run", *SHORT, "--grammar", 'root ::= root "a" | "b"'))
        self.assertIn("none.gbnf", self.error(1, "run", *SHORT, "--grammar-file", self.folder / "none.gbnf"))
        self.assertIn("exclude", self.error(2, "run", *SHORT, "--grammar", 'root ::= "a"', "-j", "{}"))

    def test_json_schemas(self):
        schema = {"type": "object", "required": ["name", "age", "tags"], "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 1, "maximum": 120},
            "tags": {"type": "array", "items": {"enum": ["red", "blue", None]}, "maxItems": 3}}}
        path = self.file("schema.json", json.dumps(schema))
        texts = set()
        for seed in range(6):
            flags = ["-j", json.dumps(schema)] if seed % 2 else ["--json-schema-file", str(path)]
            out = self.out("run", "-p", "Once", "-c", 512, "-s", seed, "--no-display-prompt", *flags)
            value = json.loads(out)
            self.assertEqual(list(value), ["name", "age", "tags"])
            self.assertLessEqual(len(value["name"]), 12)
            self.assertTrue(1 <= value["age"] <= 120)
            self.assertTrue(len(value["tags"]) <= 3 and set(value["tags"]) <= {"red", "blue", None})
            texts.add(out)
        self.assertGreater(len(texts), 1)

    def test_wrong_schemas(self):
        self.assertIn("not", self.error(1, "run", *SHORT, "--strict-schema", "-j", '{"not": {}}'))
        self.assertIn("JSON schema", self.error(1, "run", *SHORT, "-j", "{"))


if __name__ == "__main__":
    main()
