"""Results of the commands: texts, tokens, numbers, JSON and arrays, checked against each other."""
import csv
import io
import json
import math
import os
import pathlib
import tempfile

from support import MODEL, CliTest, letters_gguf, main, read_npy, vocabulary_gguf

GREEDY = ["--temp", "0", "-c", "256"]
EACH_BYTE = b"".join(bytes([byte, 10]) for byte in range(256)) + bytes(range(256))  # alone, then all in a row
STORY = "Once upon a time there was a little beaver who lived by the river. "


class Folder(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path


def models(*folders):
    """The bundled model, and those in these folders of the test data (or its models), where there is any."""
    data = os.environ.get("GRETA_TEST_DATA")
    paths = [path for folder in folders or ["models"] for path in sorted(pathlib.Path(data, folder).glob("*.gguf"))] \
        if data else []
    return [MODEL, *paths]


class Run(Folder):
    def test_the_same_text_from_every_source(self):
        prompt = "Once upon a time"
        given = self.out("run", "-p", prompt, "-n", 12, *GREEDY)
        self.assertTrue(given.startswith(prompt) and given.endswith("\n"))
        self.assertEqual(given, self.out("run", "-f", self.file("p", prompt + "\n"), "-n", 12, *GREEDY))
        self.assertEqual(given, self.out("run", "-n", 12, *GREEDY, stdin=prompt.encode() + b"\n"))
        alone = self.out("run", "-p", prompt, "-n", 12, "--no-display-prompt", *GREEDY)
        self.assertEqual(given, prompt + alone)

    def test_every_byte(self):
        path = self.file("bytes", EACH_BYTE)
        for model in models():
            _, err = self.run_cli("run", "-m", model, "-f", path, "-n", "1", "--temp", "0", "-c", "2048")
            self.assertNotIn("no token", err, model)

    def test_length(self):
        longer = self.out("run", "-p", "Once", "-n", 20, *GREEDY)
        shorter = self.out("run", "-p", "Once", "-n", 10, *GREEDY)
        self.assertTrue(longer.startswith(shorter.rstrip("\n")))
        self.assertEqual(self.out("run", "-p", "Once", "-n", 0, *GREEDY), "Once\n")

    def test_until_the_context_is_full(self):
        out, err = self.run_cli("run", "-p", "Once", "--ignore-eos", "--temp", "0", "-c", "40")
        self.assertIn("context of 40 tokens is full", err)

    def test_seeds(self):
        text = {seed: self.out("run", "-p", "Once", "-n", 40, "-c", 128, "-s", seed) for seed in (1, 2)}
        self.assertNotEqual(text[1], text[2])
        self.assertEqual(text[1], self.out("run", "-p", "Once", "-n", 40, "-c", 128, "--seed", 1, "-t", 1))

    def test_sampling_options_reach_the_chain(self):
        args = ["run", "-p", "Once", "-n", 24, "-c", 128, "-s", 3]
        greedy = self.out(*args, "--temp", 0)
        for narrow in (["--top-k", 1], ["--top-p", "1e-6"], ["--min-p", 1], ["--temp", "1e-4"]):
            self.assertEqual(self.out(*args, *narrow), greedy, narrow)
        self.assertNotEqual(self.out(*args, "--temp", 0, "--repeat-penalty", 5), greedy)
        self.assertEqual(self.out(*args, "--temp", 0, "--repeat-penalty", 5, "--repeat-last-n", 0), greedy)

    def test_escapes(self):
        out = self.out("run", "-e", "-p", r"a\n\x41\\n\q", "-n", 0, "-c", 64)
        self.assertEqual(out, "a\nA\\n\\q\n")
        self.assertEqual(self.out("run", "-p", r"a\n", "-n", 0, "-c", 64), "a\\n\n")

    def test_exact_and_cache_types(self):
        for more in (["--exact"], ["-ctk", "f32", "-ctv", "f32"], ["-dev", "cpu"], ["-b", 8], ["-ub", 3]):
            self.assertTrue(self.out("run", "-p", "Once", "-n", 4, *GREEDY, *more).startswith("Once"))


class Embed(Folder):
    def vectors(self, *args):
        out = self.out("embed", "-c", 256, "--embd-output-format", "array", *args)
        return json.loads(out)

    def test_a_vector_for_each_line(self):
        path = self.file("t", "The dog ran.\nA cat sat.\n")
        two = self.vectors("-f", path)
        self.assertEqual([len(vector) for vector in two], [len(two[0])] * 2)
        for vector, text in zip(two, ("The dog ran.", "A cat sat.")):
            self.assertAlmostEqual(sum(x * x for x in vector), 1, 5)
            self.assertEqual(self.vectors("-p", text), [vector])
        self.assertEqual(len(self.vectors("-f", path, "--embd-separator", "#")), 1)
        raw = self.vectors("-f", path, "--embd-normalize", -1)
        self.assertGreater(abs(sum(x * x for x in raw[0]) - 1), 0.01)
        self.assertEqual(self.vectors("-f", path, "--pooling", "mean"), two)
        self.assertNotEqual(self.vectors("-f", path, "--pooling", "last"), two)

    def test_forms(self):
        path = self.file("t", "The dog ran.\nA cat sat.")
        lines = self.out("embed", "-c", 256, "-f", path).splitlines()
        self.assertEqual([line.split(":")[0] for line in lines], ["embedding 0", "embedding 1"])
        whole = json.loads(self.out("embed", "-c", 256, "-f", path, "--embd-output-format", "json"))
        self.assertEqual([each["index"] for each in whole["data"]], [0, 1])
        for line, each, vector in zip(lines, whole["data"], self.vectors("-f", path)):
            self.assertEqual(each["embedding"], vector)
            self.assertEqual(line.split(":")[1].split(), ["%.6f" % x for x in vector])


class Tokenize(Folder):
    def test_every_byte(self):
        path = self.file("bytes", EACH_BYTE)
        for model in models("vocab", "models"):
            out, err = self.run_cli("tokenize", "-m", model, "-f", path, "--ids")
            self.assertGreater(len(out.split()), 256, model)
            self.assertNotIn("no token", err, model)

    def test_what_has_no_token_is_left_out_and_said_once(self):
        path = self.file("letters.gguf", letters_gguf("ab", "falcon"))
        out, err = self.run_cli("tokenize", "-m", path, "-f", self.file("bytes", EACH_BYTE), "--ids")
        self.assertEqual(out, "1 2 1 2\n")
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertIn("the vocabulary has no token for", err)
        out, err = self.run_cli("tokenize", "-m", path, "-p", "abba", "--ids")
        self.assertEqual((out, err), ("1 2 2 1\n", ""))

    def ids(self, *args, **kwargs):
        return [int(word) for word in self.out("tokenize", "--ids", *args, **kwargs).split()]

    def test_forms(self):
        ids = self.ids("-p", STORY)
        self.assertEqual(self.ids("-f", self.file("t", STORY)), ids)
        self.assertEqual(self.ids(stdin=STORY.encode()), ids)
        self.assertEqual(self.ids("-p", STORY, "--no-bos"), ids[1:])
        lines = self.out("tokenize", "-p", STORY).splitlines()
        self.assertEqual([int(line.split()[0]) for line in lines], ids)
        self.assertTrue(all(line.rstrip().endswith('"') for line in lines))

    def test_special_tokens(self):
        parsed = self.ids("-p", "<|user|>", "--no-bos")
        plain = self.ids("-p", "<|user|>", "--no-bos", "--no-parse-special")
        self.assertEqual(len(parsed), 1)
        self.assertGreater(len(plain), 1)

    def test_pieces_are_printable(self):
        out = self.out("tokenize", "-p", "a\x1b[31m\x7f\u009b\n\u00e9")
        self.assertNotRegex(out, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        self.assertIn("\\x1b", out)

    def test_a_file_is_not_trimmed(self):
        self.assertEqual(self.ids("-f", self.file("t", "a\n")), self.ids("-e", "-p", r"a\n"))

    def test_a_vocabulary_alone(self):
        path = self.file("vocab.gguf", vocabulary_gguf(["\u2581", "a", "b", "ab", "\u2581ab"]))
        self.assertEqual(self.ids("-m", path, "-p", "ab ab"), [1, 263, 263])
        self.assertEqual(self.ids("-m", path, "-p", "", "--no-bos"), [])
        self.assertIn("vocab.gguf", self.error(1, "run", "-m", path, "-p", "ab", "-q"))


class Info(Folder):
    def test_text(self):
        out = self.out("info", "-m", MODEL)
        for word in ("version        3", "general.architecture", "token_embd.weight", "memory plan", "total"):
            self.assertIn(word, out)

    def test_of_an_unknown_architecture_the_nearest_one_and_what_differs_is_told(self):
        path = self.folder / "stranger.gguf"
        renamed = pathlib.Path(MODEL).read_bytes().replace(b"llama", b"lamma").replace(b"blk.0.ffn_norm", b"blk.0.ffn_nerm")
        path.write_bytes(renamed)
        out = self.out("info", "-v", "-m", path)
        self.assertIn('architecture "lamma" is not one of those this build runs; nearest by its tensors: ', out)
        self.assertRegex(out, r"differs        2\n"
                              r"  blk\.\*\.ffn_nerm\.weight +tensor   refused  the nearest known architecture has no use for it\n"
                              r"  blk\.\*\.ffn_norm\.weight +tensor   refused  the nearest known architecture needs it, and ")
        self.assertNotIn("differs ", self.out("info", "-m", path))

    def test_json(self):
        info = json.loads(self.out("info", "--json"))
        self.assertEqual(info["version"], 3)
        self.assertEqual(info["parts"], 1)
        self.assertEqual(info["size_bytes"], MODEL.stat().st_size)
        self.assertEqual(info["metadata"]["general.architecture"], {"type": "string", "value": "llama"})
        self.assertIn("{{ bos_token }}", info["metadata"]["tokenizer.chat_template"]["value"])
        self.assertTrue(info["metadata"]["tokenizer.ggml.tokens"]["value"].startswith("["))
        embedding = next(t for t in info["tensors"] if t["name"] == "token_embd.weight")
        self.assertEqual(embedding["shape"], [256, 4096])
        plan = info["memory_plan"]
        parts = [plan[name + "_bytes"] for name in ("weights", "cache", "arena", "tables")]
        self.assertEqual(plan["total_bytes"], sum(parts))
        self.assertEqual(plan["context"], 1024)
        self.assertTrue(plan["fits"])

    def test_options_change_the_plan(self):
        def plan(*args):
            return json.loads(self.out("info", "--json", *args))["memory_plan"]

        self.assertEqual(plan("-c", 0)["context"], 1024)
        small = plan("-c", 256)
        self.assertEqual(small["context"], 256)
        self.assertGreater(plan("-c", 256, "-ctk", "f32", "-ctv", "f32")["cache_bytes"], small["cache_bytes"])
        huge = plan("-c", 2_000_000_000)
        self.assertTrue(huge is None or not huge["fits"])

    def test_the_layer_that_drafts_tokens(self):
        head = pathlib.Path(__file__).parents[1] / "golden" / "heads" / "qwen35-head.gguf"

        def plan(*args):
            made = json.loads(self.out("info", "--json", "-m", head, "--device", "cpu", *args))["memory_plan"]
            del made["free_bytes"]  # changes by the moment
            return made

        without, counted = plan(), plan("--spec-type", "draft-mtp")
        self.assertEqual(without["draft_head_bytes"], 0)
        self.assertGreater(counted["draft_head_bytes"], 0)
        self.assertGreater(counted["total_bytes"], without["total_bytes"])
        self.assertIn("draft head", self.out("info", "-m", head, "--device", "cpu", "--spec-type", "draft-mtp"))
        self.assertEqual(plan("--spec-type", "ngram"), without)
        info = json.loads(self.out("info", "--json", "--device", "cpu", "--spec-type", "draft-mtp"))
        self.assertIn("nextn_predict_layers", info["memory_plan_problem"])
        self.assertIn("one model", self.error(2, "info", "-m", head, "-md", head))

    def test_without_a_plan(self):
        for architecture in ("llama", "no-such-thing"):
            path = self.file("v.gguf", vocabulary_gguf(["a"], architecture))
            info = json.loads(self.out("info", "--json", "-m", path))
            self.assertIsNone(info["memory_plan"])
            self.assertTrue(info["memory_plan_problem"])
            self.assertIn(info["memory_plan_problem"], self.out("info", "-m", path))


class Devices(CliTest):
    def test_both_forms(self):
        devices = json.loads(self.out("devices", "--json"))
        cpu = next(d for d in devices if d["id"] == "cpu")
        self.assertTrue(cpu["usable"])
        self.assertTrue(cpu["arch"].startswith("cpu"))
        text = self.out("devices")
        self.assertEqual(len(text.splitlines()), len(devices))
        self.assertIn(cpu["name"], text)
        self.assertGreater(cpu["memory_free_bytes"], 0)
        for device, line in zip(devices, text.splitlines()):
            on_cpu = device["id"] != "cpu" and device["cpu_type"]  # lavapipe
            self.assertEqual("auto never takes it" in line, bool(on_cpu and device["usable"]), line)
            if device["usable"]:
                self.assertEqual(" free" in line, device["memory_free_bytes"] is not None)

    def test_without_a_vulkan_driver(self):
        nowhere = {**os.environ, "VK_DRIVER_FILES": "/nonexistent.json", "VK_ICD_FILENAMES": "/nonexistent.json"}
        devices = json.loads(self.out("devices", "--json", env=nowhere))
        vulkan = [d for d in devices if d["id"] == "vulkan0"]
        if not vulkan:
            self.skipTest("this build has no Vulkan backend")
        self.assertFalse(vulkan[0]["usable"])
        self.assertRegex(vulkan[0]["reason"], "no Vulkan loader|no Vulkan driver|no device")
        line = self.error(1, "selftest", "--device", "vulkan0", env=nowhere)
        self.assertRegex(line, "device vulkan0: .*(no Vulkan loader|no Vulkan driver|no device)")
        _, err = self.run_cli("run", "-v", "-n", "1", "-p", "x", "-m", str(MODEL), env=nowhere)  # auto
        self.assertIn("cpu", err)


class Bench(CliTest):
    ARGS = ["bench", "-m", MODEL, "-p", "8,16", "-n", 4, "-d", "0,32", "-r", 2]
    TESTS = [(8, 0, 0), (16, 0, 0), (0, 4, 0), (8, 0, 32), (16, 0, 32), (0, 4, 32)]

    def check_row(self, row):
        self.assertEqual(len(row["samples_ts"]), 2)
        self.assertAlmostEqual(row["avg_ts"], sum(row["samples_ts"]) / 2, delta=1e-6 * row["avg_ts"])
        tokens = row["n_prompt"] + row["n_gen"]
        for ns, speed in zip(row["samples_ns"], row["samples_ts"]):
            self.assertAlmostEqual(speed, 1e9 * tokens / ns, delta=1e-6 * speed)
        for key in ("model_filename", "model_type", "model_size", "model_n_params", "n_threads", "type_k",
                    "type_v", "avg_ns", "stddev_ns", "stddev_ts", "median_ts", "test_time", "gb_s",
                    "bandwidth_percent", "build_commit"):
            self.assertIn(key, row)
        self.assertEqual(row["gb_s"] is None, row["n_gen"] == 0)
        self.assertRegex(row["model_identity"], "^[0-9a-f]{16}$")

    def test_json(self):
        rows = json.loads(self.out(*self.ARGS, "-o", "json"))
        self.assertEqual([(r["n_prompt"], r["n_gen"], r["n_depth"]) for r in rows], self.TESTS)
        for row in rows:
            self.check_row(row)

    def test_jsonl(self):
        lines = self.out("bench", "-p", 8, "-n", 0, "-r", 2, "-t", "1,2", "-o", "jsonl").splitlines()
        rows = [json.loads(line) for line in lines]
        self.assertEqual([row["n_threads"] for row in rows], [1, 2])
        for row in rows:
            self.check_row(row)

    def test_streams(self):
        args = ["bench", "-m", MODEL, "-r", 1, "-o", "jsonl"]
        rows = [json.loads(line) for line in self.out(*args, "-np", "1,3", "-p", 8, "-n", 12).splitlines()]
        self.assertEqual([row["test"] for row in rows], ["pp8+tg12 x1", "pp8+tg12 x3"])
        rows += map(json.loads, self.out(*args, "-np", 2, "--mix", "-p", 200, "-n", 40).splitlines())
        self.assertEqual(rows[-1]["test"], "pp200 beside x2")
        self.assertGreater(rows[-1]["prompt_alone_ts"], 0)
        for row in rows:
            self.assertGreater(row["prompt_ts"], 0)
            self.assertLessEqual(row["gap_p50_ms"], row["gap_p99_ms"])
            self.assertLessEqual(row["first_p50_ms"], row["first_p99_ms"])
        self.assertIn("| pp8+tg4 x2 |", self.out("bench", "-m", MODEL, "-r", 1, "-np", 2, "-p", 8, "-n", 4).replace("  ", ""))
        self.error(2, "bench", "-np", 2, "-d", 8)
        self.error(2, "bench", "--mix")

    def check_stages(self, row, tokens):
        self.assertEqual(row["profile_tokens"], tokens)
        names = [stage["stage"] for stage in row["stages"]]
        self.assertEqual(names, ["embed", "q k v", "attention", "o", "gate up", "down", "head", "sample"])
        for stage in row["stages"]:
            for key in ("launches", "ns", "bytes", "flops"):
                self.assertEqual(stage[key], sum(kernel[key] for kernel in stage["kernels"]))
            self.assertAlmostEqual(stage["gb_s"], stage["bytes"] / stage["ns"], delta=1e-6 * stage["gb_s"])
            percent = 100 * stage["gb_s"] / row["bandwidth_gb_s"]
            self.assertAlmostEqual(stage["bandwidth_percent"], percent, delta=1e-6 * percent)
            for work in (stage, *stage["kernels"]):
                of_bandwidth = 100 * work["gb_s"] / row["bandwidth_gb_s"]
                of_arithmetic = 100 * work["tflop_s"] / row["arithmetic_tflop_s"]
                self.assertEqual(work["bound"], "arithmetic" if of_arithmetic > of_bandwidth else "bandwidth")
                roof = max(of_bandwidth, of_arithmetic)
                self.assertAlmostEqual(work["roof_percent"], roof, delta=1e-6 * roof)
        read = {stage["stage"]: stage["bytes"] for stage in row["stages"]}
        self.assertGreater(read["gate up"], read["o"])

    def test_profile_as_json(self):
        args = ["bench", "-m", MODEL, "-p", 600, "-n", 2, "-r", 1, "-b", 64, "--profile"]
        for prompt, decode in (json.loads(self.out(*args, "--json")),
                               [json.loads(line) for line in self.out(*args, "-o", "jsonl").splitlines()]):
            self.check_stages(prompt, 64)
            self.check_stages(decode, 1)
            self.assertGreater(prompt["stages"][4]["flops"], 63 * decode["stages"][4]["flops"])

    def test_profile_as_text(self):
        args = ["bench", "-m", MODEL, "-p", 8, "-n", 0, "-r", 1, "--profile"]
        lines = self.out(*args).splitlines()
        head = next(line for line in lines if line.startswith("Measured roofs: "))
        self.assertRegex(head, r"^Measured roofs: \d+\.\d GB/s, \d+\.\d{3} TFLOP/s; .* Tokens in the step: 8\.$")
        table = [line for line in lines[lines.index(head):] if line.startswith("|")]
        self.assertLessEqual(max(map(len, table)), 100)
        columns = [cell.strip() for cell in table[0].split("|")[1:-1]]
        self.assertEqual(columns, ["stage and its kernels", "runs", "us", "% time", "GB/s", "TFLOP/s", "% of roof"])
        rows = [[cell[1:].rstrip() for cell in line.split("|")[1:-1]] for line in table[2:]]
        stages = [row for row in rows if not row[0].startswith(" ")]
        self.assertEqual([row[0] for row in stages[-3:]], ["sample", "total", "step of the test"])
        self.assertEqual(rows[1][0][:8], "  embed_")
        time = [float(row[2]) for row in stages[:-2]]
        self.assertAlmostEqual(float(stages[-2][2]), sum(time), delta=0.1 * len(time))
        for row in rows:  # one of the two bounds
            self.assertEqual(row[4].endswith("*") + row[5].endswith("*"), 1, row)
        self.assertIn("use -o json", self.error(2, *args, "-o", "csv"))

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.out(*self.ARGS, "-o", "csv"))))
        self.assertEqual([(int(r["n_prompt"]), int(r["n_gen"]), int(r["n_depth"])) for r in rows], self.TESTS)

    def test_markdown(self):
        lines = self.out(*self.ARGS).splitlines()
        self.assertTrue(all(line.startswith("|") and line.endswith("|") for line in lines))
        self.assertEqual(len({line.count("|") for line in lines}), 1)
        for line, name in zip(lines[2:], ("pp8", "pp16", "tg4", "pp8 @ d32", "pp16 @ d32", "tg4 @ d32")):
            self.assertIn(f" {name} |", line)
            self.assertRegex(line, r"\d+\.\d\d ± \d+\.\d\d")


