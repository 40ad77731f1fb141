"""LoRAs and control vectors: the flags of llama.cpp, and what info and verify say of their files."""
import json
import pathlib
import tempfile

from adapter_file import control_vector, lora
from gguf_file import GgufFile
from support import MODEL, CliTest, main

NAMES = ["blk.0.attn_q.weight", "blk.0.ffn_down.weight", "blk.1.ffn_up.weight"]
RUN = ["run", "-m", str(MODEL), "--device", "cpu", "-p", "Once upon a time", "-n", 12, "--temp", 0, "-c", 128]


class Adapters(CliTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model = MODEL.read_bytes()
        width = GgufFile(model)["output_norm.weight"].shape[0]
        files = {"style": lora(model, NAMES), "other": lora(model, NAMES, seed=7), "nothing": lora(model, NAMES, size=0),
                 "vector": control_vector(width, [1, 2]), "late": control_vector(width, [2])}
        cls.path = {}
        for name, data in files.items():
            cls.path[name] = str(pathlib.Path(folder.name) / f"{name}.gguf")
            pathlib.Path(cls.path[name]).write_bytes(data)

    def test_text_changes_with_the_scale(self):
        path, plain = self.path, self.out(*RUN)
        styled = self.out(*RUN, "--lora", path["style"])
        self.assertNotEqual(styled, plain)
        self.assertEqual(self.out(*RUN, "--lora-scaled", path["style"] + ":1"), styled)
        self.assertEqual(self.out(*RUN, "--lora-scaled", path["style"] + ":0"), plain)
        self.assertEqual(self.out(*RUN, "--lora", path["nothing"]), plain)
        both = self.out(*RUN, "--lora", f"{path['style']},{path['other']}")
        self.assertEqual(self.out(*RUN, "--lora", path["other"], "--lora", path["style"]), both)
        self.assertNotEqual(self.out(*RUN, "--control-vector-scaled", path["vector"] + ":5"), plain)
        late = self.out(*RUN, "--control-vector-scaled", path["late"] + ":5")
        self.assertEqual(self.out(*RUN, "--control-vector-scaled", path["vector"] + ":5", "--control-vector-layer-range", 2, 2),
                         late)

    def test_refused(self):
        path = self.path
        for args, code, words in ((["--lora", "no.gguf"], 1, "no.gguf"), (["--lora", str(MODEL)], 1, "no adapter"),
                                  (["--lora-scaled", path["style"]], 2, "takes FILE:SCALE"),
                                  (["--lora-scaled", path["style"] + ":nan"], 2, "takes FILE:SCALE"),
                                  (["--lora", path["style"], "--lora", path["style"]], 1, "are the same"),
                                  (["--lora", path["vector"]], 1, "this is a control vector"),
                                  (["--control-vector", path["style"]], 1, "this is a LoRA"),
                                  (["--control-vector", path["vector"], "--control-vector-layer-range", 1, 99], 1, "a range from 1")):
            self.assertIn(words, self.error(code, *RUN, *args))

    def test_info_and_verify(self):
        told = json.loads(self.out("info", "-m", self.path["style"], "--json"))["adapter"]
        self.assertEqual((told["kind"], told["architecture"], told["matrices"], told["most_rank"], told["alpha"]),
                         ("lora", "llama", 3, 4, 8))
        self.assertIn("a LoRA for llama, rank 4, alpha 8, of 3 matrices", self.out("info", "-m", self.path["style"]))
        self.assertIn("a control vector for llama, with directions for 2 layers", self.out("info", "-m", self.path["vector"]))
        for name in ("style", "vector", "nothing"):
            self.assertIn("the file is sound", self.out("verify", "-m", self.path[name]))
        half = GgufFile(pathlib.Path(self.path["style"]).read_bytes())
        half.tensors.pop()
        bad = self.path["style"] + ".half"
        pathlib.Path(bad).write_bytes(half.bytes())
        out, _ = self.run_cli("verify", "-m", bad, code=1)
        self.assertIn("blk.1.ffn_up.weight.lora_a has no partner blk.1.ffn_up.weight.lora_b", out)
        self.assertIn("has no partner", self.out("info", "-m", bad))


if __name__ == "__main__":
    main()
