"""TLS: calls, streams, long bodies and clients that leave, with a certificate that is for tests alone."""
import http.client
import json
import pathlib
import socket
import ssl
import subprocess
import threading
import time
import unittest

from server import LIMIT, MODEL, PROGRAM, Server, ServerTest, main, unread_body

FILES = pathlib.Path(__file__).parent / "tls"
KEY, CERTIFICATE = FILES / "key.pem", FILES / "certificate.pem"
ARGS = ("--ssl-key-file", KEY, "--ssl-cert-file", CERTIFICATE)


def has_tls():
    told = subprocess.run([PROGRAM, "serve", "-m", MODEL, "--device", "cpu", "--ssl-key-file", FILES / "none.pem", "--ssl-cert-file", CERTIFICATE],
                          capture_output=True, text=True, check=False, timeout=LIMIT)
    return "without TLS" not in told.stderr


class Secure(ServerTest):
    ARGS = ARGS

    @classmethod
    def setUpClass(cls):
        if not has_tls():
            raise unittest.SkipTest("this build has no TLS")
        cls.context = ssl.create_default_context(cafile=str(CERTIFICATE))
        super().setUpClass()

    def connection(self):
        return http.client.HTTPSConnection("localhost", self.server.port, timeout=LIMIT, context=self.context)

    def ask(self, path, body=None, connection=None):
        connection = connection or self.connection()
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def test_calls(self):
        connection = self.connection()
        for _ in range(3):  # over one connection
            self.assertEqual(self.ask("/health", connection=connection), (200, {"status": "ok"}))
        status, answer = self.ask("/completion", {"prompt": "A fox", "n_predict": 3}, connection)
        self.assertEqual((status, answer["tokens_predicted"]), (200, 3))
        self.assertEqual(connection.sock.version(), "TLSv1.3")
        connection.close()
        long = "fox " * 200_000  # many records, both ways
        status, answer = self.ask("/tokenize", {"content": long})
        self.assertEqual(status, 200)
        self.assertGreater(len(answer["tokens"]), 200_000)
        status, answer = self.ask("/detokenize", {"tokens": answer["tokens"]})
        self.assertEqual((status, answer["content"].strip()), (200, long.strip()))

    def test_streams_at_once(self):
        got = []

        def stream():
            connection = self.connection()
            connection.request("POST", "/completion", json.dumps({"prompt": "A fox", "n_predict": 20, "stream": True, "temperature": 0, "ignore_eos": True}))
            lines = [line for line in connection.getresponse() if line.startswith(b"data: ")]
            got.append("".join(json.loads(line[6:])["content"] for line in lines))
            connection.close()
        threads = [threading.Thread(target=stream) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        self.assertEqual(len(got), 4)
        self.assertEqual(len(set(got)), 1)
        self.assertTrue(got[0])

    def test_a_client_that_leaves(self):
        for graceful in (True, False):
            connection = self.connection()
            connection.request("POST", "/completion", json.dumps({"prompt": "A fox", "n_predict": -1, "stream": True, "ignore_eos": True}))
            answer = connection.getresponse()
            answer.readline()
            if graceful:
                connection.sock.settimeout(0.2)
                try:
                    connection.sock.unwrap()
                except (OSError, ValueError):
                    pass
            answer.close(), connection.close()
            self.wait_until(lambda: not any(slot["is_processing"] for slot in self.ask("/slots")[1]))

    def test_what_is_no_tls(self):
        for words in (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(600), b"\x00" * 5000):
            with socket.create_connection(("localhost", self.server.port), timeout=LIMIT) as link:
                link.sendall(words)
                link.shutdown(socket.SHUT_WR)
                answer = b""
                try:
                    while piece := link.recv(4096):
                        answer += piece
                except ConnectionResetError:
                    pass
                self.assertNotIn(b"HTTP/1.1", answer)
        old = ssl.create_default_context(cafile=str(CERTIFICATE))
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("localhost", self.server.port), timeout=LIMIT) as link, self.assertRaises((ssl.SSLError, OSError)):
            old.wrap_socket(link, server_hostname="localhost")
        self.assertEqual(self.ask("/health")[0], 200)

    def test_a_handshake_that_does_not_end(self):
        """It has as long as the head of a call, and not as long as a connection that is idle."""
        began = time.monotonic()
        with socket.create_connection(("localhost", self.server.port), timeout=60) as link:
            link.sendall(b"\x16\x03\x01")
            self.assertEqual(link.recv(1), b"")
        self.assertGreater(time.monotonic() - began, 5)

    def test_files(self):
        for key, certificate, words in ((KEY, FILES / "none.pem", "certificate in"), (FILES / "none.pem", CERTIFICATE, "key in"),
                                        (FILES / "other-key.pem", CERTIFICATE, "key")):
            told = subprocess.run([PROGRAM, "serve", "-m", MODEL, "--device", "cpu", "--port", "0", "--ssl-key-file", key, "--ssl-cert-file", certificate],
                                  capture_output=True, text=True, check=False, timeout=LIMIT)
            self.assertNotEqual(told.returncode, 0)
            self.assertIn(words, told.stderr)
        told = subprocess.run([PROGRAM, "serve", "-m", MODEL, "--ssl-key-file", KEY], capture_output=True, text=True, check=False, timeout=LIMIT)
        self.assertEqual(told.returncode, 2)
        self.assertIn("--ssl-cert-file", told.stderr)


class Drain(unittest.TestCase):
    def test_an_answer_under_way_ends(self):
        if not has_tls():
            self.skipTest("this build has no TLS")
        server = Server(*ARGS, "--drain", 600)
        connection = http.client.HTTPSConnection("localhost", server.port, timeout=LIMIT, context=ssl.create_default_context(cafile=str(CERTIFICATE)))
        connection.request("POST", "/completion", json.dumps(unread_body(n_predict=300)))
        answer = connection.getresponse()
        answer.readline()
        code = []
        stopper = threading.Thread(target=lambda: code.append(server.stop()))
        stopper.start()
        server.wait_for_line("stopping")
        self.assertIn(b'"stop":true', answer.read())
        stopper.join(LIMIT)
        self.assertEqual(code, [0])
        connection.close()


if __name__ == "__main__":
    main()
