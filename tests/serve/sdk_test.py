"""The openai, anthropic and prometheus_client packages against the server. Skipped without them; sdk_lock.txt is what they were tested as."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing


try:
    import anthropic
    import openai
    import prometheus_client.parser
    import pydantic
except ImportError:
    python = os.environ.get("GRETA_SDK_PYTHON")
    if python and "GRETA_SDK_ASKED" not in os.environ:
        sys.exit(subprocess.run([python, "-B", *sys.argv], env={**os.environ, "GRETA_SDK_ASKED": "1"}, check=False).returncode)
    print("skipped: the packages openai, anthropic and prometheus_client are not all there (GRETA_SDK_PYTHON names a Python that has them)")
    sys.exit(77)

from calls_test import ARGUMENTS, FUNCTION, GRAMMAR, SCHEMA, TEMPLATE, USER
from server import ServerTest, main

STORY = [{"role": "user", "content": "Tell me a story about a bear."}]


class SdkTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "template.jinja"
            path.write_text(TEMPLATE)
            cls.ARGS = ("--chat-template-file", path, "--temp", 0, "--api-key", "secret", "--metrics", "--parallel", 4, "--queue", 100)
            super().setUpClass()
        cls.url = f"http://127.0.0.1:{cls.server.port}"
        cls.openai = openai.OpenAI(base_url=cls.url + "/v1", api_key="secret", max_retries=0)
        cls.anthropic = anthropic.Anthropic(base_url=cls.url, api_key="secret", max_retries=0)


class Weather(pydantic.BaseModel):  # short answers, since the model would write a long text
    city: typing.Literal["Graz", "Linz"]
    days: typing.Literal[1, 2, 3]


class OpenAi(SdkTest):
    def test_models_and_errors(self):
        (model,) = self.openai.models.list().data
        self.assertEqual(model.id, "tales-llama-7m-q4_k_m")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.chat.completions.create(model="m", messages=STORY, temperature=-1)
        self.assertEqual(caught.exception.param, "temperature")
        with self.assertRaises(openai.AuthenticationError):
            self.openai.with_options(api_key="other").models.list()

    def test_chat(self):
        whole = self.openai.chat.completions.create(model="m", messages=STORY, max_completion_tokens=12, logprobs=True, top_logprobs=2)
        self.assertEqual(whole.usage.completion_tokens, 12)
        self.assertEqual(len(whole.choices[0].logprobs.content[0].top_logprobs), 2)
        stream = self.openai.chat.completions.create(model="m", messages=STORY, max_completion_tokens=12, stream=True,
                                                     stream_options={"include_usage": True})
        chunks = list(stream)
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage, whole.usage)

    def test_chat_stream_helper(self):
        # The helper takes no answer that was cut off.
        ended = {"model": "m", "messages": STORY, "max_completion_tokens": 100, "extra_body": {"grammar": 'root ::= "A bear went home."'}}
        with self.openai.chat.completions.stream(**ended, logprobs=True) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_completion()
        self.assertIn("content.delta", kinds)
        self.assertIn("content.done", kinds)
        self.assertIn("logprobs.content.delta", kinds)
        whole = self.openai.chat.completions.create(**ended)
        self.assertEqual(final.choices[0].message.content, whole.choices[0].message.content)

    def test_parse(self):
        schema = {"max_completion_tokens": 200, "extra_body": {"seed": 3, "temperature": 0.5}}
        parsed = self.openai.chat.completions.parse(model="m", messages=STORY, response_format=Weather, **schema)
        self.assertIsInstance(parsed.choices[0].message.parsed, Weather)
        response = self.openai.responses.parse(model="m", input="Weather?", text_format=Weather, max_output_tokens=200)
        self.assertIsInstance(response.output_parsed, Weather)

    def test_tools(self):
        whole = self.openai.chat.completions.create(model="m", messages=USER, tools=[FUNCTION], extra_body={"grammar": GRAMMAR})
        (call,) = whole.choices[0].message.tool_calls
        self.assertEqual(json.loads(call.function.arguments), ARGUMENTS)
        again = self.openai.chat.completions.create(model="m", max_tokens=3, tools=[FUNCTION], messages=USER + [
            whole.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "Sun."}])
        self.assertEqual(again.usage.completion_tokens, 3)
        tool = openai.pydantic_function_tool(Weather, name="weather")
        with self.openai.chat.completions.stream(model="m", messages=USER, tools=[tool], tool_choice="required", max_tokens=200) as stream:
            events = list(stream)
            final = stream.get_final_completion()
        self.assertIn("tool_calls.function.arguments.done", [event.type for event in events])
        self.assertIsInstance(final.choices[0].message.tool_calls[0].function.parsed_arguments, Weather)

    def test_completions_and_vectors(self):
        answer = self.openai.completions.create(model="m", prompt=["Once upon", "A bear"], max_tokens=4, logprobs=1, echo=True)
        self.assertEqual(len(answer.choices), 2)
        self.assertIsNone(answer.choices[0].logprobs.token_logprobs[0])
        streamed = list(self.openai.completions.create(model="m", prompt="Once upon", max_tokens=4, stream=True))
        self.assertTrue(answer.choices[0].text.endswith("".join(chunk.choices[0].text for chunk in streamed)))
        vectors = self.openai.embeddings.create(model="m", input=["a", "b"])  # in base64, as the package asks
        self.assertEqual([len(each.embedding) for each in vectors.data], [256, 256])

    def test_responses(self):
        whole = self.openai.responses.create(model="m", input="Tell me a story about a bear.", instructions="Be brief.", max_output_tokens=12)
        self.assertEqual((whole.status, whole.usage.output_tokens), ("incomplete", 12))
        with self.openai.responses.stream(model="m", input="Tell me a story about a bear.", instructions="Be brief.", max_output_tokens=12) as stream:
            events = list(stream)
        self.assertEqual([event.sequence_number for event in events if hasattr(event, "sequence_number")], list(range(len(events))))
        self.assertEqual("".join(event.delta for event in events if event.type == "response.output_text.delta"), whole.output_text)
        self.assertEqual(events[-1].type, "response.incomplete")
        tool = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}
        called = self.openai.responses.create(model="m", input="Weather?", tools=[tool], extra_body={"grammar": GRAMMAR})
        (call,) = called.output
        self.assertEqual((call.name, json.loads(call.arguments)), ("weather", ARGUMENTS))
        more = self.openai.responses.create(model="m", tools=[tool], max_output_tokens=16, input=[
            {"role": "user", "content": "Weather?"}, call, {"type": "function_call_output", "call_id": call.call_id, "output": "Sun."}])
        self.assertTrue(more.output)

    def test_many_at_once(self):
        expected = self.openai.chat.completions.create(model="m", messages=STORY, max_tokens=10).choices[0].message.content

        def ask(number):
            if number % 2:
                return self.openai.chat.completions.create(model="m", messages=STORY, max_tokens=10).choices[0].message.content
            return "".join(chunk.choices[0].delta.content or "" for chunk in self.openai.chat.completions.create(
                model="m", messages=STORY, max_tokens=10, stream=True))
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            self.assertEqual(set(pool.map(ask, range(64))), {expected})

    def test_metrics(self):
        text = self.server.ask("GET", "/metrics", headers={"Authorization": "Bearer secret"})[1]
        families = {family.name: family for family in prometheus_client.parser.text_string_to_metric_families(text)}
        for name in ("llamacpp:prompt_tokens", "llamacpp:requests_processing", "vllm:time_to_first_token_seconds", "vllm:num_requests_running"):
            self.assertIn(name, families)
        buckets = [sample.value for sample in families["vllm:time_to_first_token_seconds"].samples if sample.name.endswith("_bucket")]
        self.assertEqual(buckets, sorted(buckets))


class Anthropic(SdkTest):
    TOOL = {"name": "weather", "description": "Tells the weather.", "input_schema": SCHEMA}

    def test_messages(self):
        whole = self.anthropic.messages.create(model="m", max_tokens=12, system="Be brief.", messages=STORY)
        self.assertEqual((whole.stop_reason, whole.usage.output_tokens, whole.content[0].type), ("max_tokens", 12, "text"))
        with self.anthropic.messages.stream(model="m", max_tokens=12, system="Be brief.", messages=STORY) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual((text, final.content[0].text), (whole.content[0].text,) * 2)
        self.assertEqual((final.usage.output_tokens, final.stop_reason), (12, "max_tokens"))
        counted = self.anthropic.messages.count_tokens(model="m", system="Be brief.", messages=STORY)
        self.assertEqual(counted.input_tokens, whole.usage.input_tokens + (whole.usage.cache_read_input_tokens or 0))

    def test_tools(self):
        more = {"extra_body": {"grammar": GRAMMAR}}
        whole = self.anthropic.messages.create(model="m", max_tokens=200, messages=USER, tools=[self.TOOL], **more)
        (block,) = whole.content
        self.assertEqual((block.type, block.name, block.input), ("tool_use", "weather", ARGUMENTS))
        with self.anthropic.messages.stream(model="m", max_tokens=200, messages=USER, tools=[self.TOOL], **more) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_message()
        self.assertIn("input_json", kinds)
        self.assertEqual(final.content[0].input, ARGUMENTS)
        again = self.anthropic.messages.create(model="m", max_tokens=3, tools=[self.TOOL], messages=USER + [
            {"role": "assistant", "content": whole.content}, {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": block.id, "content": "Sun."}]}])
        self.assertEqual(again.usage.output_tokens, 3)

    def test_thinking(self):
        more = {"thinking": {"type": "enabled", "budget_tokens": 5}, "extra_body": {"ignore_eos": True}}
        with self.anthropic.messages.stream(model="m", max_tokens=20, messages=USER, **more) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_message()
        self.assertLessEqual({"thinking", "signature", "text"}, kinds)
        self.assertEqual([block.type for block in final.content], ["thinking", "text"])
        self.assertTrue(final.content[0].signature)
        again = self.anthropic.messages.create(model="m", max_tokens=3, messages=USER + [{"role": "assistant", "content": final.content}, *USER])
        self.assertEqual(again.usage.output_tokens, 3)

    def test_errors(self):
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.anthropic.messages.create(model="m", max_tokens=1, messages=[])
        self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
        with self.assertRaises(anthropic.AuthenticationError):
            self.anthropic.with_options(api_key="other").messages.create(model="m", max_tokens=1, messages=STORY)

    def test_many_at_once(self):
        def ask(_):
            with self.anthropic.messages.stream(model="m", max_tokens=8, messages=STORY) as stream:
                return "".join(stream.text_stream)
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            self.assertEqual(len(set(pool.map(ask, range(64)))), 1)


if __name__ == "__main__":
    main()
