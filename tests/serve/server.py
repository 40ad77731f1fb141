"""What the tests of greta-cli serve share: the program, raw connections, and reading answers and streams."""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "tales-llama-7m-q4_k_m.gguf"
PROGRAM = os.environ.get("GRETA_CLI", "")
LIMIT = 120  # seconds, for a sanitized build on a busy machine


class Server:
    """The program, once it listens. Its lines are kept."""

    def __init__(self, *args, model=MODEL, ready=True, env=None):
        # Exact: answers are compared, and would else differ by rounding with who else is in a step.
        words = [PROGRAM, "serve", *(("-m", str(model)) if model else ()), "--device", "cpu", "-t", "2", "--exact", *map(str, args)]
        if "--host" not in words:
            words += ["--port", "0"]
        self.process = self.start(words, {**os.environ, **(env or {})})
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.host, self.port = "127.0.0.1", 0
        found = self.wait_for_line(r"listening on (?:https?://\S+:(\d+)|(\S+\.sock)|sockets that)")
        self.port, self.path = int(found.group(1) or 0), found.group(2)
        if ready:
            self.wait_for_line("ready: ")

    def start(self, words, environment):
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))

    def wait_for_line(self, pattern):
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            for line in list(self.lines):
                if found := re.search(pattern, line):
                    return found
            if self.process.poll() is not None:
                self.reader.join(5)
                raise AssertionError(f"the server ended with {self.process.returncode}: {self.lines}")
            time.sleep(0.01)
        raise AssertionError(f"no line {pattern!r}: {self.lines}")

    def connect(self):
        """A plain socket."""
        if self.path:
            link = socket.socket(socket.AF_UNIX)
            link.settimeout(LIMIT)
            link.connect(self.path)
            return link
        return socket.create_connection((self.host, self.port), timeout=LIMIT)

    def ask(self, method, path, body=None, headers=None):
        """(status, JSON or text, headers in lower case) of one call."""
        connection = http.client.HTTPConnection("localhost", self.port, timeout=LIMIT)
        if self.path:
            connection.sock = self.connect()
        try:
            data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
            connection.request(method, path, data, headers or {})
            answer = connection.getresponse()
            text = answer.read().decode()
            found = {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
        if found.get("content-type", "").startswith("application/json") and method != "HEAD":
            return answer.status, json.loads(text), found
        return answer.status, text, found

    def post(self, path, body, **headers):
        status, answer, _ = self.ask("POST", path, body, headers)
        assert status == 200, (status, answer)
        return answer

    def stream(self, path, body):
        """The lines of a stream with their time, as they come."""
        connection = http.client.HTTPConnection("localhost", self.port, timeout=LIMIT)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, (answer.status, answer.read())
        try:
            for line in answer:
                yield line.decode().rstrip("\r\n")
        finally:
            connection.close()

    def events(self, path, body):
        """(event name or None, JSON) of a stream of server-sent events; the last of OpenAI's is the text [DONE]."""
        name = None
        for line in self.stream(path, body):
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                yield name, line[6:] if line == "data: [DONE]" else json.loads(line[6:])
                name = None

    def raw(self, data, end=False):
        """All that comes back for these bytes, until the server closes."""
        with self.connect() as link:
            link.sendall(data)
            if end:
                link.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := link.recv(65536):
                answer += piece
        return answer

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(LIMIT)
        self.reader.join(5)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class ServerTest(unittest.TestCase):
    """Tests of one class share a server with these arguments."""
    ARGS = ()
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.ARGS)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        assert code == 0, (code, cls.server.lines)

    def wait_until(self, check, what=""):
        """Asks until it is so. What a server does beside its answers has no fixed time."""
        deadline = time.monotonic() + LIMIT
        while not check():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)

    def running(self, **headers):
        return sum(slot["is_processing"] for slot in self.server.ask("GET", "/slots", headers=headers)[1])

    def refused(self, status, words, method, path, body=None, headers=None, server=None):
        """One call that is refused with these words; gives the error."""
        server = server or self.server
        got, answer, _ = server.ask(method, path, body, headers)
        self.assertEqual(got, status, answer)
        error = answer["error"]
        message = error["message"] if isinstance(error, dict) else error
        self.assertIn(words, message)
        return error


def with_numbers(path, numbers):
    """Writes the test's model to a path with further numbers in its metadata."""
    data = MODEL.read_bytes()
    more = b"".join(struct.pack("<Q", len(key)) + key.encode() + struct.pack("<II", 4, value) for key, value in numbers.items())
    rest = -(len(more) + 8 + 8 + 4 + 8) % 32  # a text makes what is added a multiple of the data's alignment
    more += struct.pack("<Q", 8) + b"test.pad" + struct.pack("<IQ", 8, rest) + b"." * rest
    count, = struct.unpack_from("<Q", data, 16)
    path.write_bytes(data[:16] + struct.pack("<Q", count + len(numbers) + 1) + more + data[24:])


def chat_body(text="Tell me a story.", **more):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 8, "temperature": 0, **more}


def unread_body(**more):
    """A stream for /completion that sockets do not hold: while nobody reads it, its request pauses and does not end."""
    return {"prompt": "Once upon a time", "n_predict": 900, "n_probs": 300, "temperature": 0, "ignore_eos": True, "stream": True, **more}


def main():
    if not PROGRAM:
        sys.exit("GRETA_CLI names the program to test")
    if "serve" not in subprocess.run([PROGRAM, "-h"], capture_output=True, text=True, check=True).stdout.split():
        print("skipped: this build has no server (libboost-dev)")
        sys.exit(77)
    unittest.main(verbosity=2)
