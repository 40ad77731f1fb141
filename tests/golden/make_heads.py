#!/usr/bin/env python3
"""make_heads.py [--converter FOLDER] [NAME ...]: small random models with a layer that drafts tokens.

As make_converted.py, with the published tensors of that layer beside the model's, into tests/golden/heads/. transformers
leaves the layer out of these models, so the reference is made of its parts: a model of one decoder layer that reads
eh_proj([norm of the token's embedding, norm of the hidden state before]), and the model's own output matrix. The file
gets golden.draft_logits: for each position p of the tokens, the logits behind p + 1 known tokens and d guessed ones, for
d from 0 to 6. A guess here is what the text has there, so the logits do not depend on which tokens are likely.
"""
import dataclasses
import pathlib
import tempfile
import zlib

import make_converted
import safetensors.torch
import torch
import transformers
import make_architectures
from architecture_cases.families import HALF, routed
from architecture_cases.case import shape
from architecture_cases.hybrids import case, delta, experts, nemotron_config, qwen

FOLDER = pathlib.Path(make_architectures.FOLDER).parent / "heads"
DEPTH = 7
CENTRED_EPSILON = 0.25  # of the last norm of Nemotron's layer
CASES = [
    qwen("qwen35-head", "Qwen3_5", (32, 4, 2, 24, 4), delta(2, 4, 8, 12, "sssa", head_dim=16), tokens=12,
         published={"mtp_num_hidden_layers": 1}),
    qwen("qwen35moe-head", "Qwen3_5Moe", (32, 4, 2, 24, 4), delta(2, 6, 8, 12, "sssa", head_dim=16), experts(6, 3, 8, 10),
         tokens=12, seed=1, published={"mtp_num_hidden_layers": 1}),
    qwen("qwen3next-head", "Qwen3Next", (32, 4, 2, 24, 4), delta(2, 4, 8, 12, "sssa", head_dim=16), experts(6, 3, 8, 10),
         tokens=12, seed=3),
    case("glm4moe-head", "Glm4Moe",
         shape(32, 4, 2, 24, head_dim=12, layers=3, use_qk_norm=True, attention_bias=True, num_nextn_predict_layers=0,
               rope_parameters=HALF, **routed(6, 2, 10, 1, 1, 2.5)),
         tokens=12, published={"num_nextn_predict_layers": 1, "num_mtp_layers": None}),
    # The epsilons are different ones here, so that each norm is seen to have its own.
    case("nemotron_h_moe-head", "NemotronH",
         nemotron_config(32, 4, 2, 16, "ME*E", head_dim=12, mamba_num_heads=8, mamba_head_dim=6, n_groups=2,
                         ssm_state_size=12, n_routed_experts=6, num_experts_per_tok=3, moe_intermediate_size=8,
                         moe_shared_expert_intermediate_size=10, routed_scaling_factor=2.5),
         arch="nemotron_h_moe", tokens=12,
         published={"hybrid_override_pattern": "ME*E", "mamba_d_head": 6, "rms_norm_eps": 1e-5,
                    "layer_norm_epsilon": CENTRED_EPSILON, "num_nextn_predict_layers": 1}),
]


def head_case(case):
    """A model of one layer, as the model's last one is; of Nemotron's, whose layers have one block each, two."""
    if case.model == "NemotronH":
        return dataclasses.replace(case, config={
            **case.config, "num_hidden_layers": 2, "layers_block_type": ["full_attention", "moe"]})
    config = {**case.config, "num_hidden_layers": 1}
    if "layer_types" in config:
        config["layer_types"] = ["full_attention"]
    if "first_k_dense_replace" in config:
        config["first_k_dense_replace"] = 0
    return dataclasses.replace(case, config=config)


def last_norm(model):
    return getattr(model.model, "norm_f", None) or model.model.norm


class Head(torch.nn.Module):
    def __init__(self, case, model):
        super().__init__()
        config = model.config
        epsilon = getattr(config, "rms_norm_eps", None) or config.layer_norm_epsilon
        norm = type(last_norm(model))
        self.layer = make_architectures.build(head_case(case))
        self.eh_proj = torch.nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.enorm = norm(config.hidden_size, eps=epsilon)
        self.hnorm = norm(config.hidden_size, eps=epsilon)
        if case.model == "NemotronH":  # as public engines have it, which run the published weights
            self.layer.model.norm_f = torch.nn.LayerNorm(config.hidden_size, eps=CENTRED_EPSILON, bias=False)

    def forward(self, embeddings, states):
        x = self.eh_proj(torch.cat([self.enorm(embeddings), self.hnorm(states)], dim=-1))
        return self.layer.model(inputs_embeds=x[None], use_cache=False).last_hidden_state[0]


