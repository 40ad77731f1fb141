"""Models, services and chats as a program uses them."""
import asyncio
import contextlib
import dataclasses
import enum
import gc
import io
import json
import logging
import os
import subprocess
import sys
import typing
import unittest
from unittest import mock

from support import MODEL, PACKAGE, PROMPT, ModelTest, greta, main, numpy, open_model


class Generate(ModelTest):
    def test_generate_stream_and_async_give_the_same(self):
        whole = self.model.generate(PROMPT, max_tokens=24)
        self.assertEqual((whole.reason, whole.generated_tokens, len(whole.tokens)), ("length", 24, 24))
        self.assertEqual(str(whole), self.model.tokenizer.decode(whole.tokens))
        pieces = list(self.model.stream(PROMPT, max_tokens=24))
        self.assertGreater(len(pieces), 10)
        self.assertEqual("".join(pieces), whole.text)

        async def stream():
            return [piece async for piece in self.model.stream(PROMPT, max_tokens=24)]

        async def several():
            return await asyncio.gather(*[self.model.agenerate(PROMPT, max_tokens=24) for _ in range(20)])

        self.assertEqual("".join(asyncio.run(stream())), whole.text)
        self.assertEqual({each.generated_tokens for each in asyncio.run(several())}, {24})

    def test_many_prompts(self):
        with open_model(exact=True, cache_tokens=1024) as model:
            prompts = [f"The {animal} went" for animal in ("fox", "owl", "goose", "hare", "mole", "stork")]
            alone = [model.generate(prompt, max_tokens=9).text for prompt in prompts]
            self.assertEqual([str(each) for each in model.generate_all(prompts, max_tokens=9)], alone)
            self.assertEqual(len(set(alone)), len(alone))

    def test_options(self):
        text = self.model.generate(PROMPT, max_tokens=40).text
        word = text.split()[3]
        stopped = self.model.generate(PROMPT, max_tokens=40, stop=[word])
        self.assertEqual((stopped.reason, stopped.text), ("stop", text[:text.index(word)]))
        drawn = [self.model.generate(PROMPT, max_tokens=20, temperature=1.5, seed=seed).text for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        first = self.model.generate(PROMPT, max_tokens=1).tokens[0]
        other = self.model.generate(PROMPT, max_tokens=1, logit_bias={first: float("-inf")}).tokens[0]
        self.assertNotEqual(first, other)
        held = self.model.generate(PROMPT, max_tokens=20, grammar='root ::= "x"{3} "."')
        self.assertEqual((held.text, held.reason), ("xxx.", "end"))
        plain, less = (self.model.generate(PROMPT, max_tokens=60, **more).text for more in ({}, {"repeat_penalty": 2.0}))
        self.assertNotEqual(plain, less)  # penalty_last_n has a default, without which the penalty would do nothing

    def test_logprobs(self):
        answer = self.model.generate(PROMPT, max_tokens=5, top_logprobs=3)
        self.assertEqual([each.token for each in answer.logprobs], list(answer.tokens))
        for each in answer.logprobs:
            self.assertEqual((each.token, each.logprob), each.top[0])
            self.assertEqual(len(each.top), 3)
            self.assertTrue(each.top[0][1] > each.top[1][1] > each.top[2][1])
        tokens = self.model.tokenizer.encode(PROMPT)
        scored = self.model.score(tokens + list(answer.tokens))
        self.assertEqual([each.token for each in scored], (tokens + list(answer.tokens))[1:])
        for mine, theirs in zip(scored[-5:], answer.logprobs):
            self.assertAlmostEqual(mine.logprob, theirs.logprob, delta=0.05)

    def test_embeddings(self):
        one, many = self.model.embed("a fox"), self.model.embed(["a fox", "a goose"])
        self.assertEqual((len(one), len(many)), (self.model.info.width, 2))
        self.assertAlmostEqual(sum(float(x) * float(x) for x in one), 1, places=4)
        for mine, theirs in zip(one, many[0]):
            self.assertAlmostEqual(float(mine), float(theirs), delta=0.02)
        if numpy:
            self.assertEqual((one.dtype, many.shape), (numpy.float32, (2, self.model.info.width)))
        raw = self.model.embed("a fox", raw=True, pooling="last")
        self.assertGreater(abs(sum(float(x) * float(x) for x in raw) - 1), 0.01)

    def test_hidden_states(self):
        def rows(states):
            return memoryview(states).tolist()

        tokens, width = self.model.tokenizer.encode("a fox in a barn"), self.model.info.width
        with open_model(exact=True) as model, model.session() as session:
            states = session.embed(tokens, pooling="none", raw=True)
            self.assertEqual((memoryview(states).shape, memoryview(states).format), ((len(tokens), width), "f"))
            self.assertEqual(session.position, len(tokens))
            self.assertEqual(rows(model.embed(tokens, pooling="none", raw=True)), rows(states))
            session.truncate(0)
            shown = session.embed(tokens, pooling="none", raw=True, copy=False)
            self.assertTrue(memoryview(shown).readonly)
            with self.assertRaisesRegex(greta.InUseError, "copy=False"):
                session.eval(tokens)
            taken = greta.Tensor(shown)
            self.assertEqual(taken.shape, (len(tokens), width))
            self.assertEqual(rows(shown), rows(states))
            del shown, taken
            gc.collect()
            session.truncate(0)
            last = session.embed(tokens, pooling="last", raw=True)
            self.assertEqual(list(last), rows(states)[-1])
            mean = model.embed(tokens, raw=True, pooling="mean")
            for mine, column in zip(mean, zip(*rows(states))):
                self.assertAlmostEqual(float(mine), sum(column) / len(tokens), delta=1e-5)
            several = model.embed(["a fox", "an owl went home"], pooling="none")
            self.assertEqual([len(rows(each)) for each in several],
                             [len(model.tokenizer.encode(text)) for text in ("a fox", "an owl went home")])
            self.assertAlmostEqual(sum(x * x for x in rows(several[1])[2]), 1, delta=1e-5)
            if numpy:
                self.assertEqual((states.dtype, several[0].shape[1]), (numpy.float32, width))
            with self.assertRaisesRegex(ValueError, "pooling is 'every'"):
                session.embed(tokens, pooling="every")

    def test_tokenizer(self):
        tokenizer = self.model.tokenizer
        self.assertEqual(tokenizer.decode(tokenizer.encode("A goose, très bien 🦆")), "A goose, très bien 🦆")
        self.assertEqual(len(tokenizer), self.model.info.vocab_size)
        self.assertEqual(tokenizer.encode("x")[0], tokenizer.bos)
        self.assertNotIn(tokenizer.bos, tokenizer.encode("x", bos=False))
        self.assertEqual(tokenizer.token_bytes(tokenizer.bos), b"<|bos|>")
        self.assertEqual(len(tokenizer.encode("<|user|>", bos=False, special=True)), 1)
        self.assertGreater(len(tokenizer.encode("<|user|>", bos=False)), 1)
        self.assertTrue(tokenizer.is_end(tokenizer.eos))
        self.assertIn("<|user|>\nhi<|end|>", tokenizer.apply_chat_template([{"role": "user", "content": "hi"}]))


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Animal:
    name: typing.Literal["fox", "owl"]
    legs: typing.Literal[2, 4]
    color: Color


class Place(typing.TypedDict):
    city: typing.Literal["Rome", "Oslo"]


class Formats(ModelTest):
    def test_response_formats(self):
        made = self.model.generate(PROMPT, max_tokens=60, response_format=Animal)
        self.assertIsInstance(made.parsed, Animal)
        self.assertIn(made.parsed.name, ("fox", "owl"))
        self.assertIsInstance(made.parsed.color, Color)
        place = self.model.generate(PROMPT, max_tokens=60, response_format=Place).parsed
        self.assertIn(place, ({"city": "Rome"}, {"city": "Oslo"}))
        schema = {"type": "array", "items": {"enum": [7]}, "minItems": 2, "maxItems": 2}
        wrapped = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        for given in (schema, json.dumps(schema), wrapped):
            self.assertEqual(self.model.generate(PROMPT, max_tokens=60, response_format=given).parsed, [7, 7])
        self.assertIsNone(self.model.generate(PROMPT, max_tokens=2, response_format=Animal).parsed)
        with self.assertRaisesRegex(greta.UnsupportedError, "not"):
            self.model.generate(PROMPT, response_format={"not": {"type": "string"}}, strict_schema=True)

    def test_schemas_of_types(self):
        from greta._schema import schema_of, tool_of, value_of

        def weather(city: str, days: int = 1, unit: typing.Literal["C", "F"] = "C") -> str:
            """Tells the weather.

            city: where
            """

        described = tool_of(weather)["function"]
        self.assertEqual((described["name"], described["description"]), ("weather", "Tells the weather."))
        self.assertEqual(described["parameters"]["properties"]["city"], {"type": "string", "description": "where"})
        self.assertEqual(described["parameters"]["required"], ["city"])
        self.assertEqual(schema_of(list[int] | None), {"anyOf": [{"type": "array", "items": {"type": "integer"}},
                                                                 {"type": "null"}]})
        self.assertEqual(schema_of(tuple[int, str])["prefixItems"], [{"type": "integer"}, {"type": "string"}])
        self.assertEqual(schema_of(dict[str, float])["additionalProperties"], {"type": "number"})
        self.assertEqual(value_of(list[Color], ["red"]), [Color.RED])
        self.assertEqual(value_of(tuple[int, ...], [1, 2]), (1, 2))

        class Outer:  # what pydantic gives for a model within a model
            @staticmethod
            def model_json_schema():
                return {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}, "$defs": {"B": {"enum": [1]}}}

        def outer(a: Outer, b: list[Outer]):
            pass

        parameters = tool_of(outer)["function"]["parameters"]
        self.assertEqual(parameters["$defs"], {"B": {"enum": [1]}})
        self.assertNotIn("$defs", parameters["properties"]["a"])

        def odd(what: object()):
            pass

        def stars(*what: int):
            pass

        for function, words in ((odd, "parameter what of odd"), (stars, "parameter what of stars"), (lambda x: x, "def")):
            with self.assertRaisesRegex((TypeError, ValueError), words):
                tool_of(function)


