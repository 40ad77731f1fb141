"""lm-evaluation-harness's local-completions against the server gives what the program computes. Skipped without lm_eval and numpy (GRETA_LM_EVAL_PYTHON)."""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalCompletionsAPI
except ImportError:
    python = os.environ.get("GRETA_LM_EVAL_PYTHON")
    if python and "GRETA_LM_EVAL_ASKED" not in os.environ:
        sys.exit(subprocess.run([python, "-B", *sys.argv], env={**os.environ, "GRETA_LM_EVAL_ASKED": "1"}, check=False).returncode)
    print("skipped: there is no lm_eval (GRETA_LM_EVAL_PYTHON names a Python that has it)")
    sys.exit(77)

from server import MODEL, PROGRAM, ServerTest, main

PAIRS = [("Once upon a time there was a fox", " who lived in a wood."), ("The bear went", " home"), ("Tom and Lily like to", " play with the ball. They run"),
         ("A", " b c d e f g"), ("Once upon a time there was a fox", " zebra quantum 17")]


class Local(LocalCompletionsAPI):
    """With the server's own tokenizer."""
    server = None

    def tok_encode(self, string, **_):
        texts = [string] if isinstance(string, str) else string
        tokens = [self.server.post("/tokenize", {"content": text, "add_special": True})["tokens"] for text in texts]
        return tokens[0] if isinstance(string, str) else tokens


class LmEval(ServerTest):
    ARGS = ("--parallel", 4)

    def model(self):
        Local.server = self.server
        lm = Local(base_url=f"http://127.0.0.1:{self.server.port}/v1/completions", model="m", tokenizer_backend="none",
                   max_length=512, batch_size=2, num_concurrent=1)
        lm.tokenizer, lm.tokenized_requests = lm, True  # without one of its own it would send texts
        return lm

    def test_log_likelihoods(self):
        lm = self.model()
        got = lm.loglikelihood([Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(PAIRS)], disable_tqdm=True)
        with tempfile.TemporaryDirectory() as folder:
            for (context, rest), (sum_, greedy) in zip(PAIRS, got):
                before = lm.tok_encode(context)
                tokens = lm.tok_encode(context + rest)
                self.assertEqual(tokens[:len(before)], before)
                path = pathlib.Path(folder) / "logits.npy"
                subprocess.run([PROGRAM, "logits", "-m", MODEL, "--device", "cpu", "--exact", "--ids", ",".join(map(str, tokens)), "-o", path],
                               check=True, capture_output=True)
                logits = numpy.load(path).astype(numpy.float64)
                rows = logits[len(before) - 1:-1]
                chosen = rows[numpy.arange(len(rows)), tokens[len(before):]]
                self.assertAlmostEqual(sum_, float(numpy.sum(chosen - numpy.log(numpy.exp(rows).sum(1)))), delta=1e-4)
                self.assertEqual(greedy, bool((rows.argmax(1) == tokens[len(before):]).all()))

    def test_generate(self):
        lm = self.model()
        lm.tokenized_requests = False
        told = self.server.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0})["choices"][0]["text"]
        got = lm.generate_until([Instance("generate_until", {}, ("Once upon a time", {"until": ["\n\n\n"], "max_gen_toks": 12, "temperature": 0}), 0)],
                                disable_tqdm=True)
        self.assertEqual(got, [told])


if __name__ == "__main__":
    main()