def published_nemotron(head, tensors):
    own = "mtp.layers."
    out = {f"{own}0.{name}.weight": getattr(head, name).weight.detach().clone() for name in ("eh_proj", "enorm", "hnorm")}
    out[own + "1.final_layernorm.weight"] = head.layer.model.norm_f.weight.detach().clone()
    return out | {own + name[name.index("layers.") + len("layers."):]: tensor
                  for name, tensor in tensors.items() if ".layers." in name}


def published(case, model, head):
    """The layer's tensors under their published names."""
    with tempfile.TemporaryDirectory() as folder:
        head.layer.save_pretrained(folder)
        tensors = safetensors.torch.load_file(pathlib.Path(folder) / "model.safetensors")
    if case.model == "NemotronH":
        return published_nemotron(head, tensors)
    glm = case.model == "Glm4Moe"
    own = f"model.layers.{model.config.num_hidden_layers}." if glm else "mtp."
    out = {}
    for name, tensor in tensors.items():
        inner = name[name.index("layers.0.") + len("layers.0."):] if "layers.0." in name else None
        if inner:
            out[own + ("" if glm else "layers.0.") + inner] = tensor
        elif name.endswith("norm.weight"):
            out[own + ("shared_head.norm.weight" if glm else "norm.weight")] = tensor
    names = ("eh_proj", "enorm", "hnorm") if glm else ("fc", "pre_fc_norm_embedding", "pre_fc_norm_hidden")
    for ours, theirs in zip((head.eh_proj, head.enorm, head.hnorm), names):
        out[f"{own}{theirs}.weight"] = ours.weight.detach().clone()
    return out


def draft_logits(model, head, tokens):
    """[position][depth][vocab], of positions behind which all guessed tokens are known."""
    embeddings = model.get_input_embeddings()(torch.tensor(tokens))
    main = model.model(input_ids=torch.tensor([tokens]), use_cache=False).last_hidden_state[0]
    rows = []
    for p in range(len(tokens) - DEPTH):
        states = main[:p + 1]
        for depth in range(DEPTH):
            made = head(embeddings[1:p + 2 + depth], states)
            rows.append(model.lm_head(made[-1]))
            states = torch.cat([main[:p + 1], made[p:]])
    return torch.stack(rows)


def head_of(case, model, tokens, seed):
    """A layer with weights, its logits in float64, and the error of those in float32."""
    head = Head(case, model)
    make_architectures.fill(head, case, torch.Generator().manual_seed(zlib.crc32(case.name.encode()) + seed))
    with make_architectures.double_everywhere(), torch.no_grad():
        exact_model, exact = make_architectures.build(case).double(), Head(case, model).double()
        for to, source in ((exact_model, model), (exact, head)):
            weights = source.state_dict()
            for name, tensor in to.state_dict(keep_vars=True).items():
                tensor.data = weights[name].double()
        drafts = draft_logits(exact_model, exact, tokens)
    with torch.no_grad():
        close = draft_logits(model, head, tokens)
    return head, drafts, float(((close.double() - drafts) ** 2).sum() / (drafts ** 2).sum())


def make(case):
    model, tokens, logits = make_architectures.reference(case)
    for seed in range(1, 60):  # chained layers can make much of a small difference
        head, drafts, error = head_of(case, model, tokens, seed)
        if error < make_architectures.F32_LIMIT:
            break
    print(f"  drafts' NMSE {error:.1e} (seed {seed})", end="")
    assert error < make_architectures.F32_LIMIT
    arrays = {"golden.draft_logits": drafts.float().flatten().tolist()}
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        return make_converted.convert(case, model, pathlib.Path(folder), tokens, logits, FOLDER / (case.name + ".gguf"),
                                      (published(case, model, head), arrays))


def main():
    transformers.utils.logging.disable_progress_bar()
    make_converted.logging.disable(make_converted.logging.WARNING)
    FOLDER.mkdir(exist_ok=True)
    make_architectures.make_all(CASES, make_converted.OPTIONS.names, make)


if __name__ == "__main__":
    main()
