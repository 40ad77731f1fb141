"""Calls of tools and reasoning in the form of each API. A grammar makes the model write a call, and a limit closes its reasoning."""
import json
import pathlib
import tempfile

from server import ServerTest, main

TEMPLATE = """{%- for m in messages %}{{ m.role }}: {{ m.content }}
{% for call in m.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}{% endfor %}
{%- if tools %}Tools: {{ tools | tojson }}. Write <tool_call>{"name": NAME, "arguments": {}}</tool_call>.
{% endif %}{% if add_generation_prompt %}assistant: {% if enable_thinking %}<think>
{% else %}<think></think>{% endif %}{% endif %}"""
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Graz", "days": 2}}</tool_call>'
GRAMMAR = 'root ::= "' + CALL.replace('"', '\\"') + '"'
ARGUMENTS = {"city": "Graz", "days": 2}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
FUNCTION = {"type": "function", "function": {"name": "weather", "description": "Tells the weather.", "parameters": SCHEMA}}
USER = [{"role": "user", "content": "How is the weather?"}]


class Calls(ServerTest):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "template.jinja"
            path.write_text(TEMPLATE)
            cls.ARGS = ("--chat-template-file", path, "--temp", 0)
            super().setUpClass()

    def chat(self, **more):
        return {"messages": USER, "tools": [FUNCTION], "grammar": GRAMMAR, "max_tokens": 120, **more}

    def test_chat_completions(self):
        choice = self.server.post("/v1/chat/completions", self.chat())["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        self.assertIsNone(choice["message"]["content"])
        (call,) = choice["message"]["tool_calls"]
        self.assertEqual((call["type"], call["function"]["name"]), ("function", "weather"))
        self.assertEqual(json.loads(call["function"]["arguments"]), ARGUMENTS)
        chunks = [data for _, data in self.server.events("/v1/chat/completions", self.chat(stream=True))][:-1]
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
        parts = [part for delta in deltas for part in delta.get("tool_calls", [])]
        self.assertEqual([part["index"] for part in parts], [0] * len(parts))
        self.assertEqual([("id" in part, "name" in part["function"]) for part in parts], [(True, True)] + [(False, False)] * (len(parts) - 1))
        self.assertGreater(len(parts), 4)  # in pieces
        self.assertEqual("".join(part["function"]["arguments"] for part in parts), call["function"]["arguments"])
        self.assertEqual(json.loads("".join(part["function"]["arguments"] for part in parts)), ARGUMENTS)
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], "tool_calls")
        # And back: the call with its result.
        messages = USER + [choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "Sun."}]
        answer = self.server.post("/v1/chat/completions", {"messages": messages, "tools": [FUNCTION], "max_tokens": 2})
        self.assertEqual(answer["usage"]["completion_tokens"], 2)

    def test_a_call_is_forced(self):
        places = {"type": "object", "properties": {"place": {"enum": ["Graz", "Linz"]}}, "required": ["place"], "additionalProperties": False}
        tools = [{"type": "function", "function": {"name": name, "parameters": places}} for name in ("sun", "rain")]
        rain = {"type": "function", "function": {"name": "rain"}}
        for choice, names in (("required", {"sun", "rain"}), (rain, {"rain"})):
            body = {"messages": USER, "tools": tools, "tool_choice": choice, "parallel_tool_calls": False, "max_tokens": 200}
            answer = self.server.post("/v1/chat/completions", body)["choices"][0]
            self.assertEqual(answer["finish_reason"], "tool_calls")
            (call,) = answer["message"]["tool_calls"]
            self.assertIn(call["function"]["name"], names)
            self.assertIn(json.loads(call["function"]["arguments"]), [{"place": "Graz"}, {"place": "Linz"}])
        body = {"messages": USER, "max_tokens": 200, "tools": [{"name": "rain", "input_schema": places}], "tool_choice": {"type": "tool", "name": "rain"}}
        answer = self.server.post("/v1/messages", body)
        self.assertEqual((answer["stop_reason"], answer["content"][-1]["name"]), ("tool_use", "rain"))

    def test_no_tools_no_calls(self):
        for more in ({"tools": None}, {"tool_choice": "none"}):
            message = self.server.post("/v1/chat/completions", self.chat(**more))["choices"][0]["message"]
            self.assertNotIn("tool_calls", message)
            self.assertEqual(message["content"], CALL)

    def test_messages(self):
        tool = {"name": "weather", "description": "Tells the weather.", "input_schema": SCHEMA}
        body = {"messages": USER, "max_tokens": 120, "tools": [tool], "grammar": GRAMMAR}
        answer = self.server.post("/v1/messages", body)
        self.assertEqual(answer["stop_reason"], "tool_use")
        self.assertEqual([(block["type"], block["name"], block["input"]) for block in answer["content"]], [("tool_use", "weather", ARGUMENTS)])
        events = list(self.server.events("/v1/messages", {**body, "stream": True}))
        names, deltas = [name for name, _ in events], [data["delta"] for name, data in events if name == "content_block_delta"]
        self.assertGreater(len(deltas), 3)
        self.assertEqual(names, ["message_start", "content_block_start"] + ["content_block_delta"] * len(deltas) +
                         ["content_block_stop", "message_delta", "message_stop"])
        self.assertEqual((events[1][1]["content_block"]["name"], events[1][1]["content_block"]["input"]), ("weather", {}))
        self.assertEqual(json.loads("".join(delta["partial_json"] for delta in deltas)), ARGUMENTS)
        back = USER + [{"role": "assistant", "content": answer["content"]},
                       {"role": "user", "content": [{"type": "tool_result", "tool_use_id": answer["content"][0]["id"], "content": "Sun."}]}]
        self.assertEqual(self.server.post("/v1/messages", {"messages": back, "max_tokens": 2, "tools": [tool]})["usage"]["output_tokens"], 2)

    def test_a_call_is_cut(self):
        """The answer ends within the call: what has come stays a call, and none is whole."""
        most = self.server.post("/v1/chat/completions", self.chat())["usage"]["completion_tokens"] - 12
        body = {"messages": USER, "max_tokens": most, "grammar": GRAMMAR, "stream": True}
        chunks = [data for _, data in self.server.events("/v1/chat/completions", {**body, "tools": [FUNCTION]})][:-1]
        parts = [part for chunk in chunks for part in chunk["choices"][0]["delta"].get("tool_calls", [])]
        self.assertEqual(parts[0]["function"]["name"], "weather")
        self.assertTrue(json.dumps(ARGUMENTS).startswith("".join(part["function"]["arguments"] for part in parts)))
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], "length")
        tool = {"name": "weather", "input_schema": SCHEMA}
        events = list(self.server.events("/v1/messages", {**body, "tools": [tool]}))
        self.assertEqual([name for name, _ in events][-3:], ["content_block_stop", "message_delta", "message_stop"])
        self.assertEqual(events[-2][1]["delta"]["stop_reason"], "max_tokens")
        del body["max_tokens"]
        del body["messages"]
        body.update(input="How is the weather?", max_output_tokens=most, tools=[{"type": "function", "name": "weather", "parameters": SCHEMA}])
        events = list(self.server.events("/v1/responses", body))
        self.assertEqual([name for name, _ in events][-3:], ["response.function_call_arguments.done", "response.output_item.done", "response.incomplete"])
        self.assertEqual(events[-1][1]["response"]["output"][0]["status"], "incomplete")

    def test_ollama(self):
        body = {"model": "m", "messages": USER, "tools": [FUNCTION], "stream": False, "options": {"grammar": GRAMMAR, "num_predict": 120}}
        (call,) = self.server.post("/api/chat", body)["message"]["tool_calls"]
        self.assertEqual(call["function"], {"name": "weather", "arguments": ARGUMENTS})

    def test_responses(self):
        tool = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}
        body = {"input": "How is the weather?", "tools": [tool], "grammar": GRAMMAR, "max_output_tokens": 120}
        answer = self.server.post("/v1/responses", body)
        (call,) = answer["output"]
        self.assertEqual((call["type"], call["name"], json.loads(call["arguments"])), ("function_call", "weather", ARGUMENTS))
        self.assertEqual(answer["status"], "completed")
        events = list(self.server.events("/v1/responses", {**body, "stream": True}))
        deltas = [data["delta"] for name, data in events if name == "response.function_call_arguments.delta"]
        self.assertGreater(len(deltas), 3)
        self.assertEqual([name for name, _ in events][2:-1], ["response.output_item.added"] + ["response.function_call_arguments.delta"] * len(deltas) +
                         ["response.function_call_arguments.done", "response.output_item.done"])
        self.assertEqual("".join(deltas), call["arguments"])
        self.assertEqual(events[-3][1]["arguments"], call["arguments"])
        self.assertEqual(events[-1][1]["response"]["output"][0]["name"], "weather")
        custom = {"type": "custom", "name": "weather"}
        text = '<tool_call>{"name": "weather", "arguments": {"input": "Graz"}}</tool_call>'
        grammar = 'root ::= "' + text.replace('"', '\\"') + '"'
        (call,) = self.server.post("/v1/responses", {**body, "tools": [custom], "grammar": grammar})["output"]
        self.assertEqual((call["type"], call["input"]), ("custom_tool_call", "Graz"))

    def test_reasoning(self):
        thinking = {"chat_template_kwargs": {"enable_thinking": True}, "thinking_budget_tokens": 5, "ignore_eos": True}
        answer = self.server.post("/v1/chat/completions", {"messages": USER, "max_tokens": 20, **thinking})
        message = answer["choices"][0]["message"]
        self.assertTrue(message["reasoning_content"])
        self.assertTrue(message["content"])
        self.assertNotIn("think>", message["content"] + message["reasoning_content"])
        self.assertGreaterEqual(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 5)
        deltas = [data["choices"][0]["delta"] for _, data in self.server.events("/v1/chat/completions", {
            "messages": USER, "max_tokens": 20, "stream": True, **thinking}) if data != "[DONE]"]
        self.assertEqual("".join(delta.get("reasoning_content", "") for delta in deltas), message["reasoning_content"])
        self.assertEqual("".join(delta.get("content", "") for delta in deltas), message["content"])
        body = {"messages": USER, "max_tokens": 20, "thinking": {"type": "enabled", "budget_tokens": 5}, "ignore_eos": True}
        blocks = self.server.post("/v1/messages", body)["content"]
        self.assertEqual([block["type"] for block in blocks], ["thinking", "text"])
        self.assertEqual((blocks[0]["thinking"], blocks[1]["text"]), (message["reasoning_content"], message["content"]))
        self.assertTrue(blocks[0]["signature"])
        kinds = [data["delta"]["type"] for name, data in self.server.events("/v1/messages", {**body, "stream": True})
                 if name == "content_block_delta"]
        self.assertEqual(sorted(set(kinds)), ["signature_delta", "text_delta", "thinking_delta"])
        told = self.server.post("/api/chat", {"messages": USER, "think": True, "stream": False, "options": {
            "num_predict": 20, "thinking_budget_tokens": 5, "ignore_eos": True}})["message"]
        self.assertEqual((told["thinking"], told["content"]), (message["reasoning_content"], message["content"]))
        output = self.server.post("/v1/responses", {"input": USER[0]["content"], "max_output_tokens": 20, **thinking})["output"]
        self.assertEqual([item["type"] for item in output], ["reasoning", "message"])
        self.assertEqual(output[0]["content"][0]["text"], message["reasoning_content"])


if __name__ == "__main__":
    main()
