"""Bodies that are wrong: each has its status and words, and the next request works."""
import json

from server import ServerTest, chat_body, main

CHAT = "/v1/chat/completions"


def with_field(name, value):
    """The body as text, with a value that Python's JSON need not be able to write."""
    text = json.dumps(chat_body())
    return text[:-1] + f', "{name}": {value}}}'


class Bodies(ServerTest):
    ARGS = ("--parallel", 2)

    def bad(self, status, words, body):
        error = self.refused(status, words, "POST", CHAT, body)
        self.assertIsInstance(error["type"], str)
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)
        return error

    def test_what_is_no_json(self):
        for body, words in ((b"", "the body is empty"), (b"{", "no JSON"), (b"[1]", "must be a JSON object"), (b"{\"a\":1}x", "no JSON"),
                            (b'{"a":"\xff"}', "no JSON"), (b'{"a":"\\ud800"}', "no JSON"), (b'{"a":NaN}', "no JSON"),
                            (b'{"a":1e999}', "no JSON"), (b'{"a":"' + b"x" * 1000, "no JSON"), (b"\x00\x01", "no JSON")):
            with self.subTest(body=body[:40]):
                self.bad(400, words, body)

    def test_huge_and_deep(self):
        self.bad(400, "nested deeper than 256", b'{"a":' + b"[" * 100000)
        self.bad(400, "nested deeper than 256", b'{"a":' + b"[" * 300 + b"]" * 300 + b"}")
        self.bad(413, "more than a million values", b'{"a":[' + b"0," * 1200000 + b"0]}")
        self.bad(400, "more than 4096 keys", json.dumps({str(i): 0 for i in range(5000)}))
        self.bad(400, 'the key "a" twice', b'{"a":1,"b":{"a":2},"a":3}')

    def test_numbers(self):
        for name, what in (("temperature", "a number from 0 to 1000000"), ("top_p", "a number from 0 to 1"),
                           ("max_tokens", "a whole number from"), ("top_k", "a whole number from -1"), ("seed", "a whole number"),
                           ("n", "a whole number from 1 to 128"), ("repeat_penalty", "a number from 0.001 to 1000"),
                           ("frequency_penalty", "a number"), ("dry_base", "a number from 1"), ("mirostat", "a whole number from 0 to 2")):
            wrong = ['"5"', "true", "[1]", "{}", "1e300", "-1e300"]
            if "whole" in what:
                wrong += ["1.5", "9223372036854775808"]
            for value in wrong:
                with self.subTest(name=name, value=value):
                    error = self.bad(400, f"{name} must be {what}", with_field(name, value).replace('"max_tokens": 8, ', "").replace(
                        '"temperature": 0, ', ""))
                    self.assertEqual(error["param"], name)
        self.assertEqual(self.server.ask("POST", CHAT, with_field("top_k", "5.0"))[0], 200)
        self.assertEqual(self.server.ask("POST", CHAT, with_field("top_k", "null"))[0], 200)

    def test_types(self):
        for name, value, words in (
                ("messages", '"hi"', "messages must be a list"), ("messages", "[]", "at least one message"),
                ("messages", "[1]", "messages[0] must be an object"), ("messages", "[{}]", "messages[0].role is missing"),
                ("messages", '[{"role":"x"}]', 'messages[0].role must be one of "system"'),
                ("messages", '[{"role":"user","content":5}]', "messages[0].content must be a text or a list of parts"),
                ("stream", '"yes"', "stream must be true or false"), ("stop", "5", "stop must be a text or a list"),
                ("stop", '["a", 1]', "stop must be a text or a list"), ("stop", '"a\\u0000b"', "stop must be without U+0000"), ("tools", "{}", "tools must be a list"),
                ("tools", "[1]", "tools[0] must be an object"), ("tools", '[{"type":"function"}]', "tools[0].function is missing"),
                ("tool_choice", '"maybe"', 'tool_choice must be one of "auto"'),
                ("tool_choice", '{"type":"function","function":{"name":"nobody"}}', 'the tool "nobody", which is not among tools'),
                ("response_format", "5", "response_format must be an object"),
                ("response_format", '{"type":"xml"}', "response_format.type must be one of"),
                ("response_format", '{"type":"json_schema"}', "response_format.json_schema.schema is missing"),
                ("logit_bias", '{"x":1}', "logit_bias must be for ids of tokens"), ("logit_bias", '{"999999":1}', "tokens of the vocabulary"),
                ("logit_bias", '{"5":"x"}', "logit_bias must be"), ("top_logprobs", "3", "top_logprobs needs logprobs"),
                ("stream_options", "1", "stream_options must be an object"), ("chat_template_kwargs", "1", "must be an object")):
            with self.subTest(name=name, value=value):
                body = chat_body()
                body.pop("messages" if name == "messages" else "", None)
                self.bad(400, words, json.dumps(body)[:-1] + f', "{name}": {value}}}')

    def test_what_the_library_refuses(self):
        self.bad(400, "", chat_body(grammar="root ::= ("))
        self.bad(400, "", chat_body(chat_template="{% for"))
        self.bad(400, "", chat_body(samplers=["nothing"]))
        self.bad(400, "", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]})
        error = self.bad(400, "tokens", chat_body("word " * 3000))
        self.assertEqual((error["type"], error["code"]), ("exceed_context_size_error", "context_length_exceeded"))


if __name__ == "__main__":
    main()
