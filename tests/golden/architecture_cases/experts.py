"""Mixtures of experts with common attention: Mixtral, Qwen3 MoE, gpt-oss."""
from . import tables
from .case import Case, rope, shape, yarn, yarn_keys
from .dense import GRANITE_CONFIG, GRANITE_KEYS, rotated


def experts(count, used, width=None):
    keys = {"expert_count": count, "expert_used_count": used}
    if width:
        keys["expert_feed_forward_length"] = width
    return keys


MIXTRAL = [
    Case("llama-experts", "Mixtral", tables.LLAMA_EXPERTS,
         shape(32, 4, 2, 16, num_local_experts=5, num_experts_per_tok=2, rope_parameters=rope(1000000.0)),
         {**rotated(8), **experts(5, 2)}),
    Case("llama-experts-head24", "Mixtral", tables.LLAMA_EXPERTS,
         shape(32, 2, 1, 16, head_dim=24, num_local_experts=4, num_experts_per_tok=3, tie_word_embeddings=True,
               rope_parameters=rope()),
         {**rotated(24), **experts(4, 3)}),
]


def qwen3(count, used, width, normalised, **more):
    return dict(num_experts=count, num_experts_per_tok=used, moe_intermediate_size=width, norm_topk_prob=normalised,
                decoder_sparse_step=1, rope_parameters=rope(1000000.0), **more)


QWEN3 = [
    Case("qwen3moe-normalised", "Qwen3Moe", tables.QWEN3_EXPERTS,
         shape(32, 4, 2, 40, head_dim=12, **qwen3(7, 3, 8, True)), experts(7, 3, 8)),
    Case("qwen3moe-plain", "Qwen3Moe", tables.QWEN3_EXPERTS,
         shape(32, 2, 1, 40, head_dim=20, tie_word_embeddings=True, **qwen3(6, 2, 12, False)),
         {**experts(6, 2, 12), "expert_weights_norm": False}),
]

# Inputs of the experts so large that the clamps at 7 and -7 cut some.
LOUD = {"experts.gate_up_proj": 5.0, "sinks": 1.5, "router.weight": 1.5}


def gpt_oss(count, used, window, factor, original):
    # The reference does not round the limits of yarn's ramp for this architecture.
    return dict(num_local_experts=count, num_experts_per_tok=used, sliding_window=window,
                rope_parameters=yarn(150000.0, factor, original, beta_fast=32.0, beta_slow=1.0, truncate=False))


GPT_OSS = [
    Case("gpt-oss-f32", "GptOss", tables.GPT_OSS,
         shape(32, 4, 2, 12, layers=3, head_dim=12, **gpt_oss(4, 2, 7, 8.0, 256)),
         {**experts(4, 2, 12), "attention.sliding_window": 7, **yarn_keys(8, 256)},
         arch="gpt-oss", spread=LOUD),
    Case("gpt-oss-mxfp4", "GptOss", tables.GPT_OSS,
         shape(32, 4, 1, 32, layers=2, head_dim=20, **gpt_oss(6, 3, 9, 32.0, 64)),
         {**experts(6, 3, 32), "attention.sliding_window": 9, **yarn_keys(32, 64)},
         arch="gpt-oss", spread=LOUD, mxfp4="_exps.weight"),
]

GRANITE = [
    Case("granitemoe-plain", "GraniteMoe", tables.GRANITE_EXPERTS,
         shape(32, 4, 2, 12, num_local_experts=5, num_experts_per_tok=2, rope_parameters=rope(), **GRANITE_CONFIG),
         {**rotated(8), **GRANITE_KEYS, **experts(5, 2)}),
    # With one expert that serves every token.
    Case("granitemoe-shared-tied", "GraniteMoeShared", tables.GRANITE_EXPERTS,
         shape(40, 2, 1, 8, num_local_experts=4, num_experts_per_tok=3, shared_intermediate_size=14,
               tie_word_embeddings=True, rope_parameters=rope(), **GRANITE_CONFIG),
         {**rotated(20), **GRANITE_KEYS, **experts(4, 3), "expert_shared_feed_forward_length": 14}),
]

EXPERT = MIXTRAL + QWEN3 + GPT_OSS + GRANITE
