"""A device that is lost is opened once again, and /health says so. LOST_DEVICE is a server whose device a signal breaks."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from server import MODEL, Server, ServerTest, chat_body, main, unread_body

CHAT = "/v1/chat/completions"
LOST_DEVICE = os.environ.get("GRETA_LOST_DEVICE", "")


class Losing(Server):
    def __init__(self, path):
        self.socket = str(path)
        super().__init__("--host", path)

    def start(self, words, environment):
        return subprocess.Popen([LOST_DEVICE, str(MODEL), self.socket], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=environment)


@unittest.skipUnless(os.path.exists(LOST_DEVICE), "the server with a device that is lost is not built")
class LostDevice(ServerTest):
    def setUp(self):
        self.server = Losing(pathlib.Path(self.folder.name) / "greta.sock")

    def tearDown(self):
        self.assertEqual(self.server.stop(), 0, self.server.lines)

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def lose(self, devices=1):
        """Of those that were opened."""
        self.server.process.send_signal(signal.SIGUSR1)
        self.server.wait_for_line(f"^devices lost: {devices}$")
        self.refused(503, "submission", "POST", CHAT, chat_body())

    def opened_again(self, losses):
        status, answer, _ = self.server.ask("GET", "/health")
        if status != 200:
            self.assertEqual(status, 503, answer)
            self.assertIn("the device was lost, and is opened again", answer["error"]["message"])
        else:
            self.assertEqual(answer.get("device_losses"), losses)
        return status == 200

    def test_it_is_opened_again(self):
        first = self.server.post(CHAT, chat_body())["choices"]
        for count in (1, 2):
            self.lose(count)
            self.wait_until(lambda: self.opened_again(count))
            self.server.wait_for_line(r"the device was lost: .*submission")
            answer = self.server.post(CHAT, chat_body())
            self.assertEqual(answer["choices"], first)
            self.assertEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
            health = self.server.ask("GET", "/health")[1]
            self.assertEqual((health["status"], health["device_losses"]), ("ok", count))
            self.assertIn("submission", health["device_error"])

    def test_a_stream_under_way_ends_with_an_error(self):
        lines = self.stream_lines()
        next(lines)
        self.server.process.send_signal(signal.SIGUSR1)
        self.assertTrue(any('"error"' in line for line in lines))
        self.wait_until(lambda: self.opened_again(1))
        self.assertEqual(self.server.post(CHAT, chat_body())["usage"]["completion_tokens"], 8)

    def stream_lines(self):
        body = json.dumps(unread_body(n_predict=300)).encode()
        link = self.server.connect()
        self.addCleanup(link.close)
        link.sendall(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return (line.decode() for line in link.makefile("rb"))

    def test_it_is_tried_once(self):
        """What is opened is lost at once: that is said, and the server goes on to say so."""
        self.server.post(CHAT, chat_body())
        self.server.process.send_signal(signal.SIGUSR2)
        self.server.wait_for_line("^later devices lost$")
        self.lose()
        self.wait_until(lambda: "lost again" in str(self.server.ask("GET", "/health")[1]))
        status, answer, _ = self.server.ask("GET", "/health")
        self.assertEqual((status, answer["error"]["device_losses"]), (503, 2))
        self.refused(500, "the device was lost again", "POST", CHAT, chat_body())


if __name__ == "__main__":
    main()
