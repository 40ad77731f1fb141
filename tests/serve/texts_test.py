"""Completions of OpenAI and llama.cpp, vectors, tokens and templates, settings and metrics."""
import base64
import math
import pathlib
import re
import struct
import subprocess
import tempfile
import time

from server import MODEL, PROGRAM, Server, ServerTest, chat_body, main, unread_body, with_numbers


class Completions(ServerTest):
    ARGS = ("--parallel", 4, "--metrics")

    def texts(self, **body):
        answer = self.server.post("/v1/completions", {"temperature": 0, **body})
        self.assertEqual(answer["object"], "text_completion")
        self.assertEqual([choice["index"] for choice in answer["choices"]], list(range(len(answer["choices"]))))
        return [choice["text"] for choice in answer["choices"]], answer

    def tokens(self, text, **more):
        return self.server.post("/tokenize", {"content": text, **more})["tokens"]

    def test_as_the_program_writes(self):
        told = subprocess.run([PROGRAM, "run", "-m", MODEL, "-q", "--device", "cpu", "-p", "Once upon a time", "-n", "12", "--temp", "0", "--exact",
                               "--no-display-prompt", "-c", "256"], capture_output=True, text=True, check=True).stdout
        (text,), answer = self.texts(prompt="Once upon a time", max_tokens=12)
        self.assertEqual(text.strip(), told.strip())
        self.assertEqual(answer["usage"]["completion_tokens"], 12)

    def test_prompts_of_all_kinds(self):
        tokens = self.tokens("Once upon a time", add_special=True)
        (expected,), _ = self.texts(prompt="Once upon a time", max_tokens=6)
        self.assertEqual(self.texts(prompt=tokens, max_tokens=6)[0], [expected])
        both = self.texts(prompt=[tokens, "Once upon a time", "The dog"], max_tokens=6)[0]
        self.assertEqual(both[:2], [expected, expected])
        self.assertNotEqual(both[2], expected)
        many = self.texts(prompt=["Once upon a time"] * 50, max_tokens=2, n=2)[0]  # more than there are places
        self.assertEqual(len(many), 100)
        self.assertEqual(len(set(many)), 1)
        self.assertEqual(self.texts(prompt="Once")[1]["usage"]["completion_tokens"], 16)  # OpenAI's default

    def test_streams(self):
        (expected,), _ = self.texts(prompt="Once upon a time", max_tokens=10)
        chunks = [data for _, data in self.server.events("/v1/completions", {
            "prompt": "Once upon a time", "max_tokens": 10, "temperature": 0, "stream": True, "echo": True, "stream_options": {
                "include_usage": True}})]
        self.assertEqual(chunks.pop(), "[DONE]")
        self.assertEqual(chunks.pop()["usage"]["completion_tokens"], 10)
        self.assertEqual("".join(chunk["choices"][0]["text"] for chunk in chunks).strip(), "Once upon a time" + expected)
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], "length")

    def test_echo_with_probabilities(self):
        """What lm_eval asks for: the prompt's own probabilities, with and without an answer."""
        _, answer = self.texts(prompt="Once upon a time there was a bear", echo=True, logprobs=2, max_tokens=0)
        choice = answer["choices"][0]
        logprobs = choice["logprobs"]
        count = answer["usage"]["prompt_tokens"]
        self.assertEqual(choice["text"].strip(), "Once upon a time there was a bear")
        self.assertEqual(answer["usage"]["completion_tokens"], 0)
        for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
            self.assertEqual(len(logprobs[name]), count)
        self.assertIsNone(logprobs["token_logprobs"][0])
        self.assertTrue(all(value <= 0 for value in logprobs["token_logprobs"][1:]))
        _, longer = self.texts(prompt="Once upon a time there was a bear", echo=True, logprobs=1, max_tokens=1)
        other = longer["choices"][0]["logprobs"]["token_logprobs"]
        self.assertEqual(len(other), count + 1)
        for one, two in zip(logprobs["token_logprobs"][1:], other[1:]):
            self.assertAlmostEqual(one, two, delta=2e-2)
        # The probability of a token of the prompt is that which it has when it is generated.
        greedy = self.texts(prompt="Once upon a", logprobs=1, max_tokens=1)[1]["choices"][0]["logprobs"]
        echoed = self.texts(prompt="Once upon a" + greedy["tokens"][0], echo=True, logprobs=1, max_tokens=0)[1]["choices"][0]["logprobs"]
        self.assertEqual(echoed["tokens"][-1], greedy["tokens"][0])
        self.assertAlmostEqual(echoed["token_logprobs"][-1], greedy["token_logprobs"][0], delta=2e-2)

    def test_what_is_refused(self):
        for body, words in (({}, "prompt is missing"), ({"prompt": 5}, "prompt must be a text, tokens"), ({"prompt": []}, "prompt must be"),
                            ({"prompt": [999999]}, "tokens from 0 to 4095"), ({"prompt": [1, "a"]}, "tokens from 0"),
                            ({"prompt": [-1]}, "tokens from 0"), ({"prompt": "a", "best_of": 3}, "best_of must be as many as n"),
                            ({"prompt": "a", "logprobs": 21}, "logprobs must be"), ({"prompt": "a", "logprobs": "x"}, "logprobs must be")):
            self.refused(400, words, "POST", "/v1/completions", body)
        self.refused(501, "no tokens that mark a gap", "POST", "/v1/completions", {"prompt": "a", "suffix": "b"})
        self.refused(501, "no tokens that mark a gap", "POST", "/infill", {"input_prefix": "a", "input_suffix": "b"})
        error = self.refused(400, "tokens", "POST", "/v1/completions", {"prompt": [5] * 5000})
        self.assertEqual((error["type"], error["n_prompt_tokens"]), ("exceed_context_size_error", 5000))
        self.assertGreaterEqual(error["n_ctx"], 1024)

    def test_native(self):
        (expected,), _ = self.texts(prompt="Once upon a time", max_tokens=10)
        answer = self.server.post("/completion", {"prompt": "Once upon a time", "n_predict": 10, "temperature": 0, "n_probs": 2})
        self.assertEqual(answer["content"], expected)
        self.assertEqual((answer["stop"], answer["stop_type"], answer["tokens_predicted"]), (True, "limit", 10))
        self.assertEqual(len(answer["completion_probabilities"]), 10)
        self.assertEqual(len(answer["completion_probabilities"][0]["top_logprobs"]), 2)
        word = expected.split()[2]
        answer = self.server.post("/completion", {"prompt": "Once upon a time", "n_predict": 10, "temperature": 0, "stop": [word]})
        self.assertEqual((answer["stop_type"], answer["stopping_word"]), ("word", word))
        chunks = [data for _, data in self.server.events("/completion", {"prompt": "Once upon a time " * 180, "n_predict": 4, "stream": True,
                                                                         "temperature": 0, "return_progress": True})]
        progress = [chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk]
        self.assertGreater(len(progress), 1)
        self.assertEqual(progress[-1]["processed"], progress[-1]["total"])
        self.assertTrue(all(part["processed"] <= part["total"] for part in progress))
        self.assertEqual([chunk["stop"] for chunk in chunks][-1], True)
        self.assertEqual(sum(len(chunk.get("tokens", [])) for chunk in chunks), 4)

    def test_probabilities_after_sampling(self):
        body = {"prompt": "Once upon a time", "n_predict": 12, "n_probs": 5, "seed": 3, "top_k": 3, "top_p": 1, "min_p": 0, "temperature": 1.5, "post_sampling_probs": True}
        listed = self.server.post("/completion", body)["completion_probabilities"]
        for each in listed:
            probabilities = [one["prob"] for one in each["top_probs"]]
            self.assertEqual(len(probabilities), 3)  # all that the sampler has left
            self.assertAlmostEqual(sum(probabilities), 1, delta=1e-5)
            self.assertEqual(probabilities, sorted(probabilities, reverse=True))
            self.assertIn((each["id"], each["prob"]), [(one["id"], one["prob"]) for one in each["top_probs"]])
            self.assertNotIn("logprob", each)
        # Of three tokens at a temperature of 1.5 the model's own probabilities say the same.
        own = self.server.post("/completion", {**body, "post_sampling_probs": False})["completion_probabilities"]
        self.assertEqual([each["id"] for each in own], [each["id"] for each in listed])
        for each, sampled in zip(own, listed):
            weights = [math.exp(one["logprob"] / 1.5) for one in each["top_logprobs"][:3]]
            for weight, one in zip(weights, sampled["top_probs"]):
                self.assertAlmostEqual(weight / sum(weights), one["prob"], delta=1e-4)
        greedy = self.server.post("/completion", {**body, "temperature": 0})["completion_probabilities"]
        self.assertTrue(all([one["prob"] for one in each["top_probs"]] == [1] and each["prob"] == 1 for each in greedy))
        chat = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3, "logprobs": True, "top_logprobs": 2, "post_sampling_probs": True}
        content = self.server.post("/v1/chat/completions", chat)["choices"][0]["logprobs"]["content"]
        self.assertTrue(content and all(0 < each["prob"] <= 1 and len(each["top_probs"]) <= 2 for each in content))
        self.refused(400, "post_sampling_probs must be", "POST", "/completion", {**body, "post_sampling_probs": "x"})

    def test_where_a_rewritten_history_departs(self):
        prompt = [i % 900 + 100 for i in range(300)]
        ask = lambda tokens, **more: self.server.post("/completion", {"prompt": tokens, "n_predict": 2, "temperature": 0, "ignore_eos": True, "cache_salt": "history", **more})  # noqa: E731
        first = ask(prompt, return_tokens=True)
        self.assertNotIn("differs_at", first["timings"])  # nothing is known of it
        longer = prompt + first["tokens"] + [500] * 40
        self.assertNotIn("differs_at", ask(longer)["timings"])  # it goes on with all of the text
        rewritten = longer[:200] + longer[210:]
        again = ask(rewritten)
        self.assertEqual((again["timings"]["cache_n"], again["timings"]["differs_at"]), (192, 200))
        self.assertNotIn("differs_at", ask(rewritten[:50] + [7] * 50)["timings"])  # less than a page is the same
        self.assertNotIn("differs_at", ask(rewritten[:200] + [7] * 50, cache_salt="other")["timings"])

    def test_embeddings(self):
        answer = self.server.post("/v1/embeddings", {"input": ["A bear.", "A dog."], "model": "any"})
        one, two = (each["embedding"] for each in answer["data"])
        self.assertEqual((len(one), answer["model"], answer["data"][1]["index"]), (256, "any", 1))
        self.assertAlmostEqual(math.fsum(x * x for x in one), 1, places=4)
        self.assertNotEqual(one, two)
        coded = self.server.post("/v1/embeddings", {"input": "A bear.", "encoding_format": "base64"})["data"][0]["embedding"]
        for a, b in zip(struct.unpack("<256f", base64.b64decode(coded)), one):
            self.assertAlmostEqual(a, b, delta=1e-3)
        raw = self.server.post("/embedding", {"content": "A bear.", "embd_normalize": -1})["data"][0]["embedding"]
        self.assertGreater(abs(math.fsum(x * x for x in raw) - 1), 0.1)
        many = self.server.post("/v1/embeddings", {"input": [f"Text {i}." for i in range(60)]})
        self.assertEqual(len(many["data"]), 60)
        self.assertGreater(many["usage"]["prompt_tokens"], 120)
        self.refused(400, "dimensions must be 256", "POST", "/v1/embeddings", {"input": "a", "dimensions": 10})
        self.refused(400, "input is missing", "POST", "/v1/embeddings", {})

    def test_tokens(self):
        for text in ("Once upon a time", "h\u00e9llo \U0001f43b", ""):
            tokens = self.tokens(text)
            self.assertEqual(self.server.post("/detokenize", {"tokens": tokens})["content"].strip(), text)
            self.assertEqual([piece["id"] for piece in self.tokens(text, with_pieces=True)], tokens)
        self.assertEqual(self.tokens("Hi", add_special=True)[1:], self.tokens("Hi"))
        self.refused(400, "content is missing", "POST", "/tokenize", {})
        self.refused(400, "tokens must be of tokens", "POST", "/detokenize", {"tokens": [4096]})

    def test_template(self):
        text = self.server.post("/apply-template", chat_body("Hello there."))["prompt"]
        self.assertIn("Hello there.", text)
        counted = self.server.post("/v1/chat/completions/input_tokens", chat_body("Hello there."))["input_tokens"]
        run = self.server.post("/v1/chat/completions", chat_body("Hello there."))["usage"]["prompt_tokens"]
        self.assertEqual(counted, run)
        tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
        for more in ({"tools": [tool]}, {"messages": [{"role": "system", "content": "A"}, {"role": "developer", "content": "B"},
                                                      {"role": "user", "content": "Hi"}]}):
            body = {**chat_body("Hello there."), **more}
            text = self.server.post("/apply-template", body)["prompt"]
            tokens = len(self.tokens(text, add_special=not text.startswith("<s>")))
            self.assertEqual(self.server.post("/v1/chat/completions", body)["usage"]["prompt_tokens"], tokens)

    def test_settings(self):
        props = self.server.ask("GET", "/props")[1]
        self.assertEqual((props["n_ctx"], props["total_slots"]), (1024, 4))
        self.assertEqual(props["default_generation_settings"]["params"]["top_k"], 40)
        self.assertEqual([(slot["id"], slot["is_processing"]) for slot in self.server.ask("GET", "/slots")[1]], [(i, False) for i in range(4)])

    def test_slots_show_what_runs(self):
        lines = self.server.stream("/completion", unread_body())
        next(lines)
        slots = self.server.ask("GET", "/slots")[1]
        lines.close()
        self.wait_until(lambda: self.running() == 0)
        (busy,) = [slot for slot in slots if slot["is_processing"]]
        self.assertEqual((busy["n_prompt_tokens"], busy["n_prompt_tokens_processed"]), (len(self.tokens("Once upon a time", add_special=True)),) * 2)
        token = busy["next_token"]
        self.assertEqual(token["n_decoded"] + token["n_remain"], 900)

    def test_metrics_count_what_clients_count(self):
        def counters():
            text = self.server.ask("GET", "/metrics")[1]
            return {name: float(value) for name, value in re.findall(r"^([a-z:_]+)(?:\{model_name=\"[^\"]*\"\})? (\S+)$", text, re.M)}
        before, began = counters(), time.monotonic()
        usage = [self.server.post("/v1/completions", {"prompt": "Once upon a time " * 30, "max_tokens": 5})["usage"] for _ in range(3)]
        after = counters()

        def grown(name):
            return after[name] - before[name]
        prompts = sum(each["prompt_tokens"] for each in usage)
        cached = sum(each["prompt_tokens_details"]["cached_tokens"] for each in usage)
        self.assertEqual(grown("llamacpp:tokens_predicted_total"), sum(each["completion_tokens"] for each in usage))
        self.assertEqual(grown("llamacpp:prompt_tokens_total"), prompts - cached)
        self.assertEqual(grown("vllm:prompt_tokens_total"), prompts)
        self.assertEqual(grown("vllm:prefix_cache_hits_total"), cached)
        self.assertEqual(grown("vllm:time_to_first_token_seconds_count"), 3)
        self.assertGreater(grown("greta:step_seconds_total"), 0)
        self.assertGreater(grown("greta:host_seconds_total"), 0)
        self.assertLess(grown("greta:host_seconds_total"), time.monotonic() - began)
        self.assertEqual(grown("greta:reread_tokens_total"), 0)


