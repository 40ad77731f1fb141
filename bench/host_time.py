#!/usr/bin/env python3
"""What a step costs the host, over a device that computes nothing: time by the service's counter and processor time of its threads, us a step.

  bench/host_time.py BUILD_FOLDER [--streams 1,8,32,64] [--step-us 5000] [--steps 400] [--tcp]
"""
import argparse
import http.client
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


class OverFile(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host_path)


def ask(path, what):
    connection = OverFile("localhost")
    connection.host_path = path
    connection.request("GET", what)
    return connection.getresponse().read().decode()


def counters(path):
    names = {"steps": "llamacpp:n_decode_total", "host": "greta:host_seconds_total", "step": "greta:step_seconds_total"}
    found = {}
    for line in ask(path, "/metrics").splitlines():
        for name, metric in names.items():
            if line.startswith(metric):
                found[name] = float(line.split()[-1])
    return found


def threads(pid):
    """Processor time by thread, in us: that of the service, and of all others."""
    service = others = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        spent = int((task / "schedstat").read_text().split()[0]) / 1000
        if (task / "comm").read_text().strip() == "greta-serve":
            service += spent
        else:
            others += spent
    return service, others


def measure(options, streams, folder):
    path = os.path.join(folder, "idle.sock")
    model = ROOT / "models" / "tales-llama-7m-q4_k_m.gguf"
    server = subprocess.Popen([f"{options.build}/bench/greta-bench-idle-server", model, path, str(options.step_us), str(streams)],
                              stderr=subprocess.PIPE, text=True)
    try:
        while "ready" not in (line := server.stderr.readline()):
            if not line:
                sys.exit("the server has ended")
        load = [f"{options.build}/bench/greta-bench-serve", "--socket", path, "--num-prompts", str(streams), "--max-concurrency", str(streams),
                "--random-input-len", "8", "--vocab", "4000"]
        subprocess.run([*load, "--random-output-len", "8"], check=True, stdout=subprocess.DEVNULL)
        before, spent = counters(path), threads(server.pid)
        began = time.monotonic()
        subprocess.run([*load, "--seed", "1", "--random-output-len", str(options.steps)], check=True, stdout=subprocess.DEVNULL)
        took = time.monotonic() - began
        after, spent_after = counters(path), threads(server.pid)
    finally:
        server.terminate()
        server.wait()
    steps = after["steps"] - before["steps"]
    print(f"{streams:7d} {steps:6.0f} {1e6 * (after['host'] - before['host']) / steps:8.0f} {(spent_after[0] - spent[0]) / steps:10.0f} "
          f"{(spent_after[1] - spent[1]) / steps:8.0f} {1e6 * took / steps:8.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--streams", default="1,8,32,64")
    parser.add_argument("--step-us", type=int, default=5000)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    print("streams  steps     host    service     HTTP     whole   (us a step; processor time of the service's thread and of all others)")
    with tempfile.TemporaryDirectory() as folder:
        for streams in options.streams.split(","):
            measure(options, int(streams), folder)


if __name__ == "__main__":
    main()
