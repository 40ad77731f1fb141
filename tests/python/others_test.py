"""For those who come from elsewhere: the calls of llama-cpp-python, a model of lm_eval, and the program."""
import importlib
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from support import MODEL, PACKAGE, PROMPT, main, numpy, open_model, run_program

from measure_overhead import stand_in


class LlamaCpp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from greta.llama_cpp import Llama
        cls.llama = Llama(MODEL, n_ctx=256, n_batch=64, verbose=False)

    @classmethod
    def tearDownClass(cls):
        cls.llama.close()

    def test_completions(self):
        plain = self.llama.model.generate(PROMPT, max_tokens=12)
        answer = self.llama(PROMPT, max_tokens=12, temperature=0, echo=True, logprobs=2)
        choice = answer["choices"][0]
        self.assertEqual((choice["text"], choice["finish_reason"]), (PROMPT + plain.text, "length"))
        self.assertEqual(answer["usage"], {"prompt_tokens": 5, "completion_tokens": 12, "total_tokens": 17})
        self.assertEqual("".join(choice["logprobs"]["tokens"]), plain.text)
        self.assertEqual(len(choice["logprobs"]["top_logprobs"][0]), 2)
        pieces = list(self.llama.create_completion(PROMPT, max_tokens=12, temperature=0, stream=True))
        self.assertEqual("".join(each["choices"][0]["text"] for each in pieces), plain.text)
        self.assertEqual(pieces[-1]["choices"][0]["finish_reason"], "length")
        drawn = [self.llama(PROMPT, seed=5)["choices"][0]["text"] for _ in range(2)]
        self.assertEqual(drawn[0], drawn[1])

    def test_chat(self):
        messages = [{"role": "user", "content": "Tell me of a fox."}]
        answer = self.llama.create_chat_completion(messages, max_tokens=12, temperature=0)
        message = answer["choices"][0]["message"]
        pieces = list(self.llama.create_chat_completion(messages, max_tokens=12, temperature=0, stream=True))
        self.assertEqual("".join(each["choices"][0]["delta"].get("content", "") for each in pieces), message["content"])
        schema = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}
        held = self.llama.create_chat_completion(messages, max_tokens=60, temperature=0,
                                                 response_format={"type": "json_object", "schema": schema})
        self.assertEqual(json.loads(held["choices"][0]["message"]["content"]), {"a": 1})

    def test_the_rest(self):
        from greta.llama_cpp import Llama, LlamaGrammar
        held = self.llama(PROMPT, grammar=LlamaGrammar.from_string('root ::= "x"'))
        self.assertEqual(held["choices"][0]["text"], "x")
        first = self.llama.tokenize(self.llama(PROMPT, max_tokens=1, temperature=0)["choices"][0]["text"].encode())[-1]
        other = self.llama(PROMPT, max_tokens=1, temperature=0, logit_bias={first: -1e9})  # as programs write "never"
        self.assertNotEqual(self.llama.tokenize(other["choices"][0]["text"].encode())[-1], first)
        tokens = self.llama.tokenize(b"a fox")
        self.assertEqual((self.llama.detokenize(tokens), tokens[0]), (b"a fox", self.llama.token_bos()))
        self.assertEqual((self.llama.n_ctx(), self.llama.n_vocab(), self.llama.n_embd()), (256, 4096, 256))
        made = self.llama.create_embedding(["a", "b"])
        self.assertEqual([len(each["embedding"]) for each in made["data"]], [256, 256])
        self.assertEqual(self.llama.metadata["general.name"], "tales-llama-7m")
        for call in (lambda: self.llama("x", suffix="y"), lambda: self.llama("x", unknown=1),
                     lambda: Llama(MODEL, lora_path="x"), Llama.from_pretrained):
            with self.assertRaises(NotImplementedError):
                call()
        with self.assertRaisesRegex(AttributeError, "save_logits is not there"):
            self.llama.save_logits