# Calls in the form of this template are what the grammar of tool_choice makes the small model write.
TEMPLATE = ("{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{% for c in m.tool_calls or [] %}"
            "<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n"
            "</tool_call>{% endfor %}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}")


class Chats(ModelTest):
    def test_conversation(self):
        chat = self.model.chat(system="You tell tales.", max_tokens=16)
        events = list(chat.send("Tell me of a fox."))
        self.assertTrue(all(isinstance(each, greta.Text) for each in events))
        self.assertEqual(chat.messages[-1], {"role": "assistant", "content": "".join(map(str, events))})
        other = chat.fork()
        again = chat.ask("And then?")
        self.assertGreater(again.prompt_tokens, 30)
        self.assertEqual(other.ask("And then?").text, again.text)
        self.assertEqual(len(other.messages), 5)
        self.assertIsNot(other.messages[1], chat.messages[1])

        async def ask():
            return await self.model.chat(messages=chat.messages[:3], max_tokens=16).aask("And then?")

        self.assertEqual(asyncio.run(ask()).text, again.text)

    def test_an_answer_that_is_left_stays_in_the_conversation(self):
        chat = self.model.chat()
        answer = chat.send("Tell me of a fox.")
        for count, _ in enumerate(answer):
            if count == 3:
                break
        del _
        self.assertEqual((answer.completion, len(chat.messages)), (answer.completion, 2))
        self.assertEqual(answer.completion.reason, "cancelled")
        self.assertEqual(chat.messages[-1]["content"], answer.completion.text)

    def test_functions_are_called(self):
        called = []

        def weather(city: typing.Literal["Paris", "Rome"]) -> dict:
            called.append(city)
            return {"rain": city == "Rome"}

        chat = self.model.chat(tools=[weather], tool_choice="weather", template=TEMPLATE, rounds=1)
        events = list(chat.send("Will it rain?", max_tokens=200))
        call, result = [each for each in events if not isinstance(each, greta.Text)]
        self.assertEqual((call.name, call.arguments), ("weather", {"city": called[0]}))
        self.assertEqual((result.call, json.loads(result.text), result.failed), (call, {"rain": called[0] == "Rome"}, False))
        self.assertEqual([each["role"] for each in chat.messages], ["user", "assistant", "tool"])
        self.assertEqual(chat.messages[1]["tool_calls"][0]["function"]["arguments"], call.arguments)
        self.assertTrue(chat.ask(max_tokens=8, stop=["\n"]).calls or chat.messages[-1]["role"] in ("assistant", "tool"))

        def broken(city: typing.Literal["Paris", "Rome"]) -> str:
            raise KeyError(city)

        chat = self.model.chat(tools=[broken], tool_choice="required", template=TEMPLATE, rounds=1, max_tokens=200)
        failed = [each for each in chat.send("Will it rain?") if isinstance(each, greta.ToolResult)]
        self.assertEqual((len(failed), failed[0].failed, failed[0].text[:8]), (1, True, "KeyError"))

        async def slow(city: typing.Literal["Paris", "Rome"]) -> str:
            await asyncio.sleep(0.01)
            return f"sun in {city}"

        async def ask():
            chat = self.model.chat(tools=[slow], tool_choice="slow", template=TEMPLATE, rounds=1, max_tokens=200)
            return [each async for each in chat.send("Will it rain?") if isinstance(each, greta.ToolResult)]

        self.assertRegex(asyncio.run(ask())[0].text, "sun in (Paris|Rome)")
        with self.assertRaisesRegex(TypeError, "slow is an async function"):
            self.model.chat(tools=[slow], tool_choice="slow", template=TEMPLATE, max_tokens=200).ask("Will it rain?")

        plain = {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}}
        chat = self.model.chat(tools=[plain], tool_choice="stop", template=TEMPLATE, max_tokens=200)
        answer = chat.ask("Will it rain?")
        self.assertEqual((answer.calls[0].name, chat.messages[-1]["role"]), ("stop", "assistant"))
        chat.add_result(answer.calls[0], {"done": True})
        self.assertEqual(chat.messages[-1]["content"], '{"done": true}')