class Logits(Folder):
    def logits(self, ids, *args):
        path = self.folder / "out.npy"
        self.out("logits", "-m", MODEL, "--ids", " ".join(map(str, ids)), "-o", path, *args)
        return read_npy(path)

    def test_the_last_row_gives_the_next_token(self):
        ids = [int(word) for word in self.out("tokenize", "--ids", "-p", STORY).split()]
        shape, values = self.logits(ids)
        self.assertEqual(shape, (len(ids), 4096))
        self.assertEqual(len(values), len(ids) * 4096)
        last = values[-4096:]
        best = last.index(max(last))
        drawn = self.out("run", "-p", STORY, "-n", 1, "--no-display-prompt", *GREEDY).rstrip("\n")
        piece = self.out("tokenize", "--ids", "--no-bos", "-p", drawn).split()
        self.assertEqual(piece, [str(best)])

    def test_commas_and_size(self):
        ids = [int(word) for word in self.out("tokenize", "--ids", "-p", STORY * 40).split()]
        self.assertGreater(len(ids), 512)  # more than is evaluated at once
        shape, _ = self.logits(ids)
        self.assertEqual(shape, (len(ids), 4096))
        self.assertEqual(self.logits(["5,6,", "7"])[0], (3, 4096))


class Ppl(Folder):
    def surprises(self, ids, size):
        """-log p of the predicted tokens of one window, from the logits of its tokens."""
        path = self.folder / "window.npy"
        given = " ".join(map(str, ids))
        self.out("logits", "--ids", given, "-o", path, "-ctk", "f32", "-ctv", "f32", "--exact")
        _, values = read_npy(path)
        result = []
        for t in range(size // 2, size - 1):
            row = values[t * 4096: (t + 1) * 4096]
            highest = max(row)
            total = sum(math.exp(value - highest) for value in row)
            result.append(highest + math.log(total) - row[ids[t + 1]])
        return result

    def test_against_the_definition(self):
        size, text = 32, self.file("text", STORY * 12)
        args = ["ppl", "-f", text, "-c", size, "--chunks", 3, "-ctk", "f32", "-ctv", "f32", "--exact"]
        ids = [int(w) for w in self.out("tokenize", "--ids", "-f", text, "--no-parse-special").split()]
        all_surprises, running = [], []
        for chunk in range(3):
            window = [ids[0]] + ids[chunk * size + 1: (chunk + 1) * size]  # BOS in place of the first
            all_surprises += self.surprises(window, size)
            running.append(math.exp(sum(all_surprises) / len(all_surprises)))
        count = len(all_surprises)
        mean = sum(all_surprises) / count
        variance = sum(s * s for s in all_surprises) / count - mean * mean
        error = math.sqrt(variance / (count - 1)) * running[-1]

        result = json.loads(self.out(*args, "--json"))
        self.assertAlmostEqual(result["ppl"], running[-1], delta=1e-4 * running[-1])
        self.assertAlmostEqual(result["error"], error, delta=1e-3 * error)
        self.assertEqual((result["chunks"], result["tokens"], result["n_ctx"]), (3, count, size))

        first, last = self.out(*args).splitlines()
        self.assertRegex(first, r"^\[1\]\d+\.\d{4},\[2\]\d+\.\d{4},\[3\]\d+\.\d{4},$")
        for part, value in zip(first.split(",")[:3], running):
            self.assertAlmostEqual(float(part.split("]")[1]), value, delta=2e-4 * value)
        self.assertRegex(last, r"^Final estimate: PPL = \d+\.\d{4} \+/- \d+\.\d{5}$")

    def test_all_chunks_and_too_short_a_text(self):
        text = self.file("text", STORY * 12)
        count = len(self.out("tokenize", "--ids", "-f", text).split())
        result = json.loads(self.out("ppl", "-f", text, "-c", 32, "--json"))
        self.assertEqual(result["chunks"], count // 32)
        self.assertIn("needs at least", self.error(1, "ppl", "-f", self.file("short", STORY)))


if __name__ == "__main__":
    main()
