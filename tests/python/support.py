"""What the tests of the package share: the library, the model, and programs that run in a process of their own."""
import os
import subprocess
import sys
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BINDINGS = os.path.join(ROOT, "bindings", "python")
PACKAGE = os.environ.get("GRETA_PACKAGE") or BINDINGS  # or that of an unpacked wheel
MODEL = os.path.join(ROOT, "models", "tales-llama-7m-q4_k_m.gguf")
SKIPPED = 77
PROMPT = "Once upon a time"

if not os.path.exists(os.environ.get("GRETA_LIBRARY", "")):
    print("libgreta.so is not built (-DGRETA_SHARED=ON, or ninja greta_shared)")
    sys.exit(SKIPPED)
sys.path[:0] = [PACKAGE, BINDINGS]
import greta  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None


def open_model(**more):
    return greta.Model(MODEL, device="cpu", **{"threads": 2, "progress": False} | more)


def run_program(text, *arguments, first="", timeout=300, **more):
    """Runs a program of Python with the package, and gives what has come of it. `first` runs before the import."""
    environment = {**os.environ, "PYTHONPATH": PACKAGE, "MODEL": MODEL}
    head = ("import os, sys, threading, time, signal, gc, greta\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start tests with it ignored\n"
            "MODEL = os.environ['MODEL']\n"
            "def open_model(**more): return greta.Model(MODEL, device='cpu', threads=2, **more)\n")
    return subprocess.run([sys.executable, "-B", "-W", "ignore::DeprecationWarning", "-c", first + head + text, *arguments], capture_output=True, text=True,
                          timeout=timeout, env=environment, **more)


class ModelTest(unittest.TestCase):
    """Tests that share a model."""

    @classmethod
    def setUpClass(cls):
        cls.model = open_model()

    @classmethod
    def tearDownClass(cls):
        cls.model.close()


def main():
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=1)