class TransformersLike(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from greta.transformers_like import Tokenizer
        cls.model = open_model()
        cls.tokenizer = Tokenizer(cls.model)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_texts_to_ids(self):
        mine, inner = self.tokenizer, self.model.tokenizer
        self.assertEqual(mine("a fox"), {"input_ids": inner.encode("a fox"), "attention_mask": [1, 1, 1]})
        self.assertEqual(mine.encode("a fox", add_special_tokens=False), inner.encode("a fox", bos=False))
        batch = mine(["a fox", "an owl flew away"], padding=True)
        short, long = batch.input_ids
        self.assertEqual((len(short), long), (len(long), inner.encode("an owl flew away")))
        self.assertEqual(short, inner.encode("a fox") + [mine.pad_token_id] * (len(long) - 3))
        self.assertEqual(batch.attention_mask, [[1, 1, 1] + [0] * (len(long) - 3), [1] * len(long)])
        self.assertEqual(mine("an owl flew away", truncation=True, max_length=2).input_ids, long[:2])
        self.assertEqual(len(mine("x", padding="max_length", max_length=9).input_ids), 9)
        self.assertEqual(mine([], padding=True).input_ids, [])
        if numpy:
            self.assertEqual(mine(["a", "b"], return_tensors="np").input_ids.shape, (2, 2))
            with self.assertRaisesRegex(ValueError, "padding=True"):
                mine(["a fox", "an owl flew away"], return_tensors="np")
        with self.assertRaisesRegex(NotImplementedError, "'tf'"):
            mine("x", return_tensors="tf")
        with self.assertRaisesRegex(ValueError, "'left'"):
            mine("x", padding="left")

    def test_ids_to_texts(self):
        mine = self.tokenizer
        ids = mine("A goose, très bien 🦆<|end|>").input_ids
        self.assertEqual(mine.decode(ids), "<|bos|>A goose, très bien 🦆<|end|>")
        self.assertEqual(mine.batch_decode([ids], skip_special_tokens=True), ["A goose, très bien 🦆"])
        self.assertEqual((mine.bos_token, mine.eos_token, mine.bos_token_id), ("<|bos|>", "<|eos|>", ids[0]))
        self.assertTrue({mine.bos_token_id, mine.eos_token_id, ids[-1]} <= set(mine.all_special_ids))
        self.assertEqual(mine.convert_tokens_to_ids(mine.tokenize("a fox")), mine.encode("a fox")[1:])
        self.assertIsNone(mine.convert_tokens_to_ids("no such token"))
        self.assertEqual((len(mine.get_vocab()) <= len(mine), mine.vocab_size), (True, 4096))

    def test_chat_template(self):
        messages = [{"role": "user", "content": "hi"}]
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        self.assertEqual(text, self.model.tokenizer.apply_chat_template(messages))
        ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        self.assertEqual(self.tokenizer.decode(ids), text)


def stand_in_for_lm_eval():
    """The names of the harness that the adapter takes; the harness itself is large and is not installed here."""
    names = {"lm_eval": {}, "lm_eval.api": {}, "lm_eval.api.model": {"LM": object},
             "lm_eval.api.registry": {"register_model": lambda name: lambda kind: kind}}
    for name, values in names.items():
        module = types.ModuleType(name)
        vars(module).update(values)
        sys.modules[name] = module


class LmEval(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            importlib.import_module("lm_eval.api.model")
        except ImportError:
            stand_in_for_lm_eval()
        from greta.lm_eval import GretaLM
        cls.harness = GretaLM.create_from_arg_string(f"path={MODEL},context=128,exact=True", {"device": "cpu"})

    @classmethod
    def tearDownClass(cls):
        cls.harness.model.close()

    @staticmethod
    def asked(*arguments):
        return types.SimpleNamespace(args=arguments)

    def test_the_device_of_the_harness(self):
        """Which gives its arguments as a dict, with PyTorch's first GPU unless it is told another device."""
        for given, theirs, taken in (({}, "cuda:0", "auto"), ({}, "cpu", "cpu"), ({}, None, "auto"),
                                     ({"device": "cpu"}, "cuda:0", "cpu"), ({"device": "cpu"}, "vulkan0", "cpu")):
            with mock.patch("greta.lm_eval.Model") as model:
                type(self.harness).create_from_arg_obj({"path": MODEL, "context": "64"} | given,
                                                       {"batch_size": 1, "max_batch_size": None, "device": theirs})
            self.assertEqual(model.call_args, mock.call(MODEL, taken, context=64))

    @unittest.skipUnless(all(importlib.util.find_spec(name) for name in ("lm_eval", "datasets")),
                         "lm_eval and its data sets are not there")
    def test_the_harness_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "data.json"), "w", encoding="utf-8") as file:
                for row in ({"q": "The fox", "c": [" went home.", " qzx jkw"], "a": 0},
                            {"q": "Once upon a", "c": [" qqq", " time"], "a": 1}):
                    file.write(json.dumps(row) + "\n")
            task = {"task": "tales", "dataset_path": "json", "dataset_kwargs": {"data_files": file.name},
                    "output_type": "multiple_choice", "test_split": "train", "doc_to_text": "{{q}}",
                    "doc_to_choice": "{{c}}", "doc_to_target": "{{a}}", "metric_list": [{"metric": "acc"}]}
            with open(os.path.join(folder, "tales.yaml"), "w", encoding="utf-8") as file:
                json.dump(task, file)
            done = subprocess.run(
                [sys.executable, "-B", "-m", "greta.lm_eval", "run", "--model", "greta", "--model_args",
                 f"path={MODEL},context=256", "--tasks", "tales", "--include_path", folder], capture_output=True,
                text=True, env={**os.environ, "PYTHONPATH": PACKAGE, "HF_HUB_OFFLINE": "1"})
        self.assertRegex(done.stdout, r"tales.*acc +\|[^|]*\| +1\|", done.stderr[-2000:])

    @unittest.skipUnless(numpy, "numpy is not there")
    def test_log_likelihoods_are_those_of_the_logits(self):
        pairs = [(PROMPT, " there was a fox."), ("", "The owl"), ("The goose ", "went home."), ("A", "B" * 300)]
        found = self.harness.loglikelihood([self.asked(*pair) for pair in pairs])
        for (context, continuation), (value, greedy) in zip(pairs, found):
            tokens, count = self.harness._pair(context, continuation)
            tokens, count = tokens[-128:], min(count, 127)
            with self.harness.model.session(context=128) as session:
                rows = session.eval(tokens, rows="all").astype(numpy.float64)
            chosen = rows[range(len(tokens) - 1), tokens[1:]] - rows.max(axis=1)[:-1]
            chosen -= numpy.log(numpy.exp(rows - rows.max(axis=1, keepdims=True)).sum(axis=1))[:-1]
            self.assertAlmostEqual(value, chosen[-count:].sum(), delta=1e-4 * max(1, abs(value)))
            likeliest = rows[:-1].argmax(axis=1)[-count:]
            self.assertEqual(greedy, list(likeliest) == tokens[-count:])

    def test_rolling_and_generation(self):
        text = "The fox went to the hill. " * 30
        value = self.harness.loglikelihood_rolling([self.asked(text)])[0]
        self.assertTrue(math.isfinite(value) and value < 0)
        tokens = self.harness.model.tokenizer.encode(text)
        self.assertGreater(len(tokens), 128)
        answers = self.harness.generate_until([self.asked(PROMPT, {"until": ["."], "max_gen_toks": 60}),
                                               self.asked(text, {"until": [], "max_gen_toks": 8})])
        self.assertNotIn(".", answers[0])
        self.assertTrue(answers[1])


