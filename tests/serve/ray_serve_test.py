"""greta_ray.app under Ray Serve with three nodes in this machine. GRETA_RAY_PYTHON names a Python with ray[serve]; by hand, as it takes minutes.

Streams pass through, who leaves ends its request, beginnings stay with their replica, and a node is killed under load. Replicas come with load,
and go when it has gone.
"""
import concurrent.futures
import http.client
import json
import os
import subprocess
import sys
import threading
import time
import unittest

os.environ.setdefault("RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S", "1")  # in place of 10, for Scaling

try:
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster
except ImportError:
    python = os.environ.get("GRETA_RAY_PYTHON")
    if python and "GRETA_RAY_ASKED" not in os.environ:
        sys.exit(subprocess.run([python, "-B", *sys.argv], env={**os.environ, "GRETA_RAY_ASKED": "1"}, check=False).returncode)
    print("skipped: there is no ray (GRETA_RAY_PYTHON names a Python that has it)")
    sys.exit(77)

from server import MODEL, ROOT, Server, main

BINDINGS = str(ROOT / "bindings" / "ray")
sys.path.insert(0, BINDINGS)
os.environ["PYTHONPATH"] = BINDINGS
import greta_ray  # noqa: E402
from greta_ray.app import build  # noqa: E402

LIMIT = 300
PORT = 18231
CACHE = 16384  # tokens, so that one server holds all of the test


def ask(body, path="/v1/completions", port=PORT):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    link.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = link.getresponse()
    return link, answer


def whole(i, turn=0, port=PORT):
    text = f"Story {i} of the fox. " * 50 + "And then? " * turn
    link, answer = ask({"prompt": text, "max_tokens": 4, "temperature": 0}, port=port)
    told = json.loads(answer.read())
    link.close()
    return answer.status, told


class OnRay(unittest.TestCase):
    """An application on three nodes in this machine, each with room for one replica."""

    application = {}

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "resources": {"head": 10}})
        cls.nodes = [cls.cluster.add_node(num_cpus=1, resources={"replica": 1}) for _ in range(3)]
        ray.init(address=cls.cluster.address, runtime_env={"env_vars": {"PYTHONPATH": BINDINGS, "GRETA_CLI": os.environ["GRETA_CLI"]}})
        serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": PORT})
        args = ["-m", MODEL, "--device", "cpu", "-t", 1, "--exact", "--cache-tokens", CACHE]
        serve.run(build(args, options={"ray_actor_options": {"num_cpus": 1, "resources": {"replica": 1}}},
                        ingress_options={"ray_actor_options": {"num_cpus": 0, "resources": {"head": 1}}}, **cls.application))

    @classmethod
    def tearDownClass(cls):
        serve.shutdown()
        ray.shutdown()
        cls.cluster.shutdown()

    def pids(self):
        found = subprocess.run(["pgrep", "-f", " serve .*/greta-[^/]*/greta.sock"], capture_output=True, text=True, check=False).stdout.split()
        return [int(each) for each in found]

    def until(self, ready, words):
        deadline = time.monotonic() + LIMIT
        while not ready():
            self.assertLess(time.monotonic(), deadline, words)
            time.sleep(0.1)


class Replicas(OnRay):
    application = {"replicas": 3, "parallel": 4}

    def test_1_streams_pass_through(self):
        link, answer = ask({"messages": [{"role": "user", "content": "A story."}], "stream": True, "max_tokens": 8, "temperature": 0}, "/v1/chat/completions")
        self.assertEqual((answer.status, answer.getheader("content-type").split(";")[0]), (200, "text/event-stream"))
        lines = [line.strip() for line in answer if line.strip()]
        self.assertEqual(lines[-1], b"data: [DONE]")
        link.close()
        link, answer = ask({"messages": 5}, "/v1/chat/completions")
        self.assertEqual((answer.status, json.loads(answer.read())["error"]["param"]), (400, "messages"))

    def hit_rate(self, turn, port=PORT):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda i: whole(i, turn, port), range(24)))
        self.assertEqual({status for status, _ in answers}, {200}, [told for status, told in answers if status != 200][:1])
        usage = [told["usage"] for _, told in answers]
        return sum(each["prompt_tokens_details"]["cached_tokens"] for each in usage) / sum(each["prompt_tokens"] for each in usage)

    def test_2_beginnings_stay_and_a_node_is_killed(self):
        one = Server("--cache-tokens", CACHE)
        self.hit_rate(0, one.port)
        alone = self.hit_rate(1, one.port)
        one.stop()
        self.hit_rate(0)
        self.assertGreater(self.hit_rate(1), 0.9 * alone)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            work = [pool.submit(whole, i % 24, 2 + i // 24) for i in range(96)]
            concurrent.futures.wait(work[:20])
            self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)
            statuses = [each.result(LIMIT)[0] for each in work]
        self.assertEqual(statuses, [200] * 96)
        self.hit_rate(6)
        after = self.hit_rate(7)
        print(f"hit rate of one server {alone:.3f}, of two of three that are left {after:.3f}")
        self.assertGreater(after, 0.9 * alone)

    def test_0_who_leaves_ends_the_request(self):
        link, answer = ask({"prompt": "Once upon a time", "n_predict": -1, "n_probs": 100, "ignore_eos": True, "stream": True}, "/completion")
        answer.readline()
        sockets = [path for path in map(self.socket_of, self.pids()) if path]

        def running():
            return sum(greta_ray.total(greta_ray.parse(self.metrics(path)), "vllm:num_requests_running") for path in sockets)
        self.assertEqual(running(), 1)
        answer.close()
        link.close()
        self.until(lambda: not running(), "the request goes on")

    @staticmethod
    def socket_of(pid):
        words = open(f"/proc/{pid}/cmdline", encoding="utf-8").read().split("\0")
        return words[words.index("--host") + 1] if "--host" in words else None

    @staticmethod
    def metrics(path):
        return subprocess.run(["curl", "-s", "--unix-socket", path, "http://localhost/metrics"], capture_output=True, text=True, check=True).stdout


class Scaling(OnRay):
    application = {"replicas": 1, "most": 3, "parallel": 2,
                   "scaling": {"upscale_delay_s": 1, "downscale_delay_s": 4, "look_back_period_s": 4}}

    def test_replicas_come_and_go_with_load(self):
        self.until(lambda: len(self.pids()) == 1, "no replica")
        ends = threading.Event()

        def load(i):
            statuses = []
            while not ends.is_set():
                link, answer = ask({"prompt": f"Story {i}", "n_predict": 100, "ignore_eos": True}, "/completion")
                answer.read()
                link.close()
                statuses.append(answer.status)
            return statuses

        with concurrent.futures.ThreadPoolExecutor(6) as pool:  # three times as many as one replica runs
            work = [pool.submit(load, i) for i in range(6)]
            try:
                began = time.monotonic()
                self.until(lambda: len(self.pids()) == 3, "no replica came")
                print(f"three replicas after {time.monotonic() - began:.0f} s of load")
            finally:
                ends.set()
            self.assertEqual({status for each in work for status in each.result(LIMIT)}, {200})
        began = time.monotonic()
        self.until(lambda: len(self.pids()) == 1, "the replicas stayed")
        print(f"one replica {time.monotonic() - began:.0f} s after it")
        self.assertEqual(whole(1)[0], 200)


if __name__ == "__main__":
    main()
