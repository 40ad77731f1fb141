"""Who guesses tokens in the server: the same answers in fewer steps, with a second model, the file's own layer, or the text."""
import unittest

from server import MODEL, ROOT, Server, ServerTest, main

HEAD = ROOT / "tests" / "golden" / "heads" / "qwen35-head.gguf"
STORY = "Once upon a time there was a little fox who lived in a wood. "


class SecondModel(ServerTest):
    """The second model is the first one, so that all its guesses are right."""
    ARGS = ("-md", MODEL, "--draft-max", 3, "--parallel", 2)

    def text(self, **more):
        return self.server.post("/completion", {"prompt": STORY, "n_predict": 40, "temperature": 0, "cache_prompt": False, **more})

    def test_the_same_text_in_fewer_steps(self):
        guessed, plain = self.text(), self.text(**{"speculative.n_max": 0})
        self.assertEqual(guessed["content"], plain["content"])
        self.assertNotIn("draft_n", plain["timings"])
        timings = guessed["timings"]
        self.assertGreater(timings["draft_n"], 20)
        self.assertGreaterEqual(timings["draft_n_accepted"], timings["draft_n"] - 3)
        self.assertGreater(timings["draft_tokens_per_step"], 2)
        drawn = [self.text(temperature=1, seed=5, **more)["content"] for more in ({}, {"speculative.n_max": 0}, {"speculative.n_max": 1})]
        self.assertEqual(len(set(drawn)), 1)

    def test_a_request_chooses(self):
        one = self.text(**{"speculative.n_max": 1})["timings"]
        self.assertLessEqual(one["draft_tokens_per_step"], 2)
        self.assertNotIn("draft_n", self.text(**{"speculative.type": "none"})["timings"])
        self.assertEqual(self.text(**{"speculative.type": "ngram-simple"})["content"], self.text()["content"])
        chat = self.server.post("/v1/completions", {"prompt": STORY, "max_tokens": 20, "temperature": 0})
        self.assertGreater(chat["timings"]["draft_n"], 5)
        for name, value, words in (("speculative.type", "draft-mtp", "not started with --spec-type draft-mtp"),
                                   ("speculative.type", "eagle", "speculative.type"), ("speculative.n_max", -1, "speculative.n_max")):
            self.refused(400, words, "POST", "/completion", {"prompt": "A", "n_predict": 1, name: value})


class Head(unittest.TestCase):
    def test_the_layer_of_the_file(self):
        server = Server("--spec-type", "draft-mtp", "--draft-max", 2, model=HEAD)
        try:
            ask = {"prompt": [3, 9, 27, 17, 51, 25, 11], "n_predict": 40, "temperature": 0, "ignore_eos": True, "cache_prompt": False,
                   "return_tokens": True}
            guessed, plain = (server.post("/completion", {**ask, **more}) for more in ({}, {"speculative.n_max": 0}))
            self.assertEqual(guessed["tokens"], plain["tokens"])
            self.assertEqual(len(guessed["tokens"]), 40)
            self.assertGreater(guessed["timings"]["draft_n"], 0)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
