"""greta-cli verify: sound files, and one thing broken in each of others."""
import hashlib
import json
import os
import pathlib
import struct
import tempfile

from gguf_file import GgufFile
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
        sum_of_file = hashlib.sha256(self.good).hexdigest()
        self.assertRegex(out, r"^.*: \d+ keys, \d+ tensors, \d\.\d+ MiB of weights\n"
                              rf"  sha256   {sum_of_file} .*\nthe file is sound\n$")
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
        found = self.verify(self.changed(tensor["offset_bytes"], bytes(tensor["size_bytes"] * 3 // 4)), 1)
        self.assertEqual(found[0][:3], ("wrong", "tensor", "blk.0.ffn_up.weight"))
        self.assertRegex(found[0][3], r"^\d+ of \d+ blocks are zeros, \d+ of them in a row$")

    def test_a_hole_over_several_tensors(self):
        at = min(self.tensor(f"blk.{layer}.ffn_up.weight")["offset_bytes"] for layer in (0, 1))
        found = self.verify(self.changed(at, bytes(1 << 20)), 1)
        self.assertGreater(len([f for f in found if f[0] == "wrong" and "zeros" in f[3]]), 1, found)

    def test_tokens_without_weights_are_odd(self):
        tensor = self.tensor("token_embd.weight")
        found = self.verify(self.changed(tensor["offset_bytes"], bytes(tensor["size_bytes"] * 3 // 4)), 0)
        self.assertEqual([f[:3] for f in found], [("odd", "tensor", "token_embd.weight")])

    def edited(self, edit, code=1):
        """What is found in the model after edit(GgufFile)."""
        model = GgufFile(self.good)
        edit(model)
        return self.verify(model.bytes(), code)

    def refused(self, edit, words):
        found = self.edited(edit)
        self.assertEqual(found[0][:2], ("refused", "file"), found)
        self.assertIn(words, found[0][3])

    def test_the_editor_changes_nothing_else(self):
        self.assertEqual(self.edited(lambda model: None, 0), [])

    def test_a_missing_tensor(self):
        for name in ("blk.1.attn_q.weight", "output_norm.weight", "token_embd.weight"):
            self.refused(lambda m: m.tensors.remove(m[name]), name)

    def test_a_transposed_matrix(self):
        self.refused(lambda m: m["blk.0.ffn_down.weight"].shape.reverse(), "blk.0.ffn_down.weight")

    def test_a_wrong_width(self):
        self.refused(lambda m: m.set_u32("llama.embedding_length", 64), "embedding_length")
        self.refused(lambda m: m.set_u32("llama.attention.head_count", 3), "head")

    def test_one_layer_too_many_or_too_few(self):
        layers = len([name for name in self.names() if name.endswith("attn_norm.weight")])
        self.refused(lambda m: m.set_u32("llama.block_count", layers + 1), f"blk.{layers}.")
        found = self.edited(lambda m: m.set_u32("llama.block_count", layers - 1))
        self.assertEqual({f[0] for f in found}, {"refused"})

    def names(self):
        return [tensor.name for tensor in GgufFile(self.good).tensors]

    def test_metadata_of_the_wrong_kind(self):
        for key, text in (("llama.block_count", "six"), ("llama.rope.freq_base", "many"),
                          ("tokenizer.ggml.tokens", "none")):
            found = self.edited(lambda m: m.set_text(key, text))
            self.assertEqual(found[0][0], "refused", (key, found))

    def test_templates_that_fail_when_they_run(self):
        for template, words in (
                ("{% for m in messages %}{{ m.content.nothing() }}{% endfor %}", ""),
                ("{{ raise_exception('not with you') }}", "not with you"),
                ("{% for i in range(100000000) %}{% for j in range(100000000) %}x{% endfor %}{% endfor %}", "")):
            found = self.edited(lambda m: m.set_text("tokenizer.chat_template", template))
            self.assertEqual([f[:2] for f in found], [("wrong", "template")], (template, found))
            self.assertIn(words, found[0][3])

    def test_a_norm_of_huge_numbers(self):
        def edit(model):
            gain = model["blk.1.attn_norm.weight"]
            gain.data = struct.pack("<f", 1e20) + gain.data[4:]
        found = self.edited(edit)
        self.assertEqual([f[:3] for f in found], [("wrong", "tensor", "blk.1.attn_norm.weight")])
        self.assertIn("1e+20", found[0][3])

    def test_a_norm_of_zeros(self):
        def edit(model):
            model["blk.1.attn_norm.weight"].data = bytes(len(model["blk.1.attn_norm.weight"].data))
        self.assertEqual([f[:3] for f in self.edited(edit)], [("wrong", "tensor", "blk.1.attn_norm.weight")])

    def parts(self, edit=lambda parts: None):
        """The model in two files, of which edit([first, second]) may change something; their paths."""
        parts = [GgufFile(self.good), GgufFile(self.good)]
        half = len(parts[0].tensors) // 2
        parts[0].tensors, parts[1].tensors = parts[0].tensors[:half], parts[1].tensors[half:]
        parts[1].values = {}
        for number, part in enumerate(parts):
            part.set_u16("split.no", number)
            part.set_u16("split.count", 2)
            part.values["split.tensors.count"] = (5, struct.pack("<i", len(self.names())))
        edit(parts)
        paths = [self.path.parent / f"model-{number:05}-of-00002.gguf" for number in (1, 2)]
        for path, part in zip(paths, parts):
            path.write_bytes(part.bytes())
        return paths

    def test_a_split_model(self):
        paths = self.parts()
        told = json.loads(self.out("verify", "-m", paths[1], "--json"))
        self.assertEqual(told["findings"], [])
        self.assertEqual([(each["path"], each["sha256"]) for each in told["files"]],
                         [(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths])

    def test_a_part_of_another_model(self):
        paths = self.parts(lambda parts: parts[1].set_text("general.name", "another"))
        told = json.loads(self.run_cli("verify", "-m", str(paths[0]), "--json", code=1)[0])
        self.assertEqual(told["findings"][0]["severity"], "refused")
        self.assertIn("a part of another model", told["findings"][0]["text"])
        same = self.parts(lambda parts: parts[1].values.update(
            {"general.architecture": parts[0].values["general.architecture"]}))
        self.out("verify", "-m", same[0])

    def test_a_missing_part(self):
        paths = self.parts()
        paths[1].unlink()
        told = json.loads(self.run_cli("verify", "-m", str(paths[0]), "--json", code=1)[0])
        self.assertEqual(len(told["files"]), 1)
        self.assertIn("part 2 of 2", told["findings"][0]["text"])

    def test_a_pipe_is_not_waited_for(self):
        pipe = self.path.parent / "pipe.gguf"
        os.mkfifo(pipe)
        self.assertIn("no regular file", self.error(1, "verify", "-m", str(pipe)))

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
