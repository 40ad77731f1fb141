"""What goes wrong is said before it does: a context that is too long or full, too little memory, no template."""
import json
import math
import re
import struct

from sampling_test import Folder, model_with
from support import MODEL, main, start, vocabulary_gguf

SHORT = ["-n", "4", "--temp", "0"]
STORY = ["-p", "Once upon a time there was a beaver", "--temp", "0", "--ignore-eos"]


def model_without(key, data):
    """The file with the name of a key made unknown, of the same length."""
    name = key.encode()
    assert data.count(struct.pack("<Q", len(name)) + name) == 1
    return data.replace(name, b"x" * len(name))


def write_sparse(path, data, tensors):
    """Adds float32 tensors (name, shape) to a file's own. They are zeros that take no room on the disk."""
    (count,) = struct.unpack_from("<Q", data, 8)
    at = end_of_header(data)
    values = data[-(-at // 32) * 32:]
    offset = -(-len(values) // 32) * 32
    head = data[:8] + struct.pack("<Q", count + len(tensors)) + data[16:at]
    for name, shape in tensors:
        raw = name.encode()
        head += struct.pack("<Q", len(raw)) + raw
        head += struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)
        offset += -(-4 * math.prod(shape) // 32) * 32
    head += b"\0" * (-len(head) % 32)
    with open(path, "wb") as file:
        file.write(head + values)
        file.truncate(len(head) + offset)


def write_large_model(path, size):
    """A llama of about `size` bytes, all of them zero, with layers of 0.94 GB."""
    width, ffn, layers = 4096, 16384, -(-size // 939_524_096)
    entries = {"context_length": 64, "embedding_length": width, "block_count": layers, "feed_forward_length": ffn,
               "attention.head_count": 32, "attention.head_count_kv": 8, "attention.layer_norm_rms_epsilon": 1e-5}
    data = model_with({"llama." + key: value for key, value in entries.items()}, vocabulary_gguf([]))
    layer = {"attn_norm": [width], "attn_q": [width, width], "attn_k": [width, 1024], "attn_v": [width, 1024],
             "attn_output": [width, width], "ffn_norm": [width], "ffn_gate": [width, ffn], "ffn_up": [width, ffn],
             "ffn_down": [ffn, width]}
    tensors = [(f"blk.{i}.{name}.weight", shape) for i in range(layers) for name, shape in layer.items()]
    write_sparse(path, data, [("token_embd.weight", [width, 259]), ("output_norm.weight", [width]), *tensors])


def end_of_header(data):
    """Where the list of tensors ends."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def text(at):
        return at + 8 + struct.unpack_from("<Q", data, at)[0]

    def value(at, kind):
        if kind == 8:
            return text(at)
        if kind != 9:
            return at + sizes[kind]
        of, count = struct.unpack_from("<IQ", data, at)
        at += 12
        for _ in range(count):
            at = value(at, of)
        return at

    tensors, entries = struct.unpack_from("<QQ", data, 8)
    at = 24
    for _ in range(entries):
        at = text(at)
        at = value(at + 4, struct.unpack_from("<I", data, at)[0])
    for _ in range(tensors):
        at = text(at)
        at += 4 + 8 * struct.unpack_from("<I", data, at)[0] + 12
    return at


class Context(Folder):
    def trained(self):
        return int(re.search(r"context_length +\S+ +(\d+)", self.out("info")).group(1))

    def test_longer_than_the_model_was_trained_for(self):
        trained = self.trained()
        said = f"-c {trained + 1} is more than the {trained} tokens that the model was trained for"
        for command in ("run", "chat"):
            _, err = self.run_cli(command, "-p", "Hi", *SHORT, "-c", str(trained + 1))
            self.assertEqual(err.count(said), 1)
            self.assertNotIn("trained for", self.run_cli(command, "-p", "Hi", *SHORT, "-c", str(trained))[1])
        self.assertEqual(self.run_cli("run", "-q", "-p", "Hi", *SHORT, "-c", str(trained + 1))[1], "")

    def test_run_ends_or_goes_on(self):
        out, err = self.run_cli("run", *STORY, "-c", "64", "-n", "150")
        self.assertIn("the context of 64 tokens is full: -c sets another length, and --context-shift forgets", err)
        more, err = self.run_cli("run", *STORY, "-c", "64", "-n", "150", "--context-shift", "--keep", "4")
        self.assertTrue(more.startswith(out.rstrip("\n")), more)
        self.assertGreater(len(more), 2 * len(out))
        self.assertRegex(err, r"the context of 64 tokens was full: \d+ tokens were forgotten")
        again = self.out("run", *STORY, "-c", "64", "-n", "150", "--context-shift", "--no-context-shift")
        self.assertEqual(again, out)
        self.assertIn("is full", self.run_cli("run", *STORY, "-c", "16", "-n", "20", "--context-shift", "--keep", "99")[1])
        self.assertIn("--keep takes a whole number", self.error(2, "run", *STORY, "--keep", "-2"))

    def test_the_oldest_turns_leave_a_conversation(self):
        terminal = self.terminal("chat", "-c", "256", "--temp", "0", "-n", "60", "--ignore-eos", "-sys", "Be brief.",
                                 state=self.folder)
        terminal.wait_for(r"Ctrl-D leaves\s+> ")
        said = ""
        for number in range(6):
            terminal.send(f"Question {number}: tell me a story.\r".encode())
            said += terminal.wait_for(r"(?s)story\.\s+\S.+\n> ")
        self.assertEqual(said.count("no longer reads the oldest turns"), 1)  # said once
        path = self.folder / "saved.json"
        terminal.send(f"/save {path}\r".encode())
        terminal.wait_for(r"(?s)13 messages in.*\n> ")  # all of them are still there; the key comes behind the prompt
        self.assertEqual(json.loads(path.read_text())[0]["content"], "Be brief.")
        terminal.send(b"\x04")
        self.assertEqual(terminal.exit_code(), 0)

    def test_no_turn_leaves_without_shifts(self):
        questions = [{"role": role, "content": "word " * 40} for role in ("user", "assistant") * 3]
        saved = self.file("saved.json", json.dumps(questions))
        for flag, answered in (("--no-context-shift", False), ("--context-shift", True)):
            terminal = self.terminal("chat", "-c", "256", *SHORT, flag, state=self.folder)
            terminal.wait_for(r"Ctrl-D leaves\s+> ")
            terminal.send(f"/load {saved}\r".encode())
            terminal.wait_for(r"6 messages from[^\n]*\s+> ")
            terminal.send(b"And then?\r")
            terminal.wait_for(r"oldest turns[^\n]*\s+> " if answered else r"room for 256[^\n]*\s+> ")
            terminal.send(b"\x04")
            self.assertEqual(terminal.exit_code(), 0)


class Order(Folder):
    def test_notes_come_behind_an_error(self):
        """Also where the model was opened before: what is wrong is the first line."""
        for args, wrong in ((["run", "--grammar", "root :="], "expected ::="), (["chat", "--tools", "no/such"], "no/such: "),
                            (["chat", "--chat-template", "no-such"], "no chat template"),
                            (["run", "--prompt-cache", str(self.file("cache", "damaged"))], "cache")):
            err = self.run_cli(*args, "-p", "x", *SHORT, code=1)[1].splitlines()
            self.assertIn(wrong, err[0], err)
            self.assertIn("bundled model", err[1], err)


class Memory(Folder):
    def setUp(self):
        super().setUp()
        plan = json.loads(self.out("info", "--json", "--device", "cpu"))["memory_plan"]
        self.assertTrue(plan["mapped_fits"])
        self.size = 2 * plan["free_bytes"]
        self.path = self.folder / "large.gguf"

    def test_info(self):
        write_large_model(self.path, self.size)
        text = self.out("info", "-m", self.path, "--device", "cpu")
        self.assertRegex(text, r"fits, but the weights are read from the disk again and again")
        plan = json.loads(self.out("info", "-m", self.path, "--device", "cpu", "--json"))["memory_plan"]
        self.assertTrue(plan["fits"])
        self.assertFalse(plan["mapped_fits"])

    def test_run(self):
        """It is said before the prompt is read, which nobody waits for here."""
        write_large_model(self.path, self.size)
        running = start("run", "-m", self.path, "--device", "cpu", "-c", "64", "-p", "Hi", *SHORT)
        lines = []
        for line in running.stderr:
            lines.append(line.decode())
            if "weights" in lines[-1]:
                break
        running.kill()
        running.communicate()
        self.assertRegex(lines[-1], r"the weights take \S+ GiB and \S+ GiB of memory are free: .* \(take a smaller")
        self.assertNotIn("are free", self.run_cli("run", "--device", "cpu", "-c", "64", "-p", "Hi", *SHORT)[1])


class Template(Folder):
    def test_a_model_that_has_none(self):
        data = model_without("tokenizer.chat_template", MODEL.read_bytes())
        path = self.file("plain.gguf", data)
        _, err = self.run_cli("chat", "-m", str(path), "-p", "Hi", *SHORT)
        self.assertEqual(err.count("no chat template"), 1, err)
        self.assertNotIn("no chat template", self.run_cli("chat", "-m", str(MODEL), "-p", "Hi", *SHORT)[1])


if __name__ == "__main__":
    main()
