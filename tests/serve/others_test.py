"""The APIs of Anthropic and Ollama."""
import json

from server import MODEL, ServerTest, chat_body, main

MESSAGES = "/v1/messages"
TOOL = {"name": "weather", "description": "Tells the weather.", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


def ask_body(text="Tell me a story.", **more):
    return {"model": "any", "max_tokens": 8, "temperature": 0, "messages": [{"role": "user", "content": text}], **more}


class Anthropic(ServerTest):
    def test_whole(self):
        told = self.server.post("/v1/chat/completions", chat_body())
        answer = self.server.post(MESSAGES, ask_body())
        self.assertEqual((answer["type"], answer["role"], answer["model"]), ("message", "assistant", "any"))
        self.assertEqual(answer["content"], [{"type": "text", "text": told["choices"][0]["message"]["content"]}])
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]), ("max_tokens", None))
        usage = answer["usage"]
        self.assertEqual(usage["output_tokens"], 8)
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"], told["usage"]["prompt_tokens"])

    def test_events(self):
        expected = self.server.post(MESSAGES, ask_body())
        events = list(self.server.events(MESSAGES, ask_body(stream=True)))
        for name, data in events:
            self.assertEqual(data["type"], name)
        names = [name for name, _ in events]
        self.assertEqual(names[:2], ["message_start", "content_block_start"])
        self.assertEqual(names[-3:], ["content_block_stop", "message_delta", "message_stop"])
        self.assertEqual(set(names[2:-3]), {"content_block_delta"})
        self.assertEqual("".join(data["delta"]["text"] for name, data in events if name == "content_block_delta"),
                         expected["content"][0]["text"])
        start = events[0][1]["message"]
        self.assertEqual((start["content"], start["stop_reason"]), ([], None))
        self.assertEqual(start["usage"]["input_tokens"] + start["usage"]["cache_read_input_tokens"],
                         expected["usage"]["input_tokens"] + expected["usage"]["cache_read_input_tokens"])
        self.assertEqual(events[-2][1]["delta"]["stop_reason"], "max_tokens")
        self.assertEqual(events[-2][1]["usage"]["output_tokens"], 8)

    def test_stop_sequences(self):
        text = self.server.post(MESSAGES, ask_body(max_tokens=20))["content"][0]["text"]
        answer = self.server.post(MESSAGES, ask_body(max_tokens=20, stop_sequences=["zzz", text[8:12]]))
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]), ("stop_sequence", text[8:12]))

    def test_counts_are_those_of_what_runs(self):
        for body in (ask_body("Hello there."), ask_body("Hello.", system="Be brief."), ask_body("Hello.", tools=[TOOL]),
                     ask_body([{"type": "text", "text": "Hello."}, {"type": "text", "text": "You."}], system=[{"type": "text", "text": "A"}])):
            counted = self.server.post(MESSAGES + "/count_tokens", {key: body[key] for key in body if key != "max_tokens"})["input_tokens"]
            usage = self.server.post(MESSAGES, body)["usage"]
            self.assertEqual(counted, usage["input_tokens"] + usage["cache_read_input_tokens"])
        long = self.server.post(MESSAGES + "/count_tokens", ask_body("word " * 20000))["input_tokens"]
        self.assertGreater(long, 20000)  # also where it would not fit

    def test_the_billing_header_is_dropped(self):
        """It changes with each request, and would empty the cache."""
        system = "You are a helper who tells long stories about bears and foxes in the woods. " * 6
        read = []
        for i in range(3):
            body = ask_body(system=[{"type": "text", "text": f"x-anthropic-billing-header: cc_version=2; cch={i}{i}a;"},
                                    {"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}])
            read.append(self.server.post(MESSAGES, body)["usage"])
        self.assertGreaterEqual(read[2]["cache_read_input_tokens"], 64)
        self.assertEqual(len({usage["input_tokens"] + usage["cache_read_input_tokens"] for usage in read}), 1)

    def test_a_conversation_with_tools_and_thinking(self):
        messages = [{"role": "user", "content": "Weather?"},
                    {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": "I look."},
                                                      {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Graz"}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "Sun."}]},
                                                 {"type": "text", "text": "Well?"}]}]
        self.assertEqual(self.server.post(MESSAGES, ask_body(messages=messages, tools=[TOOL]))["usage"]["output_tokens"], 8)

    def test_errors_have_its_form(self):
        for body, words in ((ask_body(max_tokens=None), "max_tokens is missing"), (ask_body(messages=[]), "messages must be"),
                            (ask_body(temperature="hot"), "temperature must be a number"), (b"{", "no JSON"),
                            (ask_body(tool_choice={"type": "tool", "name": "nobody"}, tools=[TOOL]), "not among tools"),
                            (ask_body(tool_choice={"type": "maybe"}), "tool_choice.type must be one of"),
                            (ask_body(messages=[{"role": "user", "content": [{"type": "image"}]}]), "messages[0].content[0] is of the type image"),
                            (ask_body("word " * 5000), "tokens")):
            status, answer, _ = self.server.ask("POST", MESSAGES, body)
            self.assertEqual((status, answer["type"], answer["error"]["type"]), (400, "error", "invalid_request_error"))
            self.assertIn(words, answer["error"]["message"])
        self.assertEqual(self.server.post(MESSAGES, ask_body())["usage"]["output_tokens"], 8)


class Ollama(ServerTest):
    def lines(self, path, body):
        return [json.loads(line) for line in self.server.stream(path, body) if line]

    def test_models(self):
        self.assertRegex(self.server.ask("GET", "/api/version")[1]["version"], r"^\d+\.\d+\.\d+$")
        models = self.server.ask("GET", "/api/tags")[1]["models"]
        self.assertEqual((models[0]["name"], models[0]["details"]["quantization_level"]), (MODEL.stem, "Q4_K_M"))
        shown = self.server.post("/api/show", {"model": MODEL.stem})
        self.assertEqual(shown["model_info"]["llama.context_length"], 1024)
        self.assertIn("completion", shown["capabilities"])

    def test_chat(self):
        told = self.server.post("/v1/chat/completions", chat_body())["choices"][0]["message"]["content"]
        body = {"model": "m", "messages": chat_body()["messages"], "options": {"num_predict": 8, "temperature": 0}}
        lines = self.lines("/api/chat", body)
        self.assertEqual("".join(line["message"]["content"] for line in lines), told)
        self.assertEqual([line["done"] for line in lines], [False] * (len(lines) - 1) + [True])
        self.assertEqual((lines[-1]["done_reason"], lines[-1]["eval_count"]), ("length", 8))
        whole = self.server.post("/api/chat", {**body, "stream": False})
        self.assertEqual((whole["message"]["content"], whole["done"]), (told, True))

    def test_generate(self):
        options = {"num_predict": 6, "temperature": 0}
        raw = self.server.post("/api/generate", {"prompt": "Once upon a time", "raw": True, "stream": False, "options": options})
        told = self.server.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 6, "temperature": 0})
        self.assertEqual(raw["response"], told["choices"][0]["text"])
        lines = self.lines("/api/generate", {"prompt": "Hi", "system": "Be brief.", "options": options})
        self.assertEqual(lines[-1]["eval_count"], 6)
        self.assertEqual(self.server.post("/api/generate", {"model": "m"})["done_reason"], "load")
        answer = self.server.post("/api/generate", {"prompt": "Hi", "stream": False, "options": {"num_predict": 40}, "format": {"enum": ["a"]}})
        self.assertEqual(json.loads(answer["response"]), "a")

    def test_errors_have_its_form(self):
        for body, words in (({"messages": 5}, "messages must be a list"), ({"messages": [], "options": {"temperature": "x"}}, "options.temperature"),
                            ({"messages": [{"role": "user", "content": "a", "images": ["x"]}]}, "only text is read")):
            status, answer, _ = self.server.ask("POST", "/api/chat", body)
            self.assertEqual((status, list(answer)), (400, ["error"]))
            self.assertIn(words, answer["error"])


if __name__ == "__main__":
    main()
