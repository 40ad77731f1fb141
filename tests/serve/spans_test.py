"""Spans of requests come to a collector of OpenTelemetry, and one that is away holds up nobody."""
import http.server
import json
import queue
import socket
import subprocess
import threading
import unittest

from server import LIMIT, MODEL, PROGRAM, Server, chat_body, main

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    def __init__(self):
        self.got = got = queue.Queue()

        class Taker(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.put((self.path, self.headers["Content-Type"], json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def spans(self, count):
        found = []
        while len(found) < count:
            path, kind, body = self.got.get(timeout=LIMIT)
            assert (path, kind) == ("/v1/traces", "application/json"), (path, kind)
            (resource,) = body["resourceSpans"]
            assert resource["resource"]["attributes"] == [{"key": "service.name", "value": {"stringValue": "greta"}}]
            found += resource["scopeSpans"][0]["spans"]
        return found

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class SpansTest(unittest.TestCase):
    def start(self, *args, **more):
        server = Server(*args, **more)
        self.addCleanup(lambda: server.stop() if server.process.poll() is None else None)
        return server

    def test_spans(self):
        collector = Collector()
        self.addCleanup(collector.close)
        server = self.start("--otlp-endpoint", collector.url)
        status, answer, headers = server.ask("POST", "/v1/chat/completions", chat_body("A secret word."), {"traceparent": f"00-{TRACE}-{PARENT}-01"})
        self.assertEqual(status, 200)
        whole, *parts = collector.spans(4)
        self.assertEqual((whole["name"], whole["traceId"], whole["parentSpanId"], whole["kind"]), ("request", TRACE, PARENT, 2))
        self.assertEqual([part["name"] for part in parts], ["queue", "prompt", "answer"])
        self.assertEqual({(part["traceId"], part["parentSpanId"], part["kind"]) for part in parts}, {(TRACE, whole["spanId"], 1)})
        self.assertEqual(len({span["spanId"] for span in (whole, *parts)}), 4)
        told = {each["key"]: list(each["value"].values())[0] for each in whole["attributes"]}
        usage = answer["usage"]
        self.assertEqual(told, {"gen_ai.request.model": MODEL.stem, "gen_ai.usage.input_tokens": str(usage["prompt_tokens"]),
                                "gen_ai.usage.output_tokens": str(usage["completion_tokens"]), "greta.cached_tokens": "0",
                                "greta.request_id": headers["x-request-id"]})
        times = [(int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])) for span in (whole, *parts)]
        self.assertEqual(times[0][0], times[1][0])
        self.assertTrue(all(times[i][1] == times[i + 1][0] for i in (1, 2)), times)
        self.assertTrue(all(begin <= end <= times[0][1] for begin, end in times), times)
        self.assertNotIn("secret", json.dumps([whole, parts]))
        # One without a trace begins one, and one whose trace nobody keeps has no spans.
        server.ask("POST", "/v1/chat/completions", chat_body(), {"traceparent": f"00-{TRACE}-{PARENT}-00"})
        server.post("/v1/chat/completions", chat_body())
        whole = collector.spans(4)[0]
        self.assertRegex(whole["traceId"], "^[0-9a-f]{32}$")
        self.assertNotEqual(whole["traceId"], TRACE)
        self.assertNotIn("parentSpanId", whole)
        # What has gathered is sent before the program ends.
        server.post("/v1/chat/completions", chat_body())
        self.assertEqual(server.stop(), 0)
        self.assertEqual(len(collector.spans(4)), 4)
        self.assertTrue(collector.got.empty())

    def test_no_collector(self):
        with socket.create_server(("127.0.0.1", 0)) as found:
            port = found.getsockname()[1]
        server = self.start("--otlp-endpoint", f"http://127.0.0.1:{port}")
        for _ in range(3):
            server.post("/v1/chat/completions", chat_body())
        server.wait_for_line(f"spans are lost: the collector 127.0.0.1:{port} cannot be reached")
        self.assertEqual(server.stop(), 0)
        self.assertEqual(len([line for line in server.lines if "spans" in line]), 1)

    def test_wrong_urls(self):
        for url in ("https://a:1", "localhost:4318", "http://", "http://a b"):
            told = subprocess.run([PROGRAM, "serve", "-m", MODEL, "--port", "0", "--otlp-endpoint", url], capture_output=True, text=True, check=False,
                                  timeout=LIMIT)
            self.assertEqual(told.returncode, 1)
            self.assertIn("--otlp-endpoint takes http://HOST:PORT", told.stderr)


if __name__ == "__main__":
    main()