class Gaps(ServerTest):
    """The model's file names tokens for texts with a gap, which it was not trained with: prompts are compared, not answers."""
    MARKS = {"pre": 4090, "suf": 4091, "mid": 4092, "rep": 4093, "sep": 4094}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(cls.folder.name) / "gaps.gguf"
        with_numbers(path, {f"tokenizer.ggml.fim_{name}_token_id": token for name, token in cls.MARKS.items()})
        cls.server = Server(model=path)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def tokens(self, text, **more):
        return self.server.post("/tokenize", {"content": text, **more})["tokens"]

    def counts(self, path, body):
        answer = self.server.post(path, {**body, "temperature": 0, "cache_prompt": False})
        return answer.get("content") or answer["choices"][0]["text"], answer.get("tokens_evaluated") or answer["usage"]["prompt_tokens"]

    def prompt(self, prefix, suffix, before=(), begun=""):
        marks = self.MARKS
        start = self.tokens("", add_special=True)[:1]
        return [*start, *before, marks["pre"], *self.tokens(prefix), marks["suf"], *self.tokens(suffix), marks["mid"], *self.tokens(begun)]

    def test_gaps(self):
        expected = self.counts("/v1/completions", {"prompt": self.prompt("The bear", "home."), "max_tokens": 8})
        body = {"prompt": "The bear", "suffix": "home.", "max_tokens": 8}
        self.assertEqual(self.counts("/v1/completions", body), expected)
        for prompt in (["The bear"], self.tokens("The bear")):
            self.assertEqual(self.counts("/v1/completions", {**body, "prompt": prompt}), expected)
        infill = {"input_prefix": "The bear", "input_suffix": "home.", "n_predict": 8}
        self.assertEqual(self.counts("/infill", infill), expected)
        told = self.server.post("/api/generate", {"prompt": "The bear", "suffix": "home.", "stream": False, "options": {"num_predict": 8, "temperature": 0}})
        self.assertEqual((told["response"], told["prompt_eval_count"]), expected)
        self.assertIn("insert", self.server.post("/api/show", {})["capabilities"])
        begun = self.counts("/v1/completions", {"prompt": self.prompt("", "home.", begun="went"), "max_tokens": 8})
        self.assertEqual(self.counts("/infill", {**infill, "input_prefix": "", "prompt": "went"}), begun)

    def test_other_files(self):
        marks = self.MARKS
        before = [marks["rep"], *self.tokens("repository\n"), marks["sep"], *self.tokens("a.txt\n"), *self.tokens("A dog.\n\n"),
                  marks["sep"], *self.tokens("this file\n")]
        expected = self.counts("/v1/completions", {"prompt": self.prompt("The bear", "home.", before), "max_tokens": 8})
        body = {"input_prefix": "The bear", "input_suffix": "home.", "n_predict": 8, "input_extra": [{"filename": "a.txt", "text": "A dog."}]}
        self.assertEqual(self.counts("/infill", body), expected)

    def test_what_is_far_is_cut(self):
        long = "The bear went home. " * 400
        answer = self.server.post("/infill", {"input_prefix": long, "input_suffix": long, "n_predict": 10, "return_tokens": True})
        self.assertGreater(answer["tokens_evaluated"], 1000)
        self.assertLessEqual(answer["tokens_evaluated"], 1024 - 10)
        self.assertIn("The bear went home. ", answer["prompt"])

    def test_what_is_refused(self):
        for body, words in (({}, "input_prefix is missing"), ({"input_prefix": "a"}, "input_suffix is missing"),
                            ({"input_prefix": "a", "input_suffix": "b", "input_extra": [3]}, "input_extra[0] must be an object"),
                            ({"input_prefix": "a", "input_suffix": "b", "input_extra": [{}]}, "input_extra[0].text is missing")):
            self.refused(400, words, "POST", "/infill", body)


if __name__ == "__main__":
    main()
