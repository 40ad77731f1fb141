"""Every block of docs/python.md runs, in its order, in a folder of its own."""
import contextlib
import io
import os
import re
import shutil
import tempfile
import unittest

from support import MODEL, ROOT, greta, main


class Page(unittest.TestCase):
    def test_every_block(self):
        with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
            text = file.read()
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
        self.assertEqual(text.count("\n```"), 2 * len(blocks), "a block of another language is not run")
        self.assertGreater(len(blocks), 10)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(MODEL, os.path.join(folder, "model.gguf"))
            os.chdir(folder)
            try:
                names = {"__name__": "docs"}
                said = io.StringIO()
                with contextlib.redirect_stdout(said):
                    for index, block in enumerate(blocks):
                        exec(compile(block, f"docs/python.md, block {index + 1}", "exec"), names)
            finally:
                os.chdir(before)
        self.assertIn("<greta.Model tales-llama-7m", said.getvalue())
        self.assertIn(names["animal"].kind, ("fox", "owl", "goose"))
        self.assertTrue(names["model"].closed)

    def test_everything_public_is_documented(self):
        for name in greta.__all__:
            self.assertTrue(getattr(greta, name).__doc__, name)
        for kind in (greta.Model, greta.Service, greta.Session, greta.Chat, greta.Request, greta.Tokenizer, greta.Runtime):
            for name, value in vars(kind).items():
                if not name.startswith("_") and callable(value):
                    self.assertTrue(value.__doc__, f"{kind.__name__}.{name}")

    def test_version(self):
        with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as file:
            self.assertIn(f'\nversion = "{greta.version()}"', file.read())


if __name__ == "__main__":
    main()
