"""The listener: HTTP as it should be and as it should not, who may ask, and how the server starts and stops."""
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
from random import Random

from server import LIMIT, MODEL, PROGRAM, Server, ServerTest, chat_body, main, unread_body

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLOSE = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer else 0


class Http(ServerTest):
    def test_health_and_models(self):
        self.assertEqual(self.server.ask("GET", "/health")[:2], (200, {"status": "ok"}))
        for path in ("/v1/models", "/models", "/v1/models/"):
            models = self.server.ask("GET", path)[1]
            self.assertEqual(models["data"][0]["id"], MODEL.stem)
            self.assertEqual(models["data"][0]["context_length"], 1024)
            self.assertEqual(models["models"][0]["name"], MODEL.stem)
        self.assertEqual(self.server.ask("GET", "/v1/models/any/name:7b")[1]["id"], MODEL.stem)

    def test_paths_and_methods(self):
        self.refused(404, "there is nothing at /v1/nothing", "GET", "/v1/nothing")
        self.refused(405, "takes POST, not GET", "GET", "/v1/chat/completions")
        self.assertEqual(self.server.ask("HEAD", "/health")[:2], (200, ""))
        status, _, headers = self.server.ask("OPTIONS", "/v1/chat/completions")
        self.assertEqual((status, headers["allow"]), (204, "POST"))
        self.assertNotIn("access-control-allow-origin", headers)

    def test_malformed_requests(self):
        post = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
        for data, status, words in (
                (b"hello\r\n\r\n", 400, b"no HTTP"),
                (b"GET /health HTTP/9.9\r\n\r\n", 505, b"only HTTP/1.0 and HTTP/1.1"),
                (post + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, b"Content-Length is wrong"),
                (post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400, b"Transfer-Encoding is wrong"),
                (post + b"Content-Length: -1\r\n\r\n{}", 400, b"Content-Length is wrong"),
                (post + b"Content-Length: 99999999999\r\n\r\n{}", 413, b"body of the request is too long"),
                (b"GET /health HTTP/1.1\r\nX: " + b"x" * (70 << 10) + b"\r\n\r\n", 431, b"head of the request is too long"),
        ):
            with self.subTest(data=data[:80]):
                answer = self.server.raw(data)
                self.assertEqual(status_of(answer), status, answer)
                self.assertIn(words, answer)
                self.assertEqual(self.server.ask("GET", "/health")[0], 200)

    def test_half_a_request(self):
        for data in (b"", b"GET /hea", HEALTH[:-2], b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"):
            self.assertIn(status_of(self.server.raw(data, end=True)), (0, 400))
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)

    def test_pipelined_requests(self):
        answer = self.server.raw(HEALTH * 50 + CLOSE)
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK"), 51)
        answer = self.server.raw(HEALTH + HEALTH[:20] + HEALTH[20:] + CLOSE)
        self.assertEqual(answer.count(b'{"status":"ok"}'), 3)

    def test_a_request_in_pieces(self):
        with self.server.connect() as link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(len(CLOSE)):
                link.send(CLOSE[i:i + 1])
            self.assertEqual(status_of(link.recv(4096)), 200)

    def test_expect_continue(self):
        body = json.dumps(chat_body()).encode()
        with self.server.connect() as link:
            link.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
            self.assertEqual(status_of(link.recv(4096)), 100)
            link.sendall(body)
            self.assertEqual(status_of(link.recv(4096)), 200)

    def test_old_http(self):
        answer = self.server.raw(b"GET /health HTTP/1.0\r\n\r\n")
        self.assertIn(b"Connection: close", answer)
        body = json.dumps(chat_body(stream=True)).encode()
        answer = self.server.raw(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.assertNotIn(b"chunked", answer)
        self.assertTrue(answer.endswith(b"data: [DONE]\n\n"), answer[-100:])

    def test_a_thousand_idle_connections(self):
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2048:
            self.skipTest("this shell allows fewer files than that")
        descriptors = pathlib.Path(f"/proc/{self.server.process.pid}/fd")
        before = len(list(descriptors.iterdir()))
        links = [self.server.connect() for _ in range(1000)]
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)
        for link in (links[0], links[150], links[999]):
            link.sendall(CLOSE)
            self.assertEqual(status_of(link.recv(4096)), 200)
        for link in links:
            link.close()
        self.wait_until(lambda: len(list(descriptors.iterdir())) <= before)

    def test_foreign_hosts_and_pages(self):
        for host in ("evil.example", "evil.example:80"):
            self.refused(403, "none of this machine", "GET", "/v1/models", headers={"Host": host})
        for host in ("localhost", "127.0.0.1:1", "[::1]:8080"):
            self.assertEqual(self.server.ask("GET", "/v1/models", headers={"Host": host})[0], 200)
        self.refused(403, "--cors-origins", "POST", "/v1/chat/completions", chat_body(), {"Origin": "https://evil.example"})
        own = {"Origin": f"http://localhost:{self.server.port}", "Host": f"localhost:{self.server.port}"}
        self.assertEqual(self.server.ask("GET", "/v1/models", headers=own)[0], 200)


