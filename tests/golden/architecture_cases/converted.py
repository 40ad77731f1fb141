"""The cases of make_converted.py: configs as published models have them, small. Keys and names are the converter's."""
from .case import Case, rope, shape, yarn
from .dense import GRANITE_CONFIG, GRANITE_CONFIG_2, LLAMA3, longrope
from .experts import LOUD, gpt_oss, qwen3
from .families import FAMILIES
from .gemma import GLOBAL, LOCAL, SMALL, gemma2, gemma3
from .hybrids import HYBRIDS
from .latent import deep_yarn, experts, latent
from .ungated import UNGATED

BIASES = {"attention_bias": True, "mlp_bias": True}


# A seed stands where the drawn one makes logits that rounding to halves would change by more than 1e-4 (NMSE).
def case(name, model, config, **more):
    return Case(name, model, [], config, **more)


LLAMA = [
    case("llama-converted", "Llama", shape(32, 4, 2, 28, rms_norm_eps=1e-5, rope_parameters=rope())),
    # As Granite Code 3B and 8B.
    case("llama-converted-biases", "Llama",
         shape(32, 4, 2, 24, tie_word_embeddings=True, rope_parameters=rope(10000000.0), **BIASES)),
    # The converter's option that puts queries, keys and values together.
    case("llama-converted-fused", "Llama",
         shape(32, 4, 2, 24, tie_word_embeddings=True, attention_bias=True, rope_parameters=rope()),
         options={"fuse_qkv": True}),
    case("llama-converted-head24", "Llama", shape(32, 2, 1, 24, head_dim=24, rope_parameters=rope(100000.0))),
    case("llama-converted-llama3", "Llama",
         shape(32, 2, 1, 24, head_dim=24, tie_word_embeddings=True, rope_parameters=LLAMA3)),
    case("llama-converted-linear", "Llama",
         shape(32, 4, 4, 24, rope_parameters=rope(rope_type="linear", factor=4.0))),
    # All that YaRN may be given. The factor of the scores replaces the usual 1 + 0.1 ln(factor).
    case("llama-converted-yarn-given", "Llama",
         shape(32, 2, 2, 24, head_dim=24,
               rope_parameters=yarn(10000.0, 4.0, 64, attention_factor=0.9, beta_fast=20.0, beta_slow=2.0))),
    case("llama-converted-yarn-untruncated", "Llama",
         shape(32, 2, 2, 24, head_dim=24, rope_parameters=yarn(10000.0, 4.0, 64, truncate=False))),
    # The converter does not write Mistral's window: this one is as long as the context.
    case("llama-converted-mistral", "Mistral",
         shape(40, 4, 2, 24, sliding_window=64, head_dim=12, rope_parameters=rope(1000000.0))),
    case("llama-converted-mixtral", "Mixtral",
         shape(32, 4, 2, 16, num_local_experts=5, num_experts_per_tok=2, rope_parameters=rope(1000000.0))),
]

QWEN = [
    case("qwen2-converted", "Qwen2", shape(32, 4, 2, 24, tie_word_embeddings=True, rope_parameters=rope(1000000.0))),
    case("qwen2-converted-yarn", "Qwen2", shape(32, 2, 1, 24, rope_parameters=yarn(1000000.0, 4.0, 32))),
    case("qwen3-converted", "Qwen3",
         shape(32, 2, 1, 24, head_dim=24, tie_word_embeddings=True, rope_parameters=rope(1000000.0))),
    case("qwen3-converted-biases", "Qwen3",
         shape(32, 4, 2, 24, head_dim=12, attention_bias=True, rope_parameters=rope(1000000.0))),
    case("qwen3moe-converted", "Qwen3Moe", shape(32, 4, 2, 40, head_dim=12, **qwen3(6, 3, 8, True))),
    case("qwen3moe-converted-biases", "Qwen3Moe",
         shape(32, 4, 2, 40, head_dim=8, attention_bias=True, tie_word_embeddings=True, **qwen3(5, 2, 8, True))),
]

