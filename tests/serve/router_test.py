"""Two servers behind vllm-router. Skipped unless GRETA_ROUTER names its program."""
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROUTER = os.environ.get("GRETA_ROUTER", "")
if not os.path.exists(ROUTER):
    print("skipped: GRETA_ROUTER names no vllm-router")
    sys.exit(77)

from server import LIMIT, Server, chat_body, main  # noqa: E402


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


class Behind(Server):
    """Asks the router in place of a server."""

    def __init__(self, port):
        self.host, self.port, self.path = "127.0.0.1", port, None

    def ask(self, method, path, body=None, headers=None):
        return super().ask(method, path, body, {"Content-Type": "application/json", **(headers or {})})


class Router(unittest.TestCase):
    def setUp(self):
        self.servers = [Server("--metrics") for _ in range(2)]
        self.addCleanup(lambda: [each.stop() for each in self.servers if each.process.poll() is None])
        port = free_port()
        log = tempfile.TemporaryFile()
        self.addCleanup(log.close)
        words = [ROUTER, "--host", "127.0.0.1", "--port", port, "--policy", "cache_aware", "--prometheus-port", free_port(), "--health-check-interval-secs", 1,
                 "--health-failure-threshold", 1,
                 "--worker-urls", *(f"http://127.0.0.1:{each.port}" for each in self.servers)]
        self.router = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(lambda: (self.router.terminate(), self.router.wait(LIMIT)))
        self.behind = Behind(port)
        deadline = time.monotonic() + LIMIT
        while True:
            self.assertIsNone(self.router.poll())
            self.assertLess(time.monotonic(), deadline)
            with contextlib.suppress(OSError):
                if self.behind.ask("GET", "/health")[0] == 200:
                    return
            time.sleep(0.1)

    def test_it(self):
        told = self.servers[0].post("/v1/chat/completions", chat_body())["choices"]
        self.assertEqual(self.behind.post("/v1/chat/completions", chat_body(model="m"))["choices"], told)
        events = [data for _, data in self.behind.events("/v1/chat/completions", chat_body(model="m", stream=True))]
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual("".join(each["choices"][0]["delta"].get("content", "") for each in events[:-1]), told[0]["message"]["content"])
        # What begins alike goes where its pages are.
        text = "Once upon a time there was a fox. " * 20
        cached = [self.behind.post("/v1/completions", {"model": "m", "prompt": text, "max_tokens": 2})["usage"]["prompt_tokens_details"]["cached_tokens"]
                  for _ in range(6)]
        self.assertEqual(len([each for each in cached if each == 0]), 1, cached)
        # One of two is killed: when the router has seen it, the other answers.
        self.servers[0].stop(signal.SIGKILL)
        answered, deadline = 0, time.monotonic() + LIMIT
        while answered < 10:
            self.assertLess(time.monotonic(), deadline)
            status = self.behind.ask("POST", "/v1/completions", {"model": "m", "prompt": f"{answered}. " + text, "max_tokens": 2})[0]
            answered = answered + 1 if status == 200 else 0


if __name__ == "__main__":
    main()
