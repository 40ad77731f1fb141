"""greta-bench-serve counts what a client sees, and says why requests fail."""
import json
import os
import subprocess
import unittest

from server import ServerTest, main

BENCH = os.environ.get("GRETA_BENCH_SERVE", "")


def load(*args):
    done = subprocess.run([BENCH, "--json", *map(str, args)], capture_output=True, text=True, timeout=300)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


@unittest.skipUnless(os.path.exists(BENCH), "greta-bench-serve is not built")
class Load(ServerTest):
    ARGS = ("--parallel", 4)

    def test_counts(self):
        code, rows, _ = load("--port", self.server.port, "--num-prompts", 6, "--max-concurrency", 3, "--random-input-len", 20,
                             "--random-output-len", 9, "--vocab", 2000)
        self.assertEqual(code, 0)
        self.assertEqual((rows["Successful requests"], rows["Failed requests"]), (6, 0))
        self.assertEqual((rows["Total input tokens"], rows["Total generated tokens"]), (120, 54))
        self.assertGreater(rows["Mean TTFT (ms)"], 0)

    def test_refused_requests_are_counted(self):
        code, rows, words = load("--port", self.server.port, "--num-prompts", 2, "--random-input-len", 100000, "--vocab", 2000)
        self.assertEqual((code, rows["Successful requests"], rows["Failed requests"]), (1, 0, 2))
        self.assertIn("400", words)

    def test_nobody_listens(self):
        code, _, words = load("--socket", "/nowhere/greta.sock", "--num-prompts", 1)
        self.assertEqual(code, 1)
        self.assertIn("cannot connect to /nowhere/greta.sock", words)


if __name__ == "__main__":
    main()