GEMMA = [
    case("gemma2-converted", "Gemma2", gemma2(2, 1, 24, 8, 4.0, 6.0, layers=3)[0], spread=SMALL),
    case("gemma3-converted", "Gemma3",
         gemma3(24, 2, 1, 12, 24, 6, [LOCAL] * 5 + [GLOBAL, LOCAL], 1000000.0, 8.0)[0], spread=SMALL),
]


def phi3(width, heads, kv_heads, ffn, original=256, parameters=None, **more):
    return shape(width, heads, kv_heads, ffn, original_max_position_embeddings=original,
                 rope_parameters=parameters or rope(), **more)


PHI4 = phi3(32, 2, 1, 24, 16, longrope(12, 16, partial_rotary_factor=0.75), tie_word_embeddings=True)
PHI4_SHORT = phi3(32, 2, 1, 24, 32, longrope(12, 32, partial_rotary_factor=0.75), tie_word_embeddings=True)
PHI3 = [
    case("phi3-converted", "Phi3", phi3(32, 4, 4, 24, sliding_window=9)),
    # Phi-3-128k and 3.5, within the original context and beyond it.
    case("phi3-converted-short", "Phi3", phi3(40, 2, 1, 22, 32, longrope(20, 32)), context=32, seed=1),
    case("phi3-converted-long", "Phi3", phi3(32, 2, 2, 24, 16, longrope(16, 16)), context=128, seed=1),
    # Phi-4-mini: three quarters of a head rotate.
    case("phi3-converted-partial-short", "Phi3", PHI4_SHORT, context=32, seed=1),
    case("phi3-converted-partial-long", "Phi3", PHI4, context=128, seed=1),
]

# Olmo 3 gives YaRN's factor, the usual one: 1 + 0.1 ln(4).
OLMO3_YARN = yarn(10000.0, 4.0, 32, attention_factor=1.138629436111989, beta_fast=32.0, beta_slow=1.0)
OLMO2 = [
    case("olmo2-converted", "Olmo2", shape(32, 4, 2, 24, rope_parameters=rope(500000.0))),
    case("olmo2-converted-window", "Olmo3",
         shape(24, 3, 3, 20, layers=5, sliding_window=6,
               layer_types=[LOCAL] * 3 + [GLOBAL, LOCAL],
               rope_parameters={LOCAL: rope(10000.0), GLOBAL: OLMO3_YARN})),
]


def hybrid(name, count, used, ffn, shared, **more):
    """Granite 4 without Mamba layers: the converter makes granite or granitemoe of it."""
    config = shape(32, 4, 2, ffn, layer_types=[GLOBAL] * 2, num_local_experts=count, num_experts_per_tok=used,
                   shared_intermediate_size=shared, position_embedding_type="rope", mamba_n_heads=4,
                   mamba_d_head=16, rope_parameters=rope(), **GRANITE_CONFIG, **more)
    return case(name, "GraniteMoeHybrid", config, published={"layer_types": ["attention"] * 2})


GRANITE = [
    case("granite-converted", "Granite",
         shape(32, 4, 2, 24, tie_word_embeddings=True, rope_parameters=rope(), **GRANITE_CONFIG)),
    case("granite-converted-biases", "Granite",
         shape(32, 4, 2, 20, rope_parameters=rope(), **GRANITE_CONFIG_2, **BIASES)),
    hybrid("granite-converted-hybrid", 0, 0, 24, 24, tie_word_embeddings=True),
    case("granitemoe-converted", "GraniteMoe",
         shape(32, 4, 2, 12, num_local_experts=5, num_experts_per_tok=2, rope_parameters=rope(), **GRANITE_CONFIG)),
    case("granitemoe-converted-shared", "GraniteMoeShared",
         shape(40, 2, 1, 8, num_local_experts=4, num_experts_per_tok=3, shared_intermediate_size=14,
               tie_word_embeddings=True, attention_bias=True, rope_parameters=rope(), **GRANITE_CONFIG)),
    hybrid("granitemoe-converted-hybrid", 4, 2, 12, 20),
]

