"""Dense models of one attention pattern: llama and its kin, qwen, phi3, olmo2, granite, smollm3."""
from . import tables
from .case import Case, rope, shape, yarn, yarn_keys

# 3.1's scheme with wavelengths on both sides of both limits, though the heads are small.
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 64}


def longrope(width, original, base=10000.0, **more):
    """Factors that differ from pair to pair; width is the rotated part of a head."""
    pairs = width // 2
    return {"rope_type": "longrope", "rope_theta": base, "original_max_position_embeddings": original,
            "short_factor": [1.0 + 0.07 * i for i in range(pairs)],
            "long_factor": [1.3 + 0.9 * i for i in range(pairs)], **more}


def rotated(width):
    """llama and what was made from it also say how much of a head rotates."""
    return {"rope.dimension_count": width}


LLAMA = [
    Case("llama-plain", "Llama", tables.LLAMA,
         shape(32, 4, 2, 28, rms_norm_eps=1e-5, rope_parameters=rope()), rotated(8)),
    # As SmolLM2: tied, one base for all. An odd head, three queries on one key.
    Case("llama-tied-head20", "Llama", tables.LLAMA,
         shape(36, 3, 1, 28, head_dim=20, tie_word_embeddings=True, rope_parameters=rope(100000.0)), rotated(20)),
    Case("llama-rope-llama3", "Llama", tables.LLAMA,
         shape(32, 2, 1, 24, head_dim=24, rope_parameters=LLAMA3), rotated(24), factors="llama3"),
    Case("llama-rope-llama3-tied", "Llama", tables.LLAMA,
         shape(32, 4, 1, 24, head_dim=20, rope_parameters=dict(LLAMA3, factor=32.0), tie_word_embeddings=True),
         rotated(20), factors="llama3"),
    Case("llama-rope-linear", "Llama", tables.LLAMA,
         shape(32, 4, 4, 24, rope_parameters=rope(rope_type="linear", factor=4.0)),
         {**rotated(8), "rope.scaling.type": "linear", "rope.scaling.factor": 4.0}),
    Case("llama-rope-yarn", "Llama", tables.LLAMA,
         shape(32, 2, 2, 24, head_dim=24, rope_parameters=yarn(10000.0, 4.0, 64)),
         {**rotated(24), **yarn_keys(4, 64)}),
    Case("llama-biases", "Llama", tables.LLAMA,
         shape(32, 4, 2, 24, attention_bias=True, tie_word_embeddings=True, rope_parameters=rope()),
         rotated(8)),
    # Mistral: every layer sees the last ten positions.
    Case("llama-window", "Mistral", tables.LLAMA,
         shape(32, 4, 2, 24, sliding_window=10, head_dim=8, rope_parameters=rope()),
         {**rotated(8), "attention.sliding_window": 10}),
    Case("llama-window-head24", "Mistral", tables.LLAMA,
         shape(32, 2, 1, 24, sliding_window=5, head_dim=24, rope_parameters=rope(1000000.0)),
         {**rotated(24), "attention.sliding_window": 5}),
]

QWEN = [
    Case("qwen2-tied", "Qwen2", tables.QWEN2,
         shape(32, 4, 2, 24, tie_word_embeddings=True, rope_parameters=rope(1000000.0))),
    Case("qwen2-untied-head20", "Qwen2", tables.QWEN2, shape(40, 2, 1, 22, rope_parameters=rope(10000.0))),
    # Qwen2.5's long context.
    Case("qwen2-yarn", "Qwen2", tables.QWEN2,
         shape(32, 2, 1, 24, rope_parameters=yarn(1000000.0, 4.0, 32)), yarn_keys(4, 32)),
    Case("qwen3-untied-head24", "Qwen3", tables.QWEN3,
         shape(32, 2, 1, 24, head_dim=24, rope_parameters=rope(1000000.0))),
    Case("qwen3-tied-head40", "Qwen3", tables.QWEN3,
         shape(32, 2, 1, 24, head_dim=40, tie_word_embeddings=True, rope_parameters=rope(1000000.0))),
]

