"""Keys with limits of their own: how many requests of one run at once, and run or wait."""
import json
import pathlib
import subprocess
import tempfile
import threading

from server import LIMIT, MODEL, PROGRAM, ServerTest, main, unread_body


class Limits(ServerTest):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "keys.txt"
            file.write_text("small parallel=1 queue=2\nfree\nnarrow queue=1\r\n")
            cls.ARGS = ("--api-key-file", file, "--parallel", 4)
            super().setUpClass()

    def begin(self, key):
        """Sends a request whose answer pauses as long as nobody reads it, and waits for nothing."""
        link = self.server.connect()
        body = json.dumps(unread_body()).encode()
        link.sendall(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nx-api-key: %s\r\nContent-Length: %d\r\n\r\n" % (key.encode(), len(body)) + body)
        return link

    def idle(self):
        return self.running(**{"x-api-key": "free"}) == 0

    def ask(self, key, tokens=2):
        return self.server.ask("POST", "/completion", unread_body(n_predict=tokens, n_probs=0, stream=False), {"x-api-key": key})

    def test_one_runs_and_one_waits(self):
        first = self.begin("small")
        self.assertIn(b"200 OK", first.recv(4096))
        got, came = [], threading.Event()

        def more():
            got.append(self.ask("small"))
            came.set()
        others = [threading.Thread(target=more) for _ in range(2)]
        for each in others:
            each.start()
        self.assertTrue(came.wait(LIMIT))
        (status, answer, headers), = got  # of two further ones, one waits
        self.assertEqual((status, headers["retry-after"]), (429, "1"))
        self.assertIn("this key has too many requests", answer["error"]["message"])
        self.assertEqual(self.ask("free")[0], 200)  # beside them
        self.assertEqual((self.running(**{"x-api-key": "free"}), len(got)), (1, 1))
        first.close()
        for each in others:
            each.join(LIMIT)
        self.assertEqual([status for status, _, _ in got], [429, 200])
        self.wait_until(self.idle)
        self.assertEqual(self.ask("small")[0], 200)

    def test_a_client_that_leaves_gives_its_place_back(self):
        for _ in range(3):
            links = [self.begin("small"), self.begin("small")]
            links[0].recv(4096)
            for link in links:
                link.close()
            self.wait_until(self.idle)
        self.wait_until(lambda: self.ask("small")[0] == 200)
        # A request that is refused gives it back, too.
        self.assertEqual(self.server.ask("POST", "/completion", {"prompt": 5}, {"x-api-key": "narrow"})[0], 400)
        self.assertEqual(self.server.ask("POST", "/tokenize", {"content": "a"}, {"x-api-key": "narrow"})[0], 200)
        self.assertEqual(self.ask("narrow")[0], 200)

    def test_a_wrong_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "keys.txt"
            for line in ("key fast", "key parallel=x", "key queue=", "key parallel=-1", "key speed=2"):
                file.write_text(line + "\n")
                told = subprocess.run([PROGRAM, "serve", "-m", MODEL, "--api-key-file", file], capture_output=True, text=True, check=False, timeout=LIMIT)
                self.assertEqual(told.returncode, 2, told.stderr)
                self.assertIn("KEY parallel=N queue=N", told.stderr)


if __name__ == "__main__":
    main()