SMOLLM3 = [
    case("smollm3-converted", "SmolLM3",
         shape(24, 3, 1, 20, layers=4, tie_word_embeddings=True, rope_parameters=rope(50000.0)), seed=6),
    case("smollm3-converted-biases", "SmolLM3",
         shape(20, 1, 1, 20, layers=5, tie_word_embeddings=True, rope_parameters=rope(), **BIASES), seed=1),
]

GPT_OSS = [
    case("gpt-oss-converted", "GptOss", shape(32, 4, 2, 12, layers=2, head_dim=12, **gpt_oss(4, 2, 7, 8.0, 256)),
         arch="gpt-oss", spread=LOUD),
    case("gpt-oss-converted-mxfp4", "GptOss",
         shape(32, 4, 1, 32, layers=2, head_dim=20, **gpt_oss(5, 2, 9, 32.0, 64)), arch="gpt-oss", spread=LOUD,
         mxfp4="_exps.weight", published={"quantization_config": {"quant_method": "mxfp4"}}),
]


def deepseek(name, model, width, heads, parts, layers=2, **more):
    config = shape(width, heads, heads, 24, layers, rms_norm_eps=1e-6, rope_parameters=rope())
    for part in parts:
        config.update(part[0] if isinstance(part, tuple) else part)
    return case(name, model, config, **more)


# Published configs say how experts are scored; the model class knows it without.
LITE = {"topk_method": "greedy", "scoring_func": "softmax"}
V3 = {"scoring_func": "sigmoid"}
LITE_PARTS = [latent(16, 12, 8, 10), experts(5, 2, 10, 1, 1, 1.0), LITE, deep_yarn(40.0, 64, 0.707)]
V3_PARTS = [latent(16, 12, 8, 12, query_rank=20),
            experts(8, 3, 8, 1, 1, 2.5, groups=4, groups_used=2, normalised=True), V3, deep_yarn(40.0, 64, 1.0)]
DEEPSEEK2 = [
    deepseek("deepseek2-converted-lite", "DeepseekV2", 32, 2, LITE_PARTS),
    deepseek("deepseek2-converted-v3", "DeepseekV3", 32, 2, V3_PARTS, seed=1),
    # Youtu-LLM: no experts, nor a word about them.
    deepseek("deepseek2-converted-dense", "Youtu", 32, 2,
             [latent(16, 12, 8, 10, query_rank=20), {"tie_word_embeddings": True}]),
    deepseek("deepseek2-converted-dense-direct", "Youtu", 32, 4,
             [latent(12, 8, 4, 8), {"tie_word_embeddings": False}]),
    # A config with experts, all layers of which are dense.
    deepseek("deepseek2-converted-dense-v3", "DeepseekV3", 32, 2,
             [latent(16, 12, 8, 12), experts(8, 3, 8, 1, 2, 2.5, normalised=True), V3]),
    # GLM 4.7 Flash: scored by the sigmoid, which no key says.
    deepseek("deepseek2-converted-glm", "Glm4MoeLite", 32, 2,
             [latent(16, 12, 8, 12, query_rank=20), experts(6, 2, 8, 1, 1, 1.8, normalised=True)]),
    # As the converter wrote before April 2025.
    deepseek("deepseek2-converted-old-lite", "DeepseekV2", 32, 2, LITE_PARTS, old_latent=True),
    deepseek("deepseek2-converted-old-v3", "DeepseekV3", 32, 2, V3_PARTS, old_latent=True),
]

CONVERTED = (LLAMA + QWEN + GEMMA + PHI3 + OLMO2 + GRANITE + SMOLLM3 + GPT_OSS + DEEPSEEK2 + FAMILIES + UNGATED + HYBRIDS)
