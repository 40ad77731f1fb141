"""example_test.py PROGRAM MODEL: a program of examples/ does what its first lines say, and a missing model is
told in words."""
import json
import os
import re
import subprocess
import sys

program, model = sys.argv[1:]
name = os.path.basename(program).removeprefix("greta_example_")
given = {"chat": "Tell me a story about a dog.\nAnd then?\n"}


def run(path):
    return subprocess.run([program, path], input=given.get(name, ""), capture_output=True, text=True, timeout=300)


def check_chat(done):
    reused = [int(n) for n in re.findall(r"tokens, (\d+) of \d+ of the prompt", done.stderr)]
    assert len(reused) == 2 and reused[0] == 0 and reused[1] > 10, done.stderr


def check_schema(done):
    animal = json.loads(done.stdout)
    assert set(animal) == {"animal", "legs", "likes"} and animal["animal"] in ("dog", "cat", "bird"), animal
    assert 0 <= animal["legs"] <= 8 and 1 <= len(animal["likes"]) <= 2, animal


def check_serve(done):
    assert done.stdout.count("\n\n") == 8, done.stdout


def check_embed(done):
    near = [float(line.split()[0]) for line in done.stdout.splitlines()]
    assert len(near) == 3 and near[0] == max(near), near  # the two dogs are nearest


done = run(model)
assert done.returncode == 0, done.stdout + done.stderr
assert re.search(r"[a-z]{2}", done.stdout), done.stdout
if "check_" + name in globals():
    globals()["check_" + name](done)
wrong = run("missing.gguf")
assert wrong.returncode != 0 and "missing.gguf" in wrong.stdout + wrong.stderr, wrong