class Before(unittest.TestCase):
    def test_plan_info_devices_doctor(self):
        plan = greta.plan(MODEL, "cpu", context=512)
        self.assertEqual((plan.fits, plan.device, plan.context), (True, "cpu", 512))
        self.assertGreater(plan.total_bytes, plan.weights_bytes)
        info = greta.info(MODEL)
        self.assertEqual((info.architecture, info.name), ("llama", "tales-llama-7m"))
        self.assertEqual(info.metadata["llama.block_count"], "8")
        self.assertIn("token_embd.weight", [tensor.name for tensor in info.tensors])
        self.assertEqual(info.tensors[0].size_bytes > 0, True)
        self.assertIn("cpu", [device.id for device in greta.devices() if device.usable])
        self.assertTrue(all(isinstance(each.advice, str) for each in greta.doctor()))
        self.assertRegex(greta.version(), r"^\d+\.\d+\.\d+$")

    def test_the_import_is_quick_and_brings_every_name(self):
        program = """
import greta, sys
slow = {'asyncio', 'dataclasses', 'inspect', 'json', 'logging', 'greta._model'} & set(sys.modules)
assert not slow, slow
assert set(greta.__all__) <= set(dir(greta)) and greta.__version__ == greta.version()
for name in greta.__all__: assert getattr(greta, name).__name__ == name, name
from greta import *
assert Model is greta.Model
try: greta.modle
except AttributeError as error: assert 'modle' in str(error)
else: assert False
"""
        done = subprocess.run([sys.executable, "-B", "-S", "-c", program], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": PACKAGE})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_progress_and_log(self):
        seen = []
        with open_model(progress=lambda done, total: seen.append((done, total))):
            self.assertEqual(seen[-1][0], seen[-1][1])

        def refuse(done, total):
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            open_model(progress=refuse)
        with self.assertLogs("greta", logging.DEBUG) as log, open_model() as model:
            model.generate(PROMPT, max_tokens=1, response_format={"not": {"type": "string"}})
        self.assertTrue(any("not" in line for line in log.output))

    def test_progress_bar_and_notebook(self):
        from greta import _progress
        shown = []

        class Display:
            def __call__(self, content, raw, display_id):
                shown.append(content["text/plain"])
                return self

            def update(self, content, raw):
                shown.append(content["text/plain"])

        with contextlib.redirect_stderr(io.StringIO()) as told, mock.patch.object(_progress, "_QUIET_S", 0):
            self.assertIsNone(_progress.default_progress())  # no terminal: a pipe gets nothing
            for show in (_progress.Bar(), _progress.NotebookText(Display())):
                show(1_000_000_000, 2_000_000_000)
                show(2_000_000_000, 2_000_000_000)
        self.assertIn("1.0 of 2.0 GB", told.getvalue())
        self.assertEqual([line[-13:] for line in shown], ["1.0 of 2.0 GB", "2.0 of 2.0 GB"])

    def test_texts(self):
        with open_model() as model, model.session() as session, model.stream(PROMPT, max_tokens=1) as request:
            for each, words in ((model, "tales-llama-7m: llama, 7 M"), (session, "0 tokens"), (request, "Request"),
                                (model.service, "tales"), (model.tokenizer, "4096"), (model.chat(), "0 messages"),
                                (model.runtime, "cpu")):
                self.assertIn(words, repr(each))
        self.assertIn("closed", repr(model) + repr(session))


if __name__ == "__main__":
    main()
