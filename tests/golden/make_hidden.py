#!/usr/bin/env python3
"""make_hidden.py: the hidden states that some of the models in architectures/ have for their tokens, from transformers.

A state is what the last norm gives for a token, in float64 of the float32 weights. Each case's GGUF file in
tests/golden/hidden/ has metadata alone: golden.hidden, f32, those of the first token, then of the next. The logits of the
same run must be those of the golden, so that weights and tokens are the same ones.
"""
import os

import gguf
import numpy as np
import torch

import make_architectures

NAMES = ("llama-plain", "gemma2-head24", "gpt-oss-f32", "deepseek2-lite")
FOLDER = os.path.join(os.path.dirname(make_architectures.FOLDER), "hidden")


def states_of(case, model, tokens):
    """(states, logits) in float64."""
    weights = model.state_dict()
    with make_architectures.double_everywhere(), torch.no_grad():
        exact = make_architectures.build(case).double()
        for name, tensor in exact.state_dict(keep_vars=True).items():
            tensor.data = weights[name].double()
        states = exact.model(input_ids=torch.tensor([tokens]), use_cache=False).last_hidden_state[0]
        return states.numpy(), make_architectures.logits_of(exact, tokens).numpy()


def make(case):
    model, tokens = make_architectures.filled(case)
    states, logits = states_of(case, model, tokens)
    golden = gguf.GGUFReader(os.path.join(make_architectures.FOLDER, case.name + ".gguf"))
    assert list(golden.get_field("golden.tokens").contents()) == tokens
    given = np.array(golden.get_field("golden.logits").contents()).reshape(logits.shape)
    error = float(((given - logits) ** 2).sum() / (logits ** 2).sum())
    assert error < make_architectures.F32_LIMIT, f"{case.name}: logits differ by {error}"
    path = os.path.join(FOLDER, case.name + ".gguf")
    writer = gguf.GGUFWriter(path, case.arch)
    writer.add_array("golden.hidden", states.astype(np.float32).flatten().tolist())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    print(f"{case.name}: {states.shape}, logits' NMSE {error:.1e}", end="")
    return os.path.getsize(path)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    make_architectures.make_all(make_architectures.CASES, NAMES, make)


if __name__ == "__main__":
    main()
