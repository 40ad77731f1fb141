#!/usr/bin/env python3
"""make_architectures.py [NAME ...]: small random models of each architecture, with their logits.

For each case: a model of transformers with random weights, run in float32 on random tokens; its weights,
in the names and order of llama.cpp's converter, together with the tokens and logits, become one GGUF file in
tests/golden/architectures/. Prints the error of that float32 run against float64. See README.md.
"""
import contextlib
import os
import sys
import zlib

import gguf
import numpy as np
import torch
import transformers

sys.dont_write_bytecode = True
from architecture_cases import CASES
from architecture_cases.case import VOCAB, common_keys
from architecture_cases.changes import as_it_is

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "architectures")
# Far below what tests/models/architectures_test.cpp allows.
F32_LIMIT = 1e-10


def spread_of(name, tensor, case):
    """(mean, standard deviation) of a parameter: every part of the graph must matter in the logits."""
    if "act_fn." in name:  # xIELU's constants, one of which is not trained
        return {"eps": (-1e-6, 0), "beta": (0.5, 0.1)}.get(name.rsplit(".", 1)[1], (0.3, 0.4))
    turned = "experts" in name and case.model in ("GptOss", "Llama4") or ".c_" in name and case.model == "GPT2"
    fan_in = tensor.shape[-2 if turned and tensor.dim() > 1 else -1]
    for part, factor in case.spread.items():
        if part in name and "bias" not in name:
            return 0, factor if part in ("embed_tokens", "sinks") else factor / fan_in ** 0.5
    if ("norm" in name or ".ln_" in name) and name.endswith("weight"):
        centred = case.model in ("Gemma", "Gemma2", "Gemma3") or case.model == "MuseGlimmer" and "layernorm" in name
        return 0 if centred else 1, 0.3
    if name.endswith(("layer_scalar", "router.scale", "per_expert_scale")):
        return 1, 0.3
    if tensor.dim() == 1:  # biases, and the bias of a router's choice
        return 0, 0.05 if "correction" in name else 0.4
    if any(part in name for part in ("embed_tokens", "embed_in", "wte", "wpe")):
        return 0, 1
    if any(part in name for part in ("q_proj", "k_proj", "qkv_proj", "q_b_proj", "query_key_value", "c_attn", "mlp.gate.", "router")):
        return 0, 2 / fan_in ** 0.5
    return 0, 1.2 / fan_in ** 0.5


def fill(model, case, random):
    with torch.no_grad():
        for name, tensor in model.state_dict(keep_vars=True).items():
            mean, deviation = spread_of(name, tensor, case)
            tensor.copy_(mean + deviation * torch.randn(tensor.shape, generator=random, dtype=torch.float32))
        if case.mxfp4:
            round_to_mxfp4(model)


# The part that reads pictures, of models whose texts are tested.
PICTURES = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 32,
            "num_position_embeddings": 16, "deepstack_visual_indexes": [0]}


def build(case):
    kind = {"Gemma3": "Gemma3Text", "Qwen3_5": "Qwen3_5Text", "Qwen3_5Moe": "Qwen3_5MoeText",
            "Gemma4": "Gemma4Text", "Llama4": "Llama4Text"}.get(case.model, case.model)
    config = case.config
    if case.pictures:
        config = {"text_config": config, **({"vision_config": PICTURES} if case.pictures is True else case.pictures)}
    config = getattr(transformers, kind + "Config")(**config)
    for part in (config, *([config.text_config] if case.pictures else [])):
        part._attn_implementation = part._experts_implementation = "eager"
    head = "LMHeadModel" if case.model == "GPT2" else "ForConditionalGeneration" if case.pictures else "ForCausalLM"
    return getattr(transformers, case.model + head)(config).float().eval()  # xIELU makes its constants as bfloat16


def logits_of(model, tokens):
    with torch.no_grad():
        return model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]


@contextlib.contextmanager
def double_everywhere():
    """Models ask for float32 inside (norms, softmax, rope): here they get float64 too."""
    saved = torch.float32, torch.float, torch.Tensor.float
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = saved
        torch.set_default_dtype(torch.float32)


def double_logits(case, weights, tokens):
    with double_everywhere():
        model = build(case).double()
        for name, tensor in model.state_dict(keep_vars=True).items():
            tensor.data = weights[name].double()
        return logits_of(model, tokens)


def mapped(model, case):
    """{name in the file: array}, everything that the model holds."""
    weights = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    unused, tensors = set(weights), {}
    for row in case.table:
        change = row[2] if len(row) > 2 else as_it_is
        layers = range(model.config.num_hidden_layers) if "{}" in row[0] else [0]
        for layer in layers:
            theirs = row[1].format(layer)
            if theirs in weights:
                unused.discard(theirs)
                tensors[row[0].format(layer)] = change(weights[theirs], model.config).contiguous().numpy()
    assert not unused, f"{case.name}: no row for {sorted(unused)}"
    return tensors