class Garbage(ServerTest):
    """Changed requests, by a fixed seed: each connection ends or is answered with a status, and the server goes on."""

    def changed(self, random, data):
        data = bytearray(data)
        for _ in range(random.randint(1, 6)):
            at = random.randrange(len(data))
            kind = random.randrange(5)
            if kind == 0:
                data[at] = random.randrange(256)
            elif kind == 1:
                del data[at:at + random.randint(1, 20)]
            elif kind == 2:
                data[at:at] = data[max(0, at - random.randint(1, 40)):at]
            elif kind == 3:
                data[at:at] = random.choice([b"\r\n", b"\0", b"\xff", b'"', b"{", b"[", b"1e999", b"-1", b"null", b"\\ud800", b": "])
            else:
                del data[at:]
            if not data:
                break
        return bytes(data)

    def test_changed_requests(self):
        random = Random(38)
        bodies = [("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "stop": ["a"], "logit_bias": {"5": 1}}),
                  ("/v1/completions", {"prompt": [1, 5, 9], "max_tokens": 1, "echo": True, "logprobs": 1}),
                  ("/v1/embeddings", {"input": ["a", "b"], "encoding_format": "base64"}),
                  ("/v1/messages", {"max_tokens": 2, "system": [{"type": "text", "text": "x"}], "messages": [{"role": "user", "content": "Hi"}]}),
                  ("/v1/responses", {"input": [{"role": "user", "content": "Hi"}], "max_output_tokens": 2, "stream": True}),
                  ("/api/chat", {"messages": [{"role": "user", "content": "Hi"}], "options": {"num_predict": 2, "temperature": 0}}),
                  ("/tokenize", {"content": "Once", "with_pieces": True})]
        seen = set()
        for round_ in range(2100):
            path, body = bodies[round_ % len(bodies)]
            text = json.dumps(body).encode()
            if round_ % 2:  # the body alone is changed, so that its reader meets it
                text = self.changed(random, text)
            request = (b"POST " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(text)
                       + text)
            if not round_ % 2:
                request = self.changed(random, request)
            answer = self.server.raw(request, end=not round_ % 2)
            status = status_of(answer)
            self.assertTrue(status in (0, 100) or 200 <= status < 600, answer[:200])
            self.assertNotEqual(status, 500, (request, answer))
            seen.add(status)
        self.assertLessEqual({200, 400, 404}, seen)
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)


