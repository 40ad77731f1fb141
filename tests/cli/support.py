"""What the tests of greta-cli share: running it, small GGUF files, and reading what it writes."""
import array
import ast
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "tales-llama-7m-q4_k_m.gguf"
PROGRAM = os.environ.get("GRETA_CLI", "")
LIMIT = 120  # seconds, for a sanitized build on a busy machine
SKIPPED = 77  # CTest's SKIP_RETURN_CODE, where a test of a file was skipped and none failed


def has_server():
    """Whether the program was built with the command serve."""
    return subprocess.run([PROGRAM, "serve", "-h"], capture_output=True, timeout=LIMIT).returncode == 0


def start(*args, **kwargs):
    """The program with pipes; standard input is empty unless said."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    pipe = subprocess.PIPE
    return subprocess.Popen([PROGRAM, *map(str, args)], stdout=pipe, stderr=pipe, **kwargs)


def without_escapes(text):
    """Drops the escape sequences that are complete."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


class Terminal:
    """The program with a terminal for all three of its streams, an xterm without colours unless `env` says more.
    Its history is kept in `state`."""

    def __init__(self, *args, state, env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            base = {**os.environ, "NO_COLOR": "1", "TERM": "xterm", "XDG_STATE_HOME": str(state)}
            os.execve(PROGRAM, [PROGRAM, *map(str, args)], {**base, **(env or {})})
        self.seen = ""
        self.whole = ""  # all that came, with its escape sequences
        self.settings = termios.tcgetattr(self.fd)

    def wait_for(self, pattern):
        """Reads until `pattern` has come, and returns what came up to its end."""
        deadline = time.monotonic() + LIMIT
        while not (found := re.search(pattern, self.seen)):
            if time.monotonic() > deadline or not self.read():
                raise AssertionError(f"waited for {pattern!r}, got {self.seen!r}")
        text, self.seen = self.seen[: found.end()], self.seen[found.end():]
        return text

    def read(self):
        ready, _, _ = select.select([self.fd], [], [], 1)
        try:
            data = os.read(self.fd, 65536) if ready else b""
        except OSError:  # the program has left
            return False
        text = data.decode("utf-8", "replace")
        self.whole += text
        self.seen = without_escapes(self.seen + text)
        return bool(data) or not ready

    def kill(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # it has ended by itself

    def send(self, data):
        os.write(self.fd, data)

    def send_all(self, data):
        """Sends what the terminal's buffers do not hold, and reads meanwhile."""
        while data:
            readable, writable, _ = select.select([self.fd], [self.fd], [], 1)
            if writable:
                data = data[os.write(self.fd, data[:1024]):]
            if readable:
                self.read()

    def exit_code(self):
        deadline = time.monotonic() + LIMIT
        while self.read():
            if time.monotonic() > deadline:
                raise AssertionError(f"did not end, got {self.seen!r}")
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class CliTest(unittest.TestCase):
    maxDiff = 2000

    def terminal(self, *args, state=None, env=None):
        """Skips the test where the system has no pseudo-terminals."""
        try:
            for end in pty.openpty():
                os.close(end)
        except OSError as error:
            self.skipTest(f"the system has no pseudo-terminal (is /dev/pts mounted?): {error}")
        if state is None:
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            state = folder.name
        terminal = Terminal(*args, state=state, env=env)
        self.addCleanup(terminal.kill)
        return terminal

    def run_cli(self, *args, code=0, stdin=None, **kwargs):
        """Runs it to its end and returns (stdout, stderr) as text."""
        feed = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run([PROGRAM, *args], capture_output=True, timeout=LIMIT, **feed, **kwargs)
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        self.assertEqual(done.returncode, code, f"{args}: {err}")
        return out, err

    def out(self, *args, **kwargs):
        return self.run_cli(*map(str, args), **kwargs)[0]

    def error(self, code, *args, **kwargs):
        """The one line that a failure says, on stderr alone."""
        out, err = self.run_cli(*map(str, args), code=code, **kwargs)
        notes = ("bundled model", "no GPU to use")
        lines = [line for line in err.splitlines() if not any(note in line for note in notes)]
        self.assertEqual(out, "")
        self.assertEqual(len(lines), 1, err)
        self.assertRegex(lines[0], r"^greta-cli: \S")
        return lines[0]


def read_npy(path):
    """(shape, values) of a float32 array."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack_from("<H", data, 8)
    assert (10 + length) % 64 == 0 and data[9 + length] == 0x0A
    header = ast.literal_eval(data[10: 10 + length].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    values = array.array("f")
    values.frombytes(data[10 + length:])
    return header["shape"], values


def vocabulary_gguf(pieces, architecture="llama"):
    """A GGUF with an SPM vocabulary and no tensors: <unk> <s> </s>, then 256 bytes, then `pieces`."""
    special = [("<unk>", 2), ("<s>", 3), ("</s>", 3)]
    tokens = special + [(f"<0x{b:02X}>", 6) for b in range(256)] + [(piece, 1) for piece in pieces]
    return _tokens_gguf(architecture, "llama", tokens, [
        ("tokenizer.ggml.scores", 9, _many(6, [struct.pack("<f", -i) for i in range(len(tokens))])),
        ("tokenizer.ggml.bos_token_id", 4, struct.pack("<I", 1)),
        ("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 2)),
    ])


def letters_gguf(letters, pre):
    """A GGUF with a byte-level vocabulary of <|endoftext|> and these ASCII letters alone, and no tensors."""
    tokens = [("<|endoftext|>", 3)] + [(letter, 1) for letter in letters]
    return _tokens_gguf("llama", "gpt2", tokens, [
        ("tokenizer.ggml.pre", 8, _text(pre)),
        ("tokenizer.ggml.merges", 9, _many(8, [])),
        ("tokenizer.ggml.unknown_token_id", 4, struct.pack("<I", 0)),
    ])


def _text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _many(kind, items):
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def _tokens_gguf(architecture, model, tokens, more):
    entries = [
        ("general.architecture", 8, _text(architecture)),
        ("tokenizer.ggml.model", 8, _text(model)),
        ("tokenizer.ggml.tokens", 9, _many(8, [_text(token) for token, _ in tokens])),
        ("tokenizer.ggml.token_type", 9, _many(5, [struct.pack("<i", kind) for _, kind in tokens])),
        *more,
    ]
    packed = b"".join(_text(key) + struct.pack("<I", kind) + payload for key, kind, payload in entries)
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, len(entries)) + packed


def main():
    if not PROGRAM:
        sys.exit("GRETA_CLI names the program to test")
    done = unittest.main(verbosity=2, exit=False).result
    for test, reason in done.skipped:
        print(f"skipped: {test.id()}: {reason}")
    if not done.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if done.skipped else 0)