# The converter gives phi3 the original context always, and a window of 0 where there is none.
PHI3 = [
    Case("phi3-plain", "Phi3", tables.PHI3, shape(32, 4, 4, 24, rope_parameters=rope()),
         {"rope.dimension_count": 8, "rope.scaling.original_context_length": 256, "attention.sliding_window": 0}),
    Case("phi3-window", "Phi3", tables.PHI3, shape(40, 2, 1, 22, sliding_window=8, rope_parameters=rope()),
         {"rope.dimension_count": 20, "rope.scaling.original_context_length": 256, "attention.sliding_window": 8}),
    # sqrt(1 + ln(256 / original) / ln(original)) scales the sines and cosines.
    Case("phi3-longrope-short", "Phi3", tables.PHI3,
         shape(40, 2, 1, 22, original_max_position_embeddings=32, rope_parameters=longrope(20, 32)),
         {"rope.dimension_count": 20, "rope.scaling.original_context_length": 32, "attention.sliding_window": 0,
          "rope.scaling.type": "longrope", "rope.scaling.attn_factor": (1 + 3 / 5) ** 0.5},
         factors="longrope", context=32),
    Case("phi3-longrope-long", "Phi3", tables.PHI3,
         shape(32, 2, 2, 24, original_max_position_embeddings=16, rope_parameters=longrope(16, 16)),
         {"rope.dimension_count": 16, "rope.scaling.original_context_length": 16, "attention.sliding_window": 0,
          "rope.scaling.type": "longrope", "rope.scaling.attn_factor": (1 + 4 / 4) ** 0.5},
         factors="longrope", context=128),
    # Phi-4-mini: three quarters of a head rotate, tied.
    Case("phi3-partial-tied", "Phi3", tables.PHI3,
         shape(32, 2, 1, 24, original_max_position_embeddings=16, tie_word_embeddings=True,
               rope_parameters=longrope(12, 16, partial_rotary_factor=0.75)),
         {"rope.dimension_count": 12, "rope.scaling.original_context_length": 16, "attention.sliding_window": 0,
          "rope.scaling.type": "longrope", "rope.scaling.attn_factor": (1 + 4 / 4) ** 0.5},
         factors="longrope", context=128),
]

OLMO2 = [
    Case("olmo2-plain", "Olmo2", tables.OLMO2, shape(32, 4, 4, 24, rope_parameters=rope(500000.0))),
    Case("olmo2-head20", "Olmo2", tables.OLMO2, shape(40, 2, 1, 20, rope_parameters=rope(500000.0))),
    # Olmo 3: three layers with a window for one without; only the latter's rope is scaled.
    Case("olmo2-window", "Olmo3", tables.OLMO2,
         shape(24, 3, 3, 24, layers=5, sliding_window=6,
               layer_types=["sliding_attention"] * 3 + ["full_attention", "sliding_attention"],
               rope_parameters={"sliding_attention": rope(10000.0), "full_attention": yarn(10000.0, 4.0, 32)}),
         {**yarn_keys(4, 32), "attention.sliding_window": 6}),
]


def granite(attention, embedding, residual, logits):
    config = dict(attention_multiplier=attention, embedding_multiplier=embedding, residual_multiplier=residual,
                  logits_scaling=logits)
    return config, {"attention.scale": attention, "embedding_scale": embedding, "residual_scale": residual,
                    "logit_scale": logits}


GRANITE_CONFIG, GRANITE_KEYS = granite(0.21, 3.0, 0.6, 2.5)
GRANITE_CONFIG_2, GRANITE_KEYS_2 = granite(0.5, 1.75, 0.35, 4.0)
GRANITE = [
    Case("granite-tied", "Granite", tables.LLAMA,
         shape(32, 4, 2, 24, tie_word_embeddings=True, rope_parameters=rope(), **GRANITE_CONFIG),
         {**rotated(8), **GRANITE_KEYS}),
    Case("granite-untied-head20", "Granite", tables.LLAMA,
         shape(40, 2, 1, 20, rope_parameters=rope(), **GRANITE_CONFIG_2),
         {**rotated(20), **GRANITE_KEYS_2}),
]

# Every fourth layer has no rope.
SMOLLM3 = [
    Case("smollm3-tied", "SmolLM3", tables.LLAMA,
         shape(32, 4, 2, 24, layers=4, tie_word_embeddings=True, rope_parameters=rope(50000.0)), rotated(8)),
    Case("smollm3-untied-head20", "SmolLM3", tables.LLAMA,
         shape(20, 1, 1, 20, layers=8, tie_word_embeddings=False, rope_parameters=rope()), rotated(20)),
]

DENSE = LLAMA + QWEN + PHI3 + OLMO2 + GRANITE + SMOLLM3
