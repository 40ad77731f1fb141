"""The commands of docs/server.md run as they are written: each block of sh is a script. greta-cli and curl are found first in a folder of the test, where they take a free port in place of 8080 and wait until the server is ready."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from server import LIMIT, MODEL, PROGRAM, ROOT, main

PAGE = ROOT / "docs" / "server.md"
# What the blocks print, in their order.
EXPECTED = (("data: [DONE]",), ('"tokens_predicted":8', '"n_saved":'), ('"success":true',))


def blocks():
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


class Docs(unittest.TestCase):
    def test_every_block_is_known(self):
        self.assertEqual(len(blocks()), len(EXPECTED))

    @unittest.skipUnless(shutil.which("curl"), "there is no curl")
    def test_blocks(self):
        for block, words in zip(blocks(), EXPECTED):
            with self.subTest(block), tempfile.TemporaryDirectory() as name:
                folder, port = pathlib.Path(name), free_port()
                (folder / "bin").mkdir()
                (folder / "models").mkdir()
                for path in (folder / "model.gguf", folder / "models" / MODEL.name):
                    path.symlink_to(MODEL)
                for tool, text in (("greta-cli", f'exec "{PROGRAM}" "$@" --port {port} --device cpu -t 2'),
                                   ("curl", f'for a; do shift; set -- "$@" "$(printf %s "$a" | sed s/localhost:8080/127.0.0.1:{port}/)"; done\n'
                                            f'exec "{shutil.which("curl")}" -sS --fail --retry 60 --retry-delay 1 --retry-connrefused "$@"')):
                    script = folder / "bin" / tool
                    script.write_text(f"#!/bin/sh\n{text}\n")
                    script.chmod(0o755)
                with (folder / "out").open("w+b") as out:
                    process = subprocess.Popen(["sh", "-e", "-c", block], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                               env={**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}, start_new_session=True)
                    try:
                        code = process.wait(LIMIT)
                    finally:
                        os.killpg(process.pid, signal.SIGTERM)  # the server in the background
                    out.seek(0)
                    printed = out.read().decode()
                self.assertEqual(code, 0, printed)
                for each in words:
                    self.assertIn(each, printed)


if __name__ == "__main__":
    main()