class TwoLibraries(unittest.TestCase):
    @unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
    def test_another_package_has_loaded_a_libgreta(self):
        """Its functions, which do nothing, are seen by the whole process; ours are called all the same."""
        with tempfile.TemporaryDirectory() as folder:
            first = "import ctypes, sys\nctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)\n"
            done = run_program("""
with open_model() as model:
    assert model.generate('Once', max_tokens=4).generated_tokens == 4
    assert greta.doctor() and greta.devices()
    try: greta.info('/gone')
    except greta.FileError as error: assert '/gone' in str(error), error
""", stand_in("cc", folder), first=first)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Program(unittest.TestCase):
    @unittest.skipUnless(os.environ.get("GRETA_CLI"), "greta-cli is not built")
    def test_python_m_greta(self):
        done = subprocess.run([sys.executable, "-B", "-m", "greta", "run", "-m", MODEL, "-p", PROMPT, "-n", "5"],
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": PACKAGE}, check=True)
        self.assertIn(PROMPT, done.stdout)
        done = subprocess.run([sys.executable, "-B", "-m", "greta"], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": PACKAGE, "GRETA_CLI": "/gone"})
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("/gone cannot be started", done.stderr)

    def test_without_the_library(self):
        done = subprocess.run([sys.executable, "-B", "-c", "import greta"], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": PACKAGE, "GRETA_LIBRARY": "/gone.so"})
        self.assertIn("ImportError: /gone.so cannot be opened", done.stderr)
        self.assertIn("set GRETA_LIBRARY", done.stderr)


if __name__ == "__main__":
    main()
