"""bindings/ray without Ray: the child process and its watching, the way to it, whom a prompt goes to, and counts."""
import asyncio
import json
import os
import signal
import sys
import unittest

from server import LIMIT, MODEL, PROGRAM, ROOT, main

sys.path.insert(0, str(ROOT / "bindings" / "ray"))
import greta_ray  # noqa: E402

ARGS = ("-m", MODEL, "--device", "cpu", "-t", "2", "--metrics", "--parallel", 2)
STORY = {"prompt": "Once upon a time", "temperature": 0, "ignore_eos": True}


class Child(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.server = greta_ray.Server(ARGS, PROGRAM)
        await self.server.start(LIMIT)

    async def asyncTearDown(self):
        self.assertEqual(await self.server.stop(LIMIT), 0)
        self.assertFalse(self.server.path.exists())

    async def post(self, **more):
        return await self.server.client.ask("POST", "/completion", json.dumps({**STORY, **more}).encode())

    async def counts(self):
        return greta_ray.parse(await self.server.metrics())

    async def until(self, check):
        async with asyncio.timeout(LIMIT):
            while not await check():
                await asyncio.sleep(0.01)

    async def test_answers(self):
        answer = await self.post(n_predict=5)
        self.assertEqual((answer.status, json.loads(await answer.body())["tokens_predicted"]), (200, 5))
        answer = await self.post(n_predict=5, stream=True)
        pieces = [piece async for piece in answer]
        self.assertGreater(len(pieces), 1)
        self.assertIn(b'"stop":true', pieces[-1])
        self.assertEqual(greta_ray.total(await self.counts(), "vllm:generation_tokens_total"), 10)
        answer = await self.server.client.ask("GET", "/nothing")
        self.assertEqual((answer.status, b"there is nothing" in await answer.body()), (404, True))

    async def test_who_leaves_ends_the_request(self):
        answer = await self.post(n_predict=-1, n_probs=300, stream=True)
        async for _ in answer:
            break
        answer.close()

        async def idle():
            return greta_ray.total(await self.counts(), "vllm:num_requests_running") == 0
        await self.until(idle)
        aborted = [value for name, labels, value in await self.counts() if labels.get("finished_reason") == "abort"]
        self.assertEqual(aborted, [1])

    async def test_it_is_started_again(self):
        answer = await self.post(n_predict=-1, n_probs=300, stream=True)
        os.kill(self.server.process.pid, signal.SIGKILL)
        with self.assertRaises(greta_ray.Gone):
            await answer.body()
        await self.until(self.server.healthy)
        self.assertEqual(self.server.starts, 2)
        self.assertEqual((await self.post(n_predict=2)).status, 200)


class Wrong(unittest.IsolatedAsyncioTestCase):
    async def test_what_never_runs_is_not_started_again(self):
        server = greta_ray.Server(["-m", "/nowhere.gguf"], PROGRAM)
        with self.assertRaisesRegex(RuntimeError, "/nowhere.gguf"):
            await server.start(LIMIT)
        self.assertEqual((await server.stop(), server.starts), (1, 1))
        with self.assertRaises(greta_ray.Gone):
            await greta_ray.Client("/nowhere.sock").ask("GET", "/health")


class Ranks(unittest.TestCase):
    NAMES = ("red", "green", "blue")

    def test_beginnings(self):
        chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
        longer = chat + [{"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "A story."}]
        first = greta_ray.prefix_of(json.dumps({"messages": chat, "seed": 1}))
        self.assertEqual(first, greta_ray.prefix_of({"messages": longer}))
        self.assertNotEqual(first, greta_ray.prefix_of({"messages": chat, "cache_salt": "a"}))
        self.assertEqual(greta_ray.prefix_of({"prompt": "x" * 256 + "a"}), greta_ray.prefix_of({"prompt": "x" * 256 + "b"}))
        self.assertEqual(greta_ray.prefix_of({"prompt": [1, 2]}), "[1, 2]")
        self.assertEqual(greta_ray.prefix_of({"prompt": [7] * 64 + [1]}), greta_ray.prefix_of({"prompt": [7] * 65}))
        for nothing in (b"{", b"[]", b"", "{}", b"\xff"):
            self.assertEqual(greta_ray.prefix_of(nothing), "")

    def test_ranks(self):
        first = [greta_ray.rank(f"story {i}", self.NAMES)[0] for i in range(300)]
        for name in self.NAMES:
            self.assertGreater(first.count(name), 60)
        for i, name in enumerate(first):  # who leaves takes only its own along
            self.assertEqual(greta_ray.rank(f"story {i}", reversed(self.NAMES))[0], name)
            if name != "blue":
                self.assertEqual(greta_ray.rank(f"story {i}", ("red", "green"))[0], name)

    def test_samples(self):
        text = '# HELP a b\na:b{x="1",y="a\\"}b"} 2.5\na:b{x="2"} 1e3\nc 4\n'
        samples = greta_ray.parse(text)
        self.assertEqual(samples, [("a:b", {"x": "1", "y": 'a\\"}b'}, 2.5), ("a:b", {"x": "2"}, 1000.0), ("c", {}, 4.0)])
        self.assertEqual(greta_ray.total(samples, "a:b"), 1002.5)


if __name__ == "__main__":
    main()