class Keys(ServerTest):
    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
            file.write("third\r\n\nfourth\n")
        cls.ARGS = ("--api-key", "first,second", "--api-key-file", file.name, "--cors-origins", "https://a.example")
        try:
            super().setUpClass()
        finally:
            pathlib.Path(file.name).unlink()

    def test_keys(self):
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)
        for key in ("first", "second", "third", "fourth"):
            self.assertEqual(self.server.ask("GET", "/v1/models", headers={"Authorization": "Bearer " + key})[0], 200)
            self.assertEqual(self.server.ask("GET", "/v1/models", headers={"x-api-key": key})[0], 200)
        for headers in ({}, {"Authorization": "Bearer firs"}, {"Authorization": "Bearer firstfirst"}, {"Authorization": "first"},
                        {"x-api-key": ""}, {"Authorization": "Bearer first,second"}):
            self.refused(401, "API key is missing or wrong", "GET", "/v1/models", headers=headers)
        # It is refused before its body has come.
        answer = self.server.raw(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        self.assertEqual(status_of(answer), 401)

    def test_cors(self):
        origin = {"Origin": "https://a.example"}
        status, _, headers = self.server.ask("OPTIONS", "/v1/chat/completions", headers=origin)
        self.assertEqual((status, headers["access-control-allow-origin"]), (204, "https://a.example"))
        self.assertEqual(headers["access-control-allow-methods"], "POST")
        headers = self.server.ask("GET", "/v1/models", headers={**origin, "x-api-key": "first"})[2]
        self.assertEqual(headers["access-control-allow-origin"], "https://a.example")
        self.assertEqual(self.server.ask("GET", "/v1/models", headers={"Origin": "https://b.example", "x-api-key": "first"})[0], 403)


class Life(ServerTest):
    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def start(self, *args, **kwargs):
        server = Server(*args, **kwargs)
        self.addCleanup(lambda: server.stop(signal.SIGKILL) if server.process.poll() is None else None)
        return server

    def test_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "greta.sock")
            server = self.start("--host", path)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            self.assertEqual(server.ask("GET", "/health")[:2], (200, {"status": "ok"}))
            self.assertEqual(server.ask("GET", "/v1/models", headers={"Host": "anything"})[0], 200)
            if curl := shutil.which("curl"):
                told = subprocess.run([curl, "-sS", "--unix-socket", path, "http://localhost/v1/completions", "-d", '{"prompt": "A fox", "max_tokens": 3}'],
                                      capture_output=True, check=True, timeout=LIMIT)
                self.assertEqual(json.loads(told.stdout)["usage"]["completion_tokens"], 3)
            taken = subprocess.run([PROGRAM, "serve", "-m", MODEL, "--host", path], capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(taken.returncode, 1)
            self.assertIn("cannot listen on", taken.stderr)
            server.process.kill()
            server.stop()
            again = self.start("--host", path)  # the socket of the one that was killed is taken over
            self.assertEqual(again.ask("GET", "/health")[0], 200)
            self.assertEqual(again.stop(), 0)
            self.assertFalse(os.path.exists(path))

    def test_loading(self):
        """Until the model is loaded, every answer says so. That it is seen once takes luck, so several are started."""
        seen = False
        for _ in range(10):
            server = self.start(ready=False)
            while (answer := server.ask("GET", "/health"))[0] != 200:
                self.assertEqual(answer[0], 503)
                self.assertEqual(answer[1]["error"]["message"], "Loading model")
                self.assertIn("progress", answer[1]["error"])
                self.assertIn("retry-after", answer[2])
                seen = True
            self.assertEqual(server.stop(), 0)
            if seen:
                return
        self.skipTest("the model was loaded faster than it could be asked for")

    def test_a_file_that_is_no_model(self):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            file.write(b"GGUF" + bytes(100))
            file.flush()
            done = subprocess.run([PROGRAM, "serve", "-m", file.name, "--port", "0"], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("version", done.stderr.splitlines()[-1])

    def test_sigterm_lets_streams_end(self):
        server = self.start("--drain", 600)
        seen = []
        lines = server.stream("/completion", unread_body(n_predict=300))
        seen.append(next(lines))
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_line("stopping")
        self.refused(503, "stopping", "GET", "/ready", server=server)
        self.refused(503, "stopping", "POST", "/v1/chat/completions", chat_body(), server=server)
        seen += list(lines)
        last = json.loads([line for line in seen if line][-1].removeprefix("data: "))
        self.assertEqual((last["stop"], last["tokens_predicted"]), (True, 300))
        self.assertEqual(server.process.wait(LIMIT), 0)
        server.stop()

    def test_drain_has_an_end(self):
        server = self.start("--drain", 0, "--parallel", 1)
        lines = server.stream("/v1/chat/completions", chat_body(stream=True, max_tokens=-1, ignore_eos=True, stop=[]))
        next(lines)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(LIMIT), 0)
        self.assertIn("data: [DONE]", list(lines)[-20:])
        server.stop()

    def test_log(self):
        """It has ids, counts and times, and nothing of what was asked or answered."""
        server = self.start("--log-jsonl")
        for headers in ({"X-Request-Id": "mine"}, {}):
            status, answer, found = server.ask("POST", "/v1/chat/completions", chat_body("A secret word."), headers)
            self.assertEqual(status, 200)
            line = server.process.stdout.readline()
            seen = json.loads(line)
            self.assertEqual(seen["id"], found["x-request-id"])
            self.assertEqual(seen["id"] == "mine", bool(headers))
            self.assertEqual((seen["prompt_tokens"], seen["generated_tokens"], seen["end"]),
                             (answer["usage"]["prompt_tokens"], 8, "length"))
            self.assertGreaterEqual(seen["whole_ms"], seen["first_token_ms"])
            self.assertNotIn(b"secret", line)
        trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
        for given, known in ((f"00-{trace}-{span}-01", True), (f"00-{trace}-{span}", False), (f"00-{'0' * 32}-{span}-01", False),
                             (f"ff-{trace}-{span}-01", False), (f"00-{trace[:-1]}-{span}0-01", False), (f"00-{trace.upper()}-{span}-01", False)):
            server.ask("POST", "/v1/chat/completions", chat_body(), {"traceparent": given})
            seen = json.loads(server.process.stdout.readline())
            self.assertEqual((seen.get("trace_id"), seen.get("parent_id")), (trace, span) if known else (None, None), given)
        self.assertEqual(server.stop(), 0)
        self.assertNotIn("secret", "\n".join(server.lines))

    def test_usage(self):
        for args, code, words in ((["--bogus"], 2, "has no option --bogus"), (["--models-dir", "x"], 2, "exclude each other"),
                                  (["--host", "203.0.113.1"], 1, "cannot listen on 203.0.113.1:8080"), (["--port", "70000"], 2, "--port"),
                                  (["--api-key", ""], 2, "give no key")):
            done = subprocess.run([PROGRAM, "serve", "-m", MODEL, *args], capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stderr)

    def test_a_full_queue(self):
        """One runs, one waits, and the others are refused at once. Where clients leave there is room again."""
        server = self.start("--parallel", 1, "--queue", 2)
        body = json.dumps(unread_body()).encode()
        request = b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        links = [server.connect() for _ in range(8)]
        for link in links:
            link.sendall(request)
        answers = [link.recv(4096) for link in links]
        self.assertEqual(sorted(map(status_of, answers)), [200] * 2 + [429] * 6)
        refused = next(answer for answer in answers if status_of(answer) == 429)
        self.assertIn(b"Retry-After: 1", refused)
        self.assertIn(b"rate_limit_error", refused)
        for link in links:
            link.close()
        self.wait_until(lambda: server.ask("POST", "/v1/chat/completions", chat_body(max_tokens=1))[0] == 200)
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    main()
