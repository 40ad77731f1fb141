"""What requests that run at the same time do to each other: they share the pages of a beginning, and nothing else."""
import concurrent.futures
import json

from server import ServerTest, main

PAGE = 64  # tokens


class Together(ServerTest):
    ARGS = ("--parallel", 16, "--exact", "-c", 512, "--cache-tokens", 16384)

    def tokens(self, text):
        return self.server.post("/tokenize", {"content": text, "add_special": True})["tokens"]

    def test_a_common_beginning_is_read_once(self):
        common = self.tokens("The fox went over the hill to see the owl. " * 60)[:5 * PAGE + 10]
        self.assertEqual(len(common), 5 * PAGE + 10)

        def ask(i):
            return self.server.post("/v1/completions", {"prompt": common + [300 + i], "max_tokens": 1, "temperature": 0})["usage"]

        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            usage = list(pool.map(ask, range(64)))
        self.assertEqual({each["prompt_tokens"] for each in usage}, {len(common) + 1})
        cached = sorted(each["prompt_tokens_details"]["cached_tokens"] for each in usage)
        self.assertEqual(cached, [0] + [5 * PAGE] * 63)

    def test_who_leaves_changes_nothing_for_others(self):
        asked = {"prompt": "Once upon a time", "n_predict": 60, "temperature": 0.9, "seed": 5, "ignore_eos": True, "cache_prompt": False}
        alone = self.server.post("/completion", asked)["content"]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            kept = [pool.submit(self.server.post, "/completion", asked) for _ in range(4)]
            left = 0
            while not all(each.done() for each in kept):
                body = json.dumps({"prompt": f"Story {left}", "n_predict": 200, "ignore_eos": True, "stream": True}).encode()
                with self.server.connect() as link:
                    link.sendall(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                    if left % 2:
                        link.recv(1024)  # in the answer; else while its prompt waits or is read
                left += 1
        self.assertEqual([each.result()["content"] for each in kept], [alone] * 4)
        self.assertGreater(left, 1)
        self.wait_until(lambda: self.running() == 0, "a request goes on")


if __name__ == "__main__":
    main()
