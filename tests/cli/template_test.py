"""greta-cli template: texts, renderings, and what is said when they go wrong."""
import json
import os
import tempfile
import time

import support
from support import MODEL

TALK = {"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": True}


class TemplateTest(support.CliTest):
    def write(self, text):
        handle, path = tempfile.mkstemp()
        self.addCleanup(os.unlink, path)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_the_models_text(self):
        out, err = self.run_cli("template", "-m", str(MODEL))
        self.assertTrue(out.startswith("{{ bos_token }}"))
        self.assertEqual(err, "")

    def test_the_models_rendering(self):
        context = self.write(json.dumps(TALK))
        out = self.out("template", "-m", MODEL, "--context", context)
        self.assertTrue(out.endswith("<|user|>\nHi<|end|>\n<|assistant|>\n"), out)
        self.assertFalse(out.startswith("<|user|>"))  # the BOS token is the model's
        own = self.write(json.dumps({**TALK, "bos_token": "B:", "add_generation_prompt": False}))
        self.assertEqual(self.out("template", "-m", MODEL, "--context", own), "B:<|user|>\nHi<|end|>\n")

    def test_a_file_and_standard_input(self):
        form = self.write("{{ messages[0].content }} {{ strftime_now('%Y') }}\n")
        self.assertEqual(self.out("template", "--file", form), "{{ messages[0].content }} {{ strftime_now('%Y') }}\n")
        out = self.out("template", "--file", form, "--context", "-", stdin=json.dumps(TALK).encode())
        self.assertRegex(out, f"^Hi {time.localtime().tm_year}|{time.localtime().tm_year + 1}$")

    def test_without_a_template(self):
        handle, path = tempfile.mkstemp(suffix=".gguf")
        self.addCleanup(os.unlink, path)
        with os.fdopen(handle, "wb") as file:
            file.write(support.vocabulary_gguf([]))
        context = self.write(json.dumps(TALK))
        out, err = self.run_cli("template", "-m", path, "--context", context)
        self.assertEqual(out, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
        self.assertIn("no chat template", err)

    def test_errors_name_file_line_and_column(self):
        good, context = self.write("x"), self.write(json.dumps(TALK))
        bad = self.write("a\nb {% if %}")
        self.assertIn(f"{bad}: line 2: ", self.error(1, "template", "--file", bad, "--context", context))
        fails = self.write("a\n\n{{ raise_exception('no way') }}")
        self.assertIn(f"{fails}: line 3: no way", self.error(1, "template", "--file", fails, "--context", context))
        broken = self.write('{"a":\n [1, }')
        self.assertIn(f"{broken}: line 2, column 6: ", self.error(1, "template", "--file", good, "--context", broken))
        self.assertIn("expected an object", self.error(1, "template", "--file", good, "--context", self.write("[]")))
        self.error(1, "template", "--file", "/nowhere", "--context", context)
        self.error(2, "template", "--file", good, "-m", str(MODEL))


if __name__ == "__main__":
    support.main()
