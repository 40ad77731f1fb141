"""OpenAI's chat completions: whole answers, streams, sampling, probabilities, and clients that leave."""
import json
import socket
import threading
import time

from server import LIMIT, ServerTest, chat_body, main

CHAT = "/v1/chat/completions"


class Chat(ServerTest):
    ARGS = ("--parallel", 4, "--metrics")

    def whole(self, **more):
        return self.server.post(CHAT, chat_body(**more))

    def streamed(self, **more):
        """(text, chunks) of a stream, with its form checked."""
        chunks = [data for _, data in self.server.events(CHAT, chat_body(stream=True, **more))]
        self.assertEqual(chunks.pop(), "[DONE]")
        for chunk in chunks:
            self.assertEqual(chunk["object"], "chat.completion.chunk")
            self.assertEqual(chunk["id"], chunks[0]["id"])
        self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
        roles = sum("role" in choice["delta"] for chunk in chunks for choice in chunk["choices"])
        self.assertEqual(roles, more.get("n", 1))
        text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"] if choice["index"] == 0)
        return text, chunks

    def test_whole_and_streamed_are_the_same(self):
        for path in (CHAT, "/chat/completions"):
            self.assertEqual(self.server.post(path, chat_body())["choices"][0]["message"], self.whole()["choices"][0]["message"])
        answer = self.whole(max_tokens=20)
        choice = answer["choices"][0]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertEqual(choice["message"]["role"], "assistant")
        text, chunks = self.streamed(max_tokens=20)
        self.assertEqual(text, choice["message"]["content"])
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], "length")
        self.assertNotIn("usage", chunks[-1])
        self.assertEqual(chunks[-1]["timings"]["predicted_n"], 20)

    def test_usage(self):
        usage = self.whole(max_tokens=5)["usage"]
        self.assertEqual(usage["completion_tokens"], 5)
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + 5)
        long = "Once upon a time there was a bear. " * 20
        self.whole(text=long, cache_salt="mine")
        first = self.whole(text=long, cache_salt="mine")
        self.assertGreaterEqual(first["usage"]["prompt_tokens_details"]["cached_tokens"], 64)
        self.assertEqual(first["timings"]["cache_n"], first["usage"]["prompt_tokens_details"]["cached_tokens"])
        for more in ({"cache_salt": "other"}, {"cache_salt": "mine", "cache_prompt": False}):
            self.assertEqual(self.whole(text=long, **more)["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        chunks = self.streamed(max_tokens=5, stream_options={"include_usage": True})[1]
        self.assertEqual((chunks[-1]["choices"], chunks[-1]["usage"]["completion_tokens"]), ([], 5))

    def test_limits_have_many_names(self):
        for name in ("max_completion_tokens", "max_tokens", "n_predict"):
            body = {**chat_body(), name: 3}
            if name != "max_tokens":
                body["max_tokens"] = None
            self.assertEqual(self.server.post(CHAT, body)["usage"]["completion_tokens"], 3)

    def test_seeds_and_choices(self):
        hot = {"temperature": 1.5, "max_tokens": 12}
        one, again, other = (self.whole(seed=seed, **hot)["choices"][0]["message"]["content"] for seed in (7, 7, 8))
        self.assertEqual(one, again)
        self.assertNotEqual(one, other)
        answer = self.whole(seed=7, n=3, **hot)
        texts = [choice["message"]["content"] for choice in answer["choices"]]
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2])
        self.assertEqual(texts[:2], [one, other])  # the seeds are 7, 8 and 9
        self.assertEqual(answer["usage"]["completion_tokens"], 36)
        self.assertEqual(self.streamed(seed=7, n=3, **hot)[0], one)
        unseeded = {self.whole(**hot)["choices"][0]["message"]["content"] for _ in range(4)}
        self.assertGreater(len(unseeded), 1)

    def test_more_choices_than_places(self):
        answer = self.whole(n=40, seed=1, temperature=1, max_tokens=2)
        self.assertEqual([choice["index"] for choice in answer["choices"]], list(range(40)))
        self.assertEqual(answer["usage"]["completion_tokens"], 80)

    def test_stop(self):
        text = self.whole(max_tokens=30)["choices"][0]["message"]["content"]
        stop = text[10:14]
        choice = self.whole(max_tokens=30, stop=stop)["choices"][0]
        self.assertEqual((choice["message"]["content"], choice["finish_reason"]), (text[:text.index(stop)], "stop"))
        self.assertEqual(self.streamed(max_tokens=30, stop=["zzzz", stop])[0], text[:text.index(stop)])

    def test_logprobs(self):
        choice = self.whole(logprobs=True, top_logprobs=3, max_tokens=6)["choices"][0]
        tokens = choice["logprobs"]["content"]
        self.assertEqual(len(tokens), 6)
        self.assertEqual("".join(token["token"] for token in tokens).strip(), choice["message"]["content"].strip())
        for token in tokens:
            self.assertLessEqual(token["logprob"], 0)
            self.assertEqual(len(token["top_logprobs"]), 3)
            self.assertEqual(token["top_logprobs"][0]["logprob"], token["logprob"])  # the likeliest was taken
            self.assertEqual(bytes(token["bytes"]).decode(), token["token"])
        chunks = self.streamed(logprobs=True, max_tokens=6)[1]
        streamed = [each for chunk in chunks for choice in chunk["choices"] if "logprobs" in choice for each in choice["logprobs"]["content"]]
        self.assertEqual([each["token"] for each in streamed], [each["token"] for each in tokens])

    def test_bias_and_grammar(self):
        first = self.whole(logprobs=True, max_tokens=1)["choices"][0]["logprobs"]["content"][0]
        for bias in ({str(first["id"]): -100000000}, [[first["id"], False]]):
            other = self.whole(logprobs=True, max_tokens=1, logit_bias=bias)["choices"][0]["logprobs"]["content"][0]
            self.assertNotEqual(other["id"], first["id"])
        self.assertEqual(self.whole(grammar='root ::= "yes" | "no"')["choices"][0]["message"]["content"] in ("yes", "no"), True)
        schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["age"],
                  "additionalProperties": False}
        for form in ({"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}},
                     {"type": "json_object", "schema": schema}):
            text = self.whole(response_format=form, max_tokens=60)["choices"][0]["message"]["content"]
            self.assertIn(json.loads(text)["age"], range(1, 10))
        strict = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": {"type": "string", "pattern": "^(a)\\1$"}}}
        self.refused(400, "", "POST", CHAT, chat_body(response_format=strict))

    def test_messages(self):
        """Messages of the system are one, at the beginning; parts of a content are its lines."""
        base = self.server.post(CHAT, {"messages": [{"role": "system", "content": "A\n\nB\n\nC"}, {"role": "user", "content": "Hi\nthere"}],
                                       "max_tokens": 8, "temperature": 0})
        other = self.server.post(CHAT, {"messages": [
            {"role": "developer", "content": "A"}, {"role": "system", "content": [{"type": "text", "text": "B"}]},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "there"}]},
            {"role": "system", "content": "C"}], "max_tokens": 8, "temperature": 0})
        self.assertEqual(base["choices"][0]["message"], other["choices"][0]["message"])
        self.assertEqual(base["usage"]["prompt_tokens"], other["usage"]["prompt_tokens"])

    def test_an_answer_that_goes_on(self):
        """With the assistant's message at the end, the answer goes on behind its text."""
        first = self.whole(max_tokens=6)["choices"][0]["message"]["content"]
        both = self.whole(max_tokens=14)["choices"][0]["message"]["content"]
        messages = chat_body()["messages"] + [{"role": "assistant", "content": first}]
        for more in ({}, {"continue_final_message": True, "add_generation_prompt": False}):
            body = {"messages": messages, "max_tokens": 8, "temperature": 0, **more}
            rest = self.server.post(CHAT, body)["choices"][0]["message"]["content"]
            self.assertEqual((first + rest).split(), both.split())
        self.refused(400, "continue_final_message needs", "POST", CHAT, chat_body(continue_final_message=True))

    def test_tools_of_other_types_are_skipped(self):
        tools = [{"type": "web_search"}, {"type": "custom", "name": "x"}]
        status, _, headers = self.server.ask("POST", CHAT, chat_body(tools=tools))
        self.assertEqual((status, headers["x-greta-skipped-tools"]), (200, "web_search, custom"))

    def counts(self):
        """How many run or wait, and how many were cancelled."""
        text = self.server.ask("GET", "/metrics")[1]
        found = {line.split(" ")[0]: float(line.split(" ")[1]) for line in text.splitlines() if line.startswith("llamacpp:")}
        aborted = next(line for line in text.splitlines() if 'finished_reason="abort"' in line)
        return found["llamacpp:requests_processing"] + found["llamacpp:requests_deferred"], int(aborted.split(" ")[1])

    def test_a_client_that_leaves_cancels(self):
        """In a stream, and while an answer is waited for as a whole. Each would take 1000 tokens else."""
        self.wait_until(lambda: self.counts()[0] == 0)
        endless = chat_body(max_tokens=-1, ignore_eos=True, temperature=1)
        for stream in (True, False):
            body = json.dumps({**endless, "stream": stream}).encode()
            links, before = [], self.counts()[1]
            for _ in range(20):  # most of them wait
                link = self.server.connect()
                link.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                links.append(link)
            self.wait_until(lambda: self.counts()[0] > 4)  # at least one waits
            for link in links:
                link.close()
            self.wait_until(lambda: self.counts()[0] == 0)
            self.wait_until(lambda: self.counts()[1] - before > 4)  # They are counted when their ends are read.

    def test_many_at_once(self):
        answers = [None] * 20
        expected = self.whole(max_tokens=10)["choices"][0]["message"]["content"]

        def ask(i):
            answers[i] = self.server.ask("POST", CHAT, chat_body(max_tokens=10))
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(answers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        self.assertEqual({status for status, _, _ in answers}, {200})
        self.assertIn(expected, [answer["choices"][0]["message"]["content"] for _, answer, _ in answers])


class Stalls(ServerTest):
    ARGS = ("--parallel", 5, "--sse-ping-interval", 1)

    def test_a_reader_that_stalls(self):
        """It holds its own stream only. A stream that waits for a place gets its head and comments meanwhile."""
        body = json.dumps(chat_body(stream=True, n=4, max_tokens=900, ignore_eos=True, temperature=1, logprobs=True, top_logprobs=20,
                                    stream_options={"include_usage": True})).encode()
        with socket.socket() as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.settimeout(LIMIT)
            stalled.connect((self.server.host, self.server.port))
            stalled.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                            b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.assertIn(b"200 OK", stalled.recv(100))
            for _ in range(3):  # the fifth place is free
                self.assertEqual(self.server.post(CHAT, chat_body())["usage"]["completion_tokens"], 8)
            fifth = self.server.stream(CHAT, chat_body(stream=True, max_tokens=900, ignore_eos=True, n=2))
            self.assertIn("data: ", next(fifth))
            sixth = self.server.stream(CHAT, chat_body(stream=True, max_tokens=1))
            first = next(line for line in sixth if line)
            fifth.close()
            self.assertIn(first[:5], (":", "data:"))
            list(sixth)
            time.sleep(2.5)  # until nothing more fits
            answer = b""
            while piece := stalled.recv(1 << 20):
                answer += piece
        self.assertIn(b'"completion_tokens":3600', answer)
        self.assertTrue(answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), answer[-100:])
        self.assertGreater(len(answer), 5 << 20)

    def test_comments(self):
        """One stream stalls in each place; a further one waits, and hears of it each second."""
        body = json.dumps(chat_body(stream=True, n=5, max_tokens=900, ignore_eos=True, temperature=1, logprobs=True,
                                    top_logprobs=20)).encode()
        link = socket.socket()
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.connect((self.server.host, self.server.port))
        link.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.assertIn(b"200 OK", link.recv(100))
        lines = self.server.stream(CHAT, chat_body(stream=True, max_tokens=1))
        self.assertEqual([next(lines), next(lines), next(lines)], [":", "", ":"])
        link.close()
        self.assertIn("data: [DONE]", list(lines))


if __name__ == "__main__":
    main()
