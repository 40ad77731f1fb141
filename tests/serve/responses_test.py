"""OpenAI's responses: every typed event in order, histories of all items, tools that are no functions, probes."""
from server import ServerTest, chat_body, main

RESPONSES = "/v1/responses"
FUNCTION = {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}


class Responses(ServerTest):
    def ask(self, **more):
        return self.server.post(RESPONSES, {"model": "any", "input": "Tell me a story.", "temperature": 0, "max_output_tokens": 8, **more})

    def test_whole(self):
        told = self.server.post("/v1/chat/completions", chat_body())
        answer = self.ask()
        self.assertEqual((answer["object"], answer["model"], answer["status"]), ("response", "any", "incomplete"))
        self.assertEqual(answer["incomplete_details"], {"reason": "max_output_tokens"})
        message = answer["output"][0]
        self.assertEqual((message["type"], message["role"], message["status"]), ("message", "assistant", "completed"))
        self.assertEqual(message["content"][0]["text"], told["choices"][0]["message"]["content"])
        self.assertEqual(answer["usage"]["output_tokens"], 8)
        self.assertEqual(answer["usage"]["input_tokens"], told["usage"]["prompt_tokens"])
        self.assertEqual(self.ask(stop=message["content"][0]["text"][4:8])["status"], "completed")

    def test_events(self):
        events = list(self.server.events(RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Tell me a story."}]}],
                                                     "temperature": 0, "max_output_tokens": 8, "stream": True}))
        names = [name for name, _ in events]
        self.assertEqual([data["type"] for _, data in events], names)
        self.assertEqual([data["sequence_number"] for _, data in events], list(range(len(events))))
        self.assertEqual(names[:4], ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"])
        self.assertEqual(names[-4:], ["response.output_text.done", "response.content_part.done", "response.output_item.done",
                                      "response.incomplete"])
        self.assertEqual(set(names[4:-4]), {"response.output_text.delta"})
        text = "".join(data["delta"] for name, data in events if name == "response.output_text.delta")
        last = events[-1][1]["response"]
        self.assertEqual(last["output"][0]["content"][0]["text"], text)
        self.assertEqual(text, self.ask()["output"][0]["content"][0]["text"])
        item = events[2][1]["item"]["id"]
        for _, data in events[3:-2]:
            self.assertEqual((data["item_id"], data["output_index"], data["content_index"]), (item, 0, 0))
        self.assertEqual({data["response"]["id"] for _, data in events if "response" in data}, {last["id"]})

    def test_histories(self):
        """What Codex sends back: every item is taken, and those that say nothing to the model are left out."""
        items = [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
                 {"type": "message", "role": "user", "content": "Look."},
                 {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}], "encrypted_content": None},
                 {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
                 {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
                 {"type": "function_call_output", "call_id": "c1", "output": "A bear."},
                 {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "x"},
                 {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
                 {"type": "local_shell_call", "call_id": "c3", "action": {}}, {"type": "web_search_call", "id": "w"},
                 {"type": "message", "role": "user", "content": "Well?"}]
        answer = self.ask(input=items, instructions="You help.", tools=[FUNCTION], store=False, include=["reasoning.encrypted_content"],
                          parallel_tool_calls=False, reasoning={"effort": "low", "summary": "auto"}, prompt_cache_key="k")
        self.assertEqual(answer["usage"]["output_tokens"], 8)

    def test_tools_that_are_no_functions(self):
        tools = [FUNCTION, {"type": "web_search"}, {"type": "custom", "name": "patch"}, {"type": "image_generation"},
                 {"type": "namespace", "name": "files", "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}]}]
        status, _, headers = self.server.ask("POST", RESPONSES, {"input": "Hi", "max_output_tokens": 2, "tools": tools})
        self.assertEqual((status, headers["x-greta-skipped-tools"]), (200, "web_search, image_generation"))

    def test_a_probe_is_answered(self):
        for body in ({"input": "", "max_output_tokens": 1}, {"input": [], "instructions": "You help.", "max_output_tokens": 1}, {}):
            answer = self.server.post(RESPONSES, body)
            self.assertEqual((answer["status"], answer["output"], answer["usage"]["total_tokens"]), ("completed", [], 0))
        names = [name for name, _ in self.server.events(RESPONSES, {"input": "", "stream": True})]
        self.assertEqual(names, ["response.created", "response.in_progress", "response.completed"])

    def test_what_is_refused(self):
        for body, words in (({"input": "a", "previous_response_id": "resp_1"}, "no response is kept here"), ({"input": 5}, "input must be a list"),
                            ({"input": [1]}, "input[0] must be an object"), ({"input": [{"role": "user", "content": 5}]}, "input[0].content must be"),
                            ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "only text is read"),
                            ({"input": "a", "tools": [{"type": "function"}]}, "tools[0].name is missing"),
                            ({"input": "a", "max_output_tokens": 1.5}, "max_output_tokens must be a whole number"),
                            ({"input": "a", "text": {"format": {"type": "xml"}}}, "text.format.type must be one of")):
            self.refused(400, words, "POST", RESPONSES, body)
        form = {"format": {"type": "json_schema", "name": "x", "strict": True, "schema": {"enum": ["a", "b"]}}}
        self.assertIn(self.ask(text=form)["output"][0]["content"][0]["text"], ('"a"', '"b"'))


if __name__ == "__main__":
    main()
