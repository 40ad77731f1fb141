"""Sockets that another program listens on are passed to the server, as systemd does it."""
import http.client
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import unittest

from server import LIMIT, MODEL, PROGRAM, ROOT, Server, main

# systemd puts the id of the process that it starts into LISTEN_PID.
EXEC = 'LISTEN_PID=$$ exec "$@"'


class Passed(Server):
    """The server with sockets from descriptor 3 on."""

    def __init__(self, sockets, shell=EXEC):
        self.sockets, self.shell = sockets, shell
        super().__init__(ready=True)

    def start(self, words, environment):
        numbers = [each.fileno() for each in self.sockets]
        kept = [os.dup(number) for number in numbers]  # above those that they are moved to

        def move():
            for i, number in enumerate(kept):
                os.dup2(number, 3 + i)
        try:
            return subprocess.Popen(["sh", "-c", self.shell, "sh", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env={**environment, "LISTEN_FDS": str(len(numbers))}, preexec_fn=move,
                                    pass_fds=[3 + i for i in range(len(numbers))])
        finally:
            for number in kept:
                os.close(number)


def listening(family, address):
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen(16)
    return listener


class Sockets(unittest.TestCase):
    def test_passed_on(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "greta.sock")
            tcp, local = listening(socket.AF_INET, ("127.0.0.1", 0)), listening(socket.AF_UNIX, path)
            # Who connects before the server runs is answered, too.
            early = http.client.HTTPConnection("localhost", tcp.getsockname()[1], timeout=LIMIT)
            early.request("GET", "/v1/models")
            server = Passed([tcp, local])
            try:
                self.assertIn(early.getresponse().status, (200, 503))
                server.port = tcp.getsockname()[1]
                self.assertEqual(server.post("/completion", {"prompt": "A fox", "n_predict": 2})["tokens_predicted"], 2)
                # Only this machine reaches it, so a foreign name is refused; a unix socket takes any.
                self.assertEqual(server.ask("GET", "/health", headers={"Host": "example.org"})[0], 403)
                server.path = path
                self.assertEqual(server.ask("GET", "/health", headers={"Host": "example.org"})[0], 200)
            finally:
                self.assertEqual(server.stop(), 0)
            self.assertTrue(pathlib.Path(path).exists())  # it belongs to who made it
            early.close(), tcp.close(), local.close()

    def test_of_another_process(self):
        """Variables that were meant for another process mean nothing."""
        tcp = listening(socket.AF_INET, ("127.0.0.1", 0))
        server = Passed([tcp], 'LISTEN_PID=1 exec "$@"')
        try:
            self.assertNotEqual(server.port, 0)
            self.assertNotEqual(server.port, tcp.getsockname()[1])
            self.assertEqual(server.ask("GET", "/health")[0], 200)
        finally:
            self.assertEqual(server.stop(), 0)
            tcp.close()

    def test_no_socket(self):
        told = subprocess.run(["sh", "-c", EXEC, "sh", PROGRAM, "serve", "-m", MODEL, "--device", "cpu"], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, env={**os.environ, "LISTEN_FDS": "1"}, timeout=LIMIT)
        self.assertNotEqual(told.returncode, 0)
        self.assertIn("no socket that listens", told.stderr)

    def test_units(self):
        """The service runs the program with options that it has, and belongs to the socket."""
        folder = ROOT / "tools" / "serve" / "systemd"
        service = (folder / "greta-server.service.in").read_text()
        self.assertIn("Requires=greta-server.socket\n", service)
        self.assertTrue(re.search(r"^ExecStart=@GRETA_BIN@/greta-cli serve \$GRETA_SERVER_OPTIONS$", service, re.M))
        options = re.search(r"GRETA_SERVER_OPTIONS=(.*)", service).group(1).split()
        told = subprocess.run([PROGRAM, "serve", "-h"], capture_output=True, text=True, check=True).stdout
        for word in options:
            if word.startswith("--"):
                self.assertIn(word, told)
        self.assertIn("ListenStream=127.0.0.1:8080\n", (folder / "greta-server.socket").read_text())


if __name__ == "__main__":
    main()
