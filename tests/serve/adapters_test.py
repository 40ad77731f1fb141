"""Adapters of the server: /lora-adapters, the field `lora`, and pages of the cache that belong to them."""
import pathlib
import sys
import tempfile

from server import MODEL, ROOT, ServerTest, main

sys.path.insert(0, str(ROOT / "tests" / "cli"))
from adapter_file import lora  # noqa: E402

NAMES = ["blk.0.attn_q.weight", "blk.0.ffn_down.weight", "blk.1.ffn_up.weight"]
STORY = "Once upon a time there was a little fox who lived in a wood. " * 12


class Adapters(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.paths = []
        for seed in (1, 7):
            cls.paths.append(str(pathlib.Path(cls.folder.name, f"{seed}.gguf")))
            pathlib.Path(cls.paths[-1]).write_bytes(lora(pathlib.Path(MODEL).read_bytes(), NAMES, seed=seed))
        cls.ARGS = ("--lora", cls.paths[0], "--lora-scaled", cls.paths[1] + ":0", "--parallel", 2)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def text(self, **more):
        return self.server.post("/completion", {"prompt": STORY, "n_predict": 12, "temperature": 0, **more})

    def set(self, scales, status=200):
        got, answer, _ = self.server.ask("POST", "/lora-adapters", scales)
        self.assertEqual(got, status, answer)
        return answer

    def listed(self):
        return [(one["id"], one["path"], one["scale"]) for one in self.server.ask("GET", "/lora-adapters")[1]]

    def test_scales(self):
        self.assertEqual(self.listed(), [(0, self.paths[0], 1), (1, self.paths[1], 0)])
        first = self.text()["content"]
        plain = self.text(lora=[])
        second = self.text(lora=[{"id": 1, "scale": 1.0}])["content"]
        self.assertEqual(len({first, plain["content"], second}), 3)
        self.assertEqual(plain["timings"]["cache_n"], 0)
        again = self.text(lora=[{"id": 0, "scale": 0}])
        self.assertEqual(again["content"], plain["content"])
        self.assertGreaterEqual(again["timings"]["cache_n"], 128)
        self.assertEqual(self.set([{"id": 1, "scale": 1.0}]), {"success": True})
        self.assertEqual([one[2] for one in self.listed()], [0, 1])
        self.assertEqual(self.text()["content"], second)
        self.set([{"id": 0, "scale": 1}])
        self.assertEqual(self.text()["content"], first)

    def test_refused(self):
        before = self.listed()
        for scales in ([{"id": 2, "scale": 1}], [{"id": 0}], [{"id": 0, "scale": 1e9}], [{"id": -1, "scale": 1}], [1],
                       [{"id": 0, "scale": 1}, {"id": 0, "scale": 1}], {"id": 0, "scale": 1}):
            self.set(scales, 400)
            self.refused(400, "lora", "POST", "/completion", {"prompt": "A", "n_predict": 1, "lora": scales})
        self.assertEqual(self.listed(), before)


if __name__ == "__main__":
    main()
