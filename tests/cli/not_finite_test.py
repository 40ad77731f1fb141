"""A model of which one gain of one norm is NaN or infinite: every command that runs it says so and fails."""
import os
import pathlib
import struct
import tempfile

from gguf_file import GgufFile
from support import MODEL, CliTest, main

DATA = os.environ.get("GRETA_TEST_DATA", "")
TYPES = ["q8_0", "q2_k", "iq4_xs", "f16"]


class NotFinite(CliTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.text = cls.folder / "text"
        cls.text.write_text("Once upon a time there was a king who had three sons. " * 20)

    def check(self, path):
        good = path.read_bytes()
        spoiled = self.folder / "spoiled.gguf"
        for name in ("blk.0.attn_norm.weight", "blk.1.ffn_norm.weight", "output_norm.weight"):
            for value in (float("nan"), float("inf")):
                model = GgufFile(good)
                gain = model[name]
                gain.data = gain.data[:148] + struct.pack("<f", value) + gain.data[152:]
                spoiled.write_bytes(model.bytes())
                for command in (["run", "-p", "Once upon", "-n", "4"], ["embed", "-p", "Once upon a time"],
                                ["ppl", "-f", self.text, "-c", "64"]):
                    with self.subTest(file=path.name, tensor=name, value=value, command=command[0]):
                        _, told = self.run_cli(*map(str, command), "-m", str(spoiled), *self.device(), code=1)
                        self.assertIn("finite", told)

    def device(self):
        return ["--device", os.environ.get("GRETA_TEST_DEVICE", "cpu")]

    def test_the_bundled_model(self):
        self.check(MODEL)

    def test_other_types(self):
        if not DATA:
            self.skipTest("GRETA_TEST_DATA is not set")
        for kind in TYPES:
            self.check(pathlib.Path(DATA) / "models" / f"tales-llama-7m-{kind}.gguf")


if __name__ == "__main__":
    main()
