"""Measures a program that was written for llama-cpp-python with that package and with greta.llama_cpp, in turn.

    measure_llama_cpp.py MODEL [ROUNDS [TOKENS]]

Each run is a process of its own, on 2 threads of the CPU. Printed are medians of ROUNDS (3): the time to import the
package, to load the file, to the first piece of an answer to a prompt of 90 to 100 tokens, tokens per second behind it,
and the most memory that the process had in use, with the pages of a mapped file. GRETA_LIBRARY names the library.
"""
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = """
import importlib, json, sys, time
name, model, tokens = sys.argv[1], sys.argv[2], int(sys.argv[3])
began = time.perf_counter()
Llama = importlib.import_module(name).Llama
imported = time.perf_counter()
llama = Llama(model, n_ctx=512, n_threads=2, n_threads_batch=2, n_gpu_layers=0, verbose=False)
loaded = time.perf_counter()
prompt = "The old owl told the fox of a pond behind the hill, where geese had lived for as long as anyone knew. " * 4
times = []
asked = time.perf_counter()
for piece in llama(prompt, max_tokens=tokens, temperature=0, logit_bias={END: -1e9}, stream=True):
    times.append(time.perf_counter())
with open("/proc/self/status") as file:
    most = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
print(json.dumps({"import ms": 1e3 * (imported - began), "load ms": 1e3 * (loaded - imported),
                  "first ms": 1e3 * (times[0] - asked), "tokens/s": (len(times) - 1) / (times[-1] - times[0]),
                  "most MB": most / 1e3}))
""".replace("END", "llama.token_eos()")
NAMES = ("llama_cpp", "greta.llama_cpp")


def main():
    model = sys.argv[1]
    rounds, tokens = [int(each) for each in sys.argv[2:4]] + [3, 64][len(sys.argv[2:4]):]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")])}
    found = {name: [] for name in NAMES}
    for _ in range(rounds):
        for name in NAMES:
            output = subprocess.check_output([sys.executable, "-c", PROGRAM, name, model, str(tokens)], env=environment)
            found[name].append(json.loads(output))
    middle = {name: {what: statistics.median(each[what] for each in runs) for what in runs[0]}
              for name, runs in found.items()}
    theirs, ours = (middle[name] for name in NAMES)
    for what, value in theirs.items():
        print(f"{what:10} {NAMES[0]} {value:8.1f}, {NAMES[1]} {ours[what]:8.1f}, ratio {ours[what] / value:.2f}, ours "
              + " ".join(f"{each[what]:.1f}" for each in found[NAMES[1]]))


if __name__ == "__main__":
    main()
