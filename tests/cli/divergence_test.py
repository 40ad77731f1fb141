"""ppl --kl-divergence: the file of saved predictions, the statistics against their definitions, bad files."""
import array
import json
import math
import os
import pathlib
import signal
import struct
import tempfile

from support import LIMIT, MODEL, CliTest, main, read_npy, start

STORY = "Once upon a time there was a little beaver who lived by the river. "
SIZE, CHUNKS, VOCABULARY = 32, 3, 4096
PREDICTED = SIZE - 1 - SIZE // 2
TOKENS_AT = 8 + 12
ROWS_AT = TOKENS_AT + 4 * SIZE * CHUNKS
ROW_BYTES = 8 + 2 * VOCABULARY
PRECISE = ["-ctk", "f32", "-ctv", "f32", "--exact"]


def mean_and_error(values):
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    return mean, math.sqrt(variance / (len(values) - 1))


def percentile(values, percent):
    values, at = sorted(values), percent / 100 * (len(values) - 1)
    below = math.floor(at)
    return values[below] + (at - below) * (values[min(below + 1, len(values) - 1)] - values[below])


class Divergence(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.text = self.folder / "text"
        self.text.write_text(STORY * 12)
        self.base = self.folder / "base.kld"

    def save(self):
        self.out("ppl", "-f", self.text, "-c", SIZE, "--chunks", CHUNKS, "--kl-divergence-base", self.base, *PRECISE)
        return bytearray(self.base.read_bytes())

    def compare(self, *args):
        return json.loads(self.out("ppl", "--kl-divergence", "--kl-divergence-base", self.base, "--json", *PRECISE,
                                   *args))

    def refused(self, data, *args):
        self.base.write_bytes(data)
        message = self.error(1, "ppl", "--kl-divergence", "--kl-divergence-base", self.base, "--json", *args)
        self.assertIn("base.kld", message)
        return message

    def windows(self):
        ids = [int(w) for w in self.out("tokenize", "--ids", "-f", self.text, "--no-parse-special").split()]
        return [ids[chunk * SIZE: (chunk + 1) * SIZE] for chunk in range(CHUNKS)], ids[0]

    def predictions(self):
        """(log probabilities of all tokens, the token that came) for each prediction, from `logits`."""
        windows, bos = self.windows()
        for window in windows:
            path = self.folder / "window.npy"
            self.out("logits", "--ids", " ".join(map(str, [bos] + window[1:])), "-o", path, *PRECISE)
            _, values = read_npy(path)
            for t in range(SIZE // 2, SIZE - 1):
                row = values[t * VOCABULARY: (t + 1) * VOCABULARY]
                highest = max(row)
                total = highest + math.log(sum(math.exp(value - highest) for value in row))
                yield [value - total for value in row], window[t + 1]

    def rows(self, data):
        """Log probabilities of the rows of a base file."""
        for at in range(ROWS_AT, len(data), ROW_BYTES):
            scale, lowest = struct.unpack_from("<2f", data, at)
            codes = array.array("H", bytes(data[at + 8: at + ROW_BYTES]))
            yield [lowest + scale * code for code in codes]

    def test_the_file(self):
        data = self.save()
        self.assertEqual(struct.unpack_from("<8sIii", data), (b"_logits_", SIZE, VOCABULARY, CHUNKS))
        windows, _ = self.windows()
        self.assertEqual(list(struct.unpack_from(f"<{SIZE * CHUNKS}i", data, TOKENS_AT)), sum(windows, []))
        self.assertEqual(len(data), ROWS_AT + CHUNKS * PREDICTED * ROW_BYTES)
        for saved, (log_p, _) in zip(self.rows(data), self.predictions(), strict=True):
            lowest = max(min(log_p), max(log_p) - 16)
            error = max(abs(s - max(p, lowest)) for s, p in zip(saved, log_p))
            self.assertLess(error, 16 / 65535)

    def test_a_model_against_itself(self):
        self.save()
        result = self.compare("-f", self.text)
        self.assertEqual((result["chunks"], result["tokens"], result["n_ctx"]), (CHUNKS, CHUNKS * PREDICTED, SIZE))
        self.assertLess(abs(result["kld"]["mean"]), 1e-4)
        self.assertLess(result["kld"]["maximum"], 1e-3)
        self.assertEqual(result["same_top"]["value"], 1)
        self.assertEqual(self.compare("--chunks", 1)["tokens"], PREDICTED)

    def test_against_the_definitions(self):
        data = self.save()
        for row in range(0, CHUNKS * PREDICTED, 2):  # every other prediction becomes: all are equally likely
            struct.pack_into("<2f", data, ROWS_AT + row * ROW_BYTES, 0, -math.log(VOCABULARY))
        self.base.write_bytes(data)
        klds, deltas, surprises, base_surprises, same = [], [], [], [], 0
        for base, (log_p, token) in zip(self.rows(data), self.predictions(), strict=True):
            klds.append(sum(math.exp(b) * (b - p) for b, p in zip(base, log_p) if b > -16))
            deltas.append(math.exp(log_p[token]) - math.exp(base[token]))
            surprises.append(-log_p[token])
            base_surprises.append(-base[token])
            same += base[log_p.index(max(log_p))] == max(base)
        result = self.compare()

        def near(got, wanted):
            self.assertAlmostEqual(got, wanted, delta=1e-4 + 1e-3 * abs(wanted))

        for values, got in ((klds, result["kld"]), (deltas, result["delta_p"])):
            for wanted, name in zip(mean_and_error(values), ("mean", "error")):
                near(got[name], wanted)
            near(got["maximum"], max(values))
            near(got["minimum"], min(values))
            self.assertGreaterEqual(len(got["percentiles"]), 9)
            for percent, value in got["percentiles"].items():
                near(value, percentile(values, float(percent)))
        near(result["delta_p_rms"]["value"], math.sqrt(sum(d * d for d in deltas) / len(deltas)))
        near(result["same_top"]["value"], same / len(klds))

        own, base = mean_and_error(surprises), mean_and_error(base_surprises)
        ratio = mean_and_error([s - b for s, b in zip(surprises, base_surprises)])
        near(result["ppl"], math.exp(own[0]))
        near(result["ppl_base"]["value"], math.exp(base[0]))
        near(result["ppl_base"]["error"], math.exp(base[0]) * base[1])
        for name, factor in (("ln_ppl_ratio", 1), ("ppl_ratio", math.exp(ratio[0]))):
            near(result[name]["error"], factor * ratio[1])
        near(result["ln_ppl_ratio"]["value"], ratio[0])
        near(result["ppl_ratio"]["value"], math.exp(ratio[0]))
        near(result["ppl_difference"]["value"], math.exp(own[0]) - math.exp(base[0]))
        near(result["correlation"], (own[1] ** 2 + base[1] ** 2 - ratio[1] ** 2) / (2 * own[1] * base[1]))

        lines = self.out("ppl", "--kl-divergence", "--kl-divergence-base", self.base, *PRECISE).splitlines()
        near(float(next(line for line in lines if line.startswith("Mean    KLD:")).split()[2]), sum(klds) / len(klds))
        self.assertEqual([line.split()[0] for line in lines[1: 1 + CHUNKS]], ["1", "2", "3"])

    def test_files_that_are_cut_or_damaged(self):
        data = self.save()
        for size in (0, 7, 19, 20, ROWS_AT - 1, ROWS_AT, ROWS_AT + 5, len(data) - ROW_BYTES, len(data) - 1):
            with self.subTest(size=size):
                self.refused(data[:size])
        self.refused(data + b"\0")
        last = len(data) - ROW_BYTES
        for at, form, value in ((0, "<c", b"x"), (8, "<I", 3), (8, "<I", 0xffffffff), (8, "<I", 2 * SIZE),
                                (12, "<i", -1), (12, "<i", 0x7fffffff), (16, "<i", 0), (16, "<i", -CHUNKS),
                                (16, "<i", CHUNKS - 1), (16, "<i", CHUNKS + 1),
                                (TOKENS_AT + 8, "<i", -1), (TOKENS_AT + 8, "<i", VOCABULARY),
                                (last, "<f", math.nan), (last, "<f", -1e-9), (last + 4, "<f", math.inf),
                                (last + 4, "<f", -2)):
            with self.subTest(at=at, value=value):
                broken = bytearray(data)
                struct.pack_into(form, broken, at, value)
                self.refused(broken)
        self.base.unlink()
        self.error(1, "ppl", "--kl-divergence", "--kl-divergence-base", self.base)

    def test_files_of_other_runs(self):
        data = self.save()
        self.assertIn("-c 32, not 64", self.refused(data, "-c", 64))
        other = self.folder / "other"
        other.write_text("The fox was old. " * 200)
        self.assertIn("token", self.refused(data, "-f", other))
        other.write_text("Short.")
        self.assertIn("token", self.refused(data, "-f", other))
        struct.pack_into("<i", data, TOKENS_AT, 77)
        self.assertIn("token 77", self.refused(data))
        rows = struct.pack("<2f5H", 0, -math.log(5), 0, 0, 0, 0, 0) + b"\0\0"
        small = struct.pack("<8sIii", b"_logits_", SIZE, 5, 1) + bytes(4 * SIZE) + rows * PREDICTED
        self.assertIn("5 tokens", self.refused(small))

    def test_wrong_usage(self):
        self.error(2, "ppl", "--kl-divergence")
        self.error(2, "ppl", "-f", self.text, "--kl-divergence")
        self.error(2, "ppl", "--kl-divergence-base", self.base)
        self.assertFalse(self.base.exists())
        self.error(1, "ppl", "-f", self.text, "-c", SIZE, "--kl-divergence-base", self.folder / "no" / "such")

    def test_interrupted(self):
        self.text.write_text(STORY * 3000)
        child = start("ppl", "-f", self.text, "-c", 128, "--kl-divergence-base", self.base)
        os.read(child.stdout.fileno(), 1)
        self.assertTrue(self.base.exists())
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=LIMIT)
        self.assertEqual(child.returncode, 130)
        self.assertFalse(self.base.exists())

    def test_coarser_weights_differ_more(self):
        folder = os.environ.get("GRETA_TEST_DATA", "")
        if not folder:
            self.skipTest("GRETA_TEST_DATA is not set")
        name = str(pathlib.Path(folder, "models", "tales-llama-7m-{}.gguf"))
        self.out("ppl", "-m", name.format("f16"), "-f", self.text, "-c", 64, "--save-all-logits", self.base)
        klds = [0]
        for model in (name.format("q8_0"), MODEL, name.format("q2_k")):
            result = json.loads(self.out("ppl", "-m", model, "--kl-divergence", "--kl-divergence-base", self.base,
                                         "--json"))
            klds.append(result["kld"]["mean"])
        self.assertEqual(klds, sorted(klds))
        self.assertLess(2 * klds[2], klds[3])
        foreign = str(pathlib.Path(folder, "models", "stories260K-f16.gguf"))
        self.assertIn("4096 tokens", self.error(1, "ppl", "-m", foreign, "--kl-divergence",
                                                "--kl-divergence-base", self.base))


if __name__ == "__main__":
    main()
