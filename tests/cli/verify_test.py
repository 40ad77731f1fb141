"""greta-cli verify: sound files, and one thing broken in each of others."""
import json
import pathlib
import struct
import tempfile

from support import MODEL, CliTest, main, vocabulary_gguf


class Verify(CliTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name) / "changed.gguf"
        cls.good = MODEL.read_bytes()

    def verify(self, data, code):
        self.path.write_bytes(data)
        told = json.loads(self.run_cli("verify", "-m", str(self.path), "--json", code=code)[0])
        self.assertEqual(told["sound"], code == 0)
        return [tuple(finding[key] for key in ("severity", "kind", "name", "text")) for finding in told["findings"]]

    def changed(self, at, new):
        return self.good[:at] + new + self.good[at + len(new):]

    def tensor(self, name):
        tensors = json.loads(self.out("info", "-m", str(MODEL), "--json"))["tensors"]
        return next(tensor for tensor in tensors if tensor["name"] == name)

    def test_a_sound_file(self):
        out, err = self.run_cli("verify", "-m", str(MODEL))
        self.assertRegex(out, r"^.*: \d+ keys, \d+ tensors, \d\.\d+ MiB of weights\nthe file is sound\n$")
        self.assertEqual(err, "")
        self.assertEqual(self.verify(self.good, 0), [])

    def test_a_scale_that_is_no_number(self):
        tensor = self.tensor("blk.0.ffn_up.weight")
        self.assertEqual(tensor["type"], "q4_k")
        for bits in (0x7E00, 0x7C00, 0xFC00):
            found = self.verify(self.changed(tensor["offset_bytes"] + 2 * 144, struct.pack("<H", bits)), 1)
            self.assertEqual(len(found), 1, found)
            self.assertEqual(found[0][:3], ("wrong", "tensor", "blk.0.ffn_up.weight"))
            self.assertRegex(found[0][3], r"^1 of \d+ blocks are NaN or infinite, the first is number 2$")

    def test_a_weight_that_is_no_number(self):
        tensor = self.tensor("blk.1.attn_norm.weight")
        self.assertEqual(tensor["type"], "f32")
        found = self.verify(self.changed(tensor["offset_bytes"] + 4 * 5, struct.pack("<f", float("nan"))), 1)
        self.assertRegex(found[0][3], r"^1 of \d+ weights are NaN or infinite, the first is number 5$")
        self.assertIn("the file is broken", self.run_cli("verify", "-m", str(self.path), code=1)[0])

    def test_a_hole(self):
        tensor = self.tensor("blk.0.ffn_up.weight")
        found = self.verify(self.changed(tensor["offset_bytes"], bytes(tensor["size_bytes"] * 3 // 4)), 0)
        self.assertEqual(found[0][:3], ("odd", "tensor", "blk.0.ffn_up.weight"))
        self.assertRegex(found[0][3], r"^\d+ of \d+ blocks are zeros$")

    def test_what_is_refused_when_it_is_opened(self):
        first, second = b"blk.0.attn_q.weight", b"blk.0.attn_k.weight"
        self.assertEqual(self.good.count(second), 1)
        for data, words in ((self.good[:-5000], "truncated"), (b"GGUX" + self.good[4:], "not a GGUF file"),
                            (self.good.replace(second, first), "two of this name"), (b"", "empty")):
            found = self.verify(data, 1)
            self.assertEqual([f[:2] for f in found], [("refused", "file")])
            self.assertIn(words, found[0][3])

    def test_data_of_two_tensors(self):
        at = self.good.index(b"blk.0.attn_k.weight") + 19 + 4 + 16 + 4  # its name, dimensions and type
        offset, = struct.unpack_from("<Q", self.good, at)
        found = self.verify(self.changed(at, struct.pack("<Q", offset - 32)), 1)
        self.assertIn("overlaps", found[0][3])

    def test_what_no_model_would_use(self):
        found = self.verify(self.good.replace(b"blk.0.attn_k.weight", b"blk.0.attn_x.weight"), 1)
        self.assertEqual({f[:2] for f in found} & {("refused", "file"), ("refused", "tensor")}, {found[0][:2]})

    def test_odd_metadata_and_bytes_at_the_end(self):
        key = b"general.license"
        self.assertEqual(self.good.count(key), 1)
        found = self.verify(self.good.replace(key, b"general License"[:len(key)]) + bytes(64), 0)
        self.assertEqual(sorted(f[:3] for f in found)[0], ("odd", "key", "general License"))
        self.assertTrue(any(f[3] == "64 bytes behind it belong to nothing" for f in found), found)

    def test_a_vocabulary_alone_is_refused(self):
        found = self.verify(vocabulary_gguf(["a"]), 1)
        self.assertEqual(found[0][:2], ("refused", "file"))
        self.assertIn("the file is refused", self.run_cli("verify", "-m", str(self.path), code=1)[0])

    def test_no_file(self):
        self.assertIn("no-such-file", self.error(1, "verify", "-m", "no-such-file.gguf"))


if __name__ == "__main__":
    main()
