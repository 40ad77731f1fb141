#!/usr/bin/env python3
"""greedy_against_llama.py GRETA_CLI LLAMA_SERVER [NAME ...]: greedy tokens of both engines, for each golden that both run.

Both serve the file of a golden and go on from its tokens, with float32 caches and without rounding of activations. The tokens
have to be the same up to the first place where GRETA's two best are closer than a tie, which rounding may turn round. A
golden that llama.cpp refuses is passed over with its reason; one that GRETA refuses is a failure. A NAME is that of a golden
or the beginning of one. The exit code is 1 where tokens differ.
"""
import argparse
import json
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

FOLDER = pathlib.Path(__file__).parent / "architectures"
MOST_TOKENS, CONTEXT = 200, 256
# Where llama.cpp does something else than the reference (README.md), a difference is no failure.
OTHERWISE = {
    "deepseek2-converted-glm": "experts are scored by the sigmoid only in a model of GLM's size",
    "deepseek2-v2-groups": "a group of experts is as good as its two best",
    "exaone4-converted": "the count of layers says whether there are windows",
    "gpt-oss-converted": "the ends of YaRN's range are rounded",
    "gpt-oss-converted-mxfp4": "the ends of YaRN's range are rounded",
    "gpt-oss-mxfp4": "the ends of YaRN's range are rounded",
    "llama-converted-yarn-given": "a given factor of YaRN multiplies the usual one",
    "llama-converted-yarn-untruncated": "the ends of YaRN's range are rounded",
    "llama-window": "windows of llama are not read",
    "llama4-converted-chunks": "chunks are of 8,192 tokens, whatever the file says",
    "llama4-converted-plain": "chunks are of 8,192 tokens, whatever the file says",
    "llama-window-head24": "windows of llama are not read",
    "qwen3moe-plain": "expert_weights_norm is not read",
}
TIE = 1e-3  # between the logarithms of the two best probabilities, which differ as logits do


def golden_numbers(path, key):
    """Of an array, or a number in a list, in the metadata of a file. `key` is the end of one."""
    data = path.read_bytes()
    at = data.index(key.encode()) + len(key)
    kind, = struct.unpack_from("<I", data, at)
    if kind != 9:
        return list(struct.unpack_from("<I", data, at + 4))
    _, count = struct.unpack_from("<IQ", data, at + 4)
    return list(struct.unpack_from(f"<{count}i", data, at + 16))


class Server:
    def __init__(self, command):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([*command, "--port", str(self.port)], stdout=self.log, stderr=self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def ready(self, seconds=60):
        end = time.time() + seconds
        while time.time() < end and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return True
            except OSError:
                time.sleep(0.05)
        return False

    def greedy(self, prompt, count, banned):
        """(token, distance to the next best) for each of the tokens that it writes."""
        body = {"prompt": prompt, "n_predict": count, "temperature": 0, "top_k": 1, "n_probs": 2, "return_tokens": True,
                "logit_bias": [[token, False] for token in banned], "cache_prompt": False}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/completion", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            out = json.load(answer)
        places = out["completion_probabilities"]
        gaps = [abs(place["top_logprobs"][0]["logprob"] - place["top_logprobs"][1]["logprob"]) for place in places]
        return list(zip(out["tokens"], gaps))


def compare(path, greta, llama):
    """(whether it is well, what is said of it)."""
    context = min(golden_numbers(path, ".context_length")[0], CONTEXT)
    prompt = golden_numbers(path, "golden.tokens")[:16]
    size = ["-m", str(path), "-c", str(context), "-t", "1", "-ctk", "f32", "-ctv", "f32"]
    with Server([*llama, *size, "-fa", "off"]) as theirs:
        if not theirs.ready():
            reasons = re.findall(r"(?:error|unknown)[^\n]*", theirs.said())
            return True, "not run by llama.cpp: " + (reasons[0] if reasons else "it ended without a word")
        with Server([*greta, "serve", *size, "--exact", "--device", "cpu"]) as ours:
            if not ours.ready():
                return False, "not run by GRETA: " + ours.said()[-300:]
            count = min(MOST_TOKENS, context - len(prompt) - 1)
            banned = range(7)  # control tokens, some of which end a text
            mine, other = (server.greedy(prompt, count, banned) for server in (ours, theirs))
    for index, ((token, gap), (wanted, _)) in enumerate(zip(mine, other)):
        if token != wanted:
            return gap < TIE, f"token {index} differs, {gap:.1e} from the next best"
    return len(mine) == len(other) == count, f"{min(len(mine), len(other))} of {count} tokens are the same"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("greta")
    parser.add_argument("llama", help="llama-server, or a command that starts it")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    failures = 0
    for path in sorted(FOLDER.glob("*.gguf")):
        if args.names and not any(path.stem.startswith(name) for name in args.names):
            continue
        well, said = compare(path, [args.greta], args.llama.split())
        why = "" if well else OTHERWISE.get(path.stem, "")
        failures += not well and not why
        print(f"{'ok  ' if well else 'note' if why else 'FAIL'} {path.stem:40} {said}{why and ': in llama.cpp ' + why}", flush=True)
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
