"""Every recipe of docs/python-recipes.md runs, with the real library, against greta-cli serve. A recipe whose library
is not installed is skipped."""
import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import MODEL, ROOT, SKIPPED, main

PAGE = os.path.join(ROOT, "docs", "python-recipes.md")
IMPORT = re.compile(r"^(?:import|from) ([\w.]+)", re.M)


def recipes():
    """The heading, the number and the text of each block."""
    with open(PAGE, encoding="utf-8") as file:
        for section in file.read().split("\n## ")[1:]:
            for index, block in enumerate(re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)):
                yield section.splitlines()[0], index, block


def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # of the package that it is in
        return False


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = os.environ.get("GRETA_CLI", "")
        if not os.path.exists(program) or subprocess.run([program, "serve", "-h"], capture_output=True).returncode:
            raise unittest.SkipTest("there is no greta-cli with the command serve")
        cls.before, cls.folder = os.getcwd(), tempfile.TemporaryDirectory()
        shutil.copy(MODEL, os.path.join(cls.folder.name, "model.gguf"))
        os.chdir(cls.folder.name)
        cls.server = subprocess.Popen([program, "serve", "-m", "model.gguf", "--port", "0", "--device", "cpu", "-t", "2",
                                       "-c", "512"], stderr=subprocess.PIPE, text=True)
        for line in cls.server.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                cls.port = found[1]
                return
        raise AssertionError("the server has not said where it listens")

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.communicate(timeout=60)
        os.chdir(cls.before)
        cls.folder.cleanup()

    def test_each(self):
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # of DSPy: nothing is fetched
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
        found = list(recipes())
        self.assertGreaterEqual({heading for heading, _, _ in found}, {"openai", "LangChain", "LlamaIndex", "DSPy"})
        for heading, index, block in found:
            with self.subTest(f"{heading} {index}"):
                missing = [name for name in IMPORT.findall(block) if not there(name)]
                if missing:
                    self.skipTest(f"there is no {missing[0]}")
                said = io.StringIO()
                code = compile(block.replace(":8080/", f":{self.port}/"), f"{PAGE}, {heading} {index}", "exec")
                with contextlib.redirect_stdout(said):
                    exec(code, {"__name__": f"recipe_{index}"})
                self.assertGreater(len(said.getvalue()), 20)


if __name__ == "__main__":
    main()
