"""--models-preset: models with options of their own, from llama-server's INI file."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from server import LIMIT, MODEL, PROGRAM, Server, ServerTest, chat_body, main

CHAT = "/v1/chat/completions"
INI = """; models of a test
version = 1

[*]
c = 512
temp = 0
drain = 3

[short]
model = {model}
LLAMA_ARG_CTX_SIZE = 256
n-predict = 5
parallel = 2
load-on-startup = true
stop-timeout = 1

# With another template, and none of its own context.
[spoken]
m = {model}
chat-template = {{%- for m in messages %}}Say {{{{ m.content }}}}{{% endfor %}}
mmap = false
flash-attn = on
no-context-shift = true

[a]
cache_tokens = 1024

[ruled]
m = {model}
ot = .=cpu

[nothing]
m = {model}
override-tensor = nose=cpu

[elsewhere]
m = {model}
ot = .=neural0
"""


class Presets(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        top = pathlib.Path(cls.folder.name)
        (top / "models").mkdir()
        for name in ("a.gguf", "b.gguf"):
            os.symlink(MODEL, top / "models" / name)
        (top / "models.ini").write_text(INI.format(model=MODEL))
        # What is typed counts more than the file.
        cls.server = Server("--models-preset", top / "models.ini", "--models-dir", top / "models", "--top-k", 7, model=None)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def props(self, name):
        self.server.post(CHAT, chat_body(model=name, max_tokens=1))
        return self.server.ask("GET", "/props?model=" + name)[1]

    def test_models_and_their_options(self):
        states = {model["id"]: model["status"]["value"] for model in self.server.ask("GET", "/v1/models")[1]["data"]}
        self.assertEqual(set(states), {"short", "spoken", "a", "b", "ruled", "nothing", "elsewhere"})
        self.server.wait_for_line("loaded short")  # at the start
        short, spoken, a, b = map(self.props, ("short", "spoken", "a", "b"))
        self.assertEqual([each["n_ctx"] for each in (short, spoken, a, b)], [256, 512, 512, 1024])
        self.assertEqual([each["total_slots"] for each in (short, spoken, a, b)], [2, 4, 4, 4])
        params = [each["default_generation_settings"]["params"] for each in (short, spoken, a, b)]
        self.assertEqual([each["n_predict"] for each in params], [5, -1, -1, -1])
        self.assertEqual([round(each["temperature"], 3) for each in params], [0, 0, 0, 0.8])
        self.assertEqual([each["top_k"] for each in params], [7] * 4)
        self.server.wait_for_line(r"\[short\] drain holds for all models")
        body = chat_body("Hi")
        self.assertEqual(self.server.post("/apply-template", {**body, "model": "spoken"})["prompt"], "Say Hi")
        self.assertNotIn("Say", self.server.post("/apply-template", {**body, "model": "a"})["prompt"])
        answer = self.server.post("/completion", {"model": "short", "prompt": "A fox", "ignore_eos": True})
        self.assertEqual(answer["tokens_predicted"], 5)
        self.assertEqual(len(self.server.ask("GET", "/slots?model=short")[1]), 2)
        self.refused(400, "id_slot must be -1, or at most 1", "POST", "/completion", {"model": "short", "prompt": "A fox", "id_slot": 2})

    def test_rules_for_tensors_are_read_for_each_model(self):
        self.assertEqual(self.props("ruled")["n_ctx"], 512)
        for name, words in (("nothing", "--override-tensor nose=cpu names no tensor of the model"),
                            ("elsewhere", "--override-tensor .=neural0: this device is not among those that are open")):
            status, answer = self.server.ask("POST", CHAT, chat_body(model=name, max_tokens=1))[:2]
            self.assertGreaterEqual(status, 400)
            self.assertIn(words, str(answer))

    def test_it_unloads(self):
        self.props("short")
        self.server.post("/models/unload", {"model": "short"})
        self.server.wait_for_line("unloaded short")


class Wrong(unittest.TestCase):
    def test_files(self):
        section = f"[x]\nmodel = {MODEL}\n"
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "models.ini"
            for text, code, words in ((section + "bogus = 1", 2, "[x] bogus: serve has no option of this name"),
                                      (section + "c = many", 2, "[x] "), (section + "no-mmap = maybe", 2, "takes true or false"),
                                      (section + "c", 1, "models.ini:3: expected KEY = VALUE"), ("[x\n", 1, "expected [NAME OF A MODEL]"),
                                      (section + section, 1, "[x] is there twice"), ("version = 2\n" + section, 1, "expected version = 1"),
                                      ("[x]\nc = 5", 1, "[x] has no model = FILE"), ("version = 1\n", 1, "there are no models"),
                                      ("[x]\nhf-repo = a/b", 2, "nothing is downloaded"), (section + "stop-timeout = soon", 2, "a number of seconds")):
                with self.subTest(text):
                    file.write_text(text)
                    told = subprocess.run([PROGRAM, "serve", "--models-preset", file, "--port", "0"], capture_output=True, text=True, check=False, timeout=LIMIT)
                    self.assertIn(words, told.stderr)
                    self.assertEqual(told.returncode, code)
        told = subprocess.run([PROGRAM, "serve", "--models-preset", "/nowhere.ini"], capture_output=True, text=True, check=False, timeout=LIMIT)
        self.assertEqual(told.returncode, 1)
        self.assertIn("/nowhere.ini", told.stderr)


if __name__ == "__main__":
    main()