def rope_factors(case, config):
    """The tensors that carry llama3's and longrope's factors: a frequency is divided by its factor."""
    parameters = config.rope_parameters
    if case.factors == "longrope":
        return {f"rope_factors_{x}.weight": np.array(parameters[f"{x}_factor"], np.float32)
                for x in ("short", "long")}
    if case.factors != "llama3":
        return {}
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    plain = parameters["rope_theta"] ** -(torch.arange(0, head, 2, dtype=torch.float64) / head)
    with double_everywhere():
        scaled, _ = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](config)
    factors = (plain / scaled).numpy().astype(np.float32)
    assert factors.min() == 1 and len(set(factors)) > 3, f"{case.name}: factors {factors}"
    return {"rope_freqs.weight": factors}


def round_to_mxfp4(model):
    """The experts' weights, which the file will hold as MXFP4, take the values that MXFP4 has."""
    kind = gguf.GGMLQuantizationType.MXFP4
    for name, tensor in model.state_dict(keep_vars=True).items():
        if name.endswith(("experts.down_proj", "experts.gate_up_proj")):
            rows = tensor.transpose(1, 2).contiguous().numpy()  # blocks run along the inputs, dimension 1 here
            rounded = gguf.quants.dequantize(gguf.quants.quantize(rows, kind), kind)
            tensor.copy_(torch.from_numpy(rounded).transpose(1, 2))


def known_keys(arch, group=gguf.Keys):
    """What gguf-py knows as keys of an architecture."""
    return {text.format(arch=arch) if "{arch}" in text else text
            for name, value in vars(group).items() if not name.startswith("_")
            for text in ([value] if isinstance(value, str) else known_keys(arch, value))
            if "{" not in text.replace("{arch}", "")}


def check_names(case, keys, tensors):
    """Every key and tensor is one that gguf-py, which llama.cpp's converter writes with, has."""
    kinds = {gguf.TENSOR_NAMES[kind] for kind in
             gguf.MODEL_TENSORS[{name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}[case.arch]]}
    for name in tensors:
        kind = ".".join("{bid}" if part.isdigit() else part for part in name.split(".")[:-1])
        assert kind in kinds, f"{case.name}: {case.arch} has no tensor {name}"
    for key in keys:
        assert f"{case.arch}.{key}" in known_keys(case.arch), f"{case.name}: no key {key}"


def write(case, config, tensors, tokens, logits):
    check_names(case, common_keys(case, config), tensors)
    path = os.path.join(FOLDER, case.name + ".gguf")
    writer = gguf.GGUFWriter(path, case.arch)
    writer.add_name(f"random weights, {case.name}")
    writer.add_license("MIT")
    for key, value in common_keys(case, config).items():
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string,
               list: writer.add_array}[type(value)]
        add(f"{case.arch}.{key}", value)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "<s>", "</s>"] + [f"\u2581{i}" for i in range(3, VOCAB)])
    writer.add_token_scores([0.0] * 3 + [-float(i) for i in range(3, VOCAB)])
    kinds = gguf.TokenType
    writer.add_token_types([kinds.UNKNOWN] + [kinds.CONTROL] * 2 + [kinds.NORMAL] * (VOCAB - 3))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_array("golden.tokens", tokens)
    writer.add_uint32("golden.context", case.context)
    writer.add_array("golden.logits", logits.flatten().tolist())
    for name, data in tensors.items():
        if case.mxfp4 and case.mxfp4 in name:
            kind = gguf.GGMLQuantizationType.MXFP4
            packed = gguf.quants.quantize(data, kind)
            assert np.array_equal(gguf.quants.dequantize(packed, kind), data), f"{case.name}: {name} changed"
            writer.add_tensor(name, packed, raw_dtype=kind)
        else:
            writer.add_tensor(name, data.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return os.path.getsize(path)


def filled(case):
    """The case's model, with weights, and its tokens."""
    random = torch.Generator().manual_seed(case.seed or zlib.crc32(case.name.encode()))
    model = build(case)
    fill(model, case, random)
    return model, torch.randint(3, VOCAB, (case.tokens,), generator=random).tolist()


def reference(case):
    """The case's model, its tokens, and the logits of transformers in float32, checked against float64."""
    model, tokens = filled(case)
    logits = logits_of(model, tokens)
    weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    exact = double_logits(case, weights, tokens)
    assert exact.dtype == torch.float64
    error = float(((logits.double() - exact) ** 2).sum() / (exact ** 2).sum())
    top = exact.topk(2, dim=-1).values
    print(f"{case.name:32} NMSE of float32 {error:.1e}  logits' deviation {float(exact.std()):5.2f}  "
          f"least top-2 gap {float((top[:, 0] - top[:, 1]).min()):.4f}", end="", flush=True)
    assert error < F32_LIMIT, f"{case.name}: an expert's choice is too close: take another seed"
    return model, tokens, logits


def make(case):
    model, tokens, logits = reference(case)
    return write(case, model.config, {**mapped(model, case), **rope_factors(case, model.config)}, tokens, logits)


def make_all(cases, names, make_one):
    """Makes the named cases, or all, and prints their sizes; a name is that of a case or of an architecture."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()  # token ids of real vocabularies, factors that are ours
    os.makedirs(FOLDER, exist_ok=True)
    total = 0
    for case in cases:
        if not names or case.name in names or case.arch in names:
            size = make_one(case)
            print(f"  {size:7} bytes")
            total += size
    print(f"{total} bytes")


def main():
    make_all(CASES, sys.argv[1:], make)


if __name__ == "__main__":
    main()
