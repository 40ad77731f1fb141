"""The notebook docs/python.ipynb runs: in a kernel of Jupyter where nbclient and ipykernel are, else its cells one after
the other as a program."""
import contextlib
import importlib.util
import io
import json
import os
import shutil
import tempfile
import unittest

from support import MODEL, PACKAGE, ROOT, main

NOTEBOOK = os.path.join(ROOT, "docs", "python.ipynb")


class Notebook(unittest.TestCase):
    def setUp(self):
        with open(NOTEBOOK, encoding="utf-8") as file:
            self.book = json.load(file)
        self.cells = ["".join(cell["source"]) for cell in self.book["cells"] if cell["cell_type"] == "code"]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        shutil.copy(MODEL, os.path.join(folder.name, "model.gguf"))
        os.chdir(folder.name)

    def test_it_is_committed_without_output(self):
        for cell in self.book["cells"]:
            self.assertEqual((cell.get("outputs", []), cell.get("execution_count")), ([], None))

    def test_the_cells_as_a_program(self):
        names, said = {"__name__": "notebook"}, io.StringIO()
        with contextlib.redirect_stdout(said):
            for index, text in enumerate(self.cells):
                exec(compile(text, f"{NOTEBOOK}, cell {index + 1}", "exec"), names)
        self.assertIn("tokens per second", said.getvalue())
        self.assertIn(names["animal"].kind, ("fox", "owl", "goose"))
        self.assertEqual(names["picture"]._repr_svg_().count("<rect"), len(names["texts"]) ** 2)
        self.assertEqual(len(names["answers"]), 32)

    @unittest.skipUnless(importlib.util.find_spec("nbclient") and importlib.util.find_spec("ipykernel"),
                         "nbclient and ipykernel are not there")
    def test_in_a_kernel(self):
        import nbclient
        import nbformat

        os.environ["PYTHONPATH"] = PACKAGE
        book = nbclient.NotebookClient(nbformat.read(NOTEBOOK, 4), timeout=120, kernel_name="python3").execute()
        shown = json.dumps([cell.get("outputs", []) for cell in book.cells if cell.cell_type == "code"])
        self.assertIn("image/svg+xml", shown)
        self.assertIn("tokens per second", shown)


if __name__ == "__main__":
    main()
