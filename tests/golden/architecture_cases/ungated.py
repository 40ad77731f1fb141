"""More cases of make_converted.py: feed-forward blocks without a gate, learned positions, gates behind attention."""
from .case import VOCAB, Case, rope, shape
from .dense import LLAMA3
from .gemma import GLOBAL, LOCAL


def case(name, model, config, **more):
    return Case(name, model, [], config, **more)


# The converter writes four times the width for the feed-forward block.
PHI2 = [
    case("phi2-converted", "Phi",
         shape(32, 4, 4, 128, layer_norm_eps=1e-5, rope_parameters=rope(partial_rotary_factor=0.5))),
    case("phi2-converted-part", "Phi",
         shape(24, 2, 2, 96, layers=3, layer_norm_eps=1e-5, rope_parameters=rope(partial_rotary_factor=1 / 3))),
]

STARCODER2 = [
    case("starcoder2-converted", "Starcoder2",
         shape(32, 4, 2, 28, use_bias=True, norm_epsilon=1e-5, sliding_window=None, tie_word_embeddings=True,
               rope_parameters=rope(999999.4420358813))),
    case("starcoder2-converted-plain", "Starcoder2",
         shape(24, 2, 1, 24, layers=3, use_bias=False, norm_epsilon=1e-5, sliding_window=None, rope_parameters=rope())),
]

GPTNEOX = [
    case("gptneox-converted", "GPTNeoX",
         shape(32, 4, 4, 40, layer_norm_eps=1e-5, use_parallel_residual=True,
               rope_parameters=rope(partial_rotary_factor=0.25)), published={"rotary_pct": 0.25}),
    case("gptneox-converted-after", "GPTNeoX",
         shape(24, 2, 2, 28, layers=3, layer_norm_eps=1e-5, use_parallel_residual=False,
               rope_parameters=rope(partial_rotary_factor=0.5)), published={"rotary_pct": 0.5}),
]


def gpt2(width, heads, positions, layers=2):
    return dict(vocab_size=VOCAB, n_embd=width, n_head=heads, n_layer=layers, n_positions=positions, bos_token_id=1,
                eos_token_id=2)


GPT2 = [
    case("gpt2-converted", "GPT2", gpt2(32, 4, 64), published={"n_ctx": 64}),
    case("gpt2-converted-head12", "GPT2", gpt2(24, 2, 72, 3), published={"n_ctx": 72}),
]

APERTUS = [
    case("apertus-converted", "Apertus", shape(32, 4, 2, 28, rms_norm_eps=1e-5, rope_parameters=rope(500000.0))),
    case("apertus-converted-llama3", "Apertus",
         shape(48, 2, 1, 20, layers=3, rms_norm_eps=1e-5, tie_word_embeddings=True, rope_parameters=LLAMA3)),
]


def afmoe(types, window, count, used, width, dense, scale, shared=1, **more):
    return dict(layer_types=types, sliding_window=window, num_experts=count, num_experts_per_tok=used,
                moe_intermediate_size=width, num_dense_layers=dense, route_scale=scale, num_shared_experts=shared,
                mup_enabled=True, rope_parameters=rope(), **more)


PUBLISHED_AFMOE = {"route_norm": True, "mup_enabled": True}
AFMOE = [
    case("afmoe-converted", "Afmoe",
         shape(32, 4, 2, 24, layers=5, head_dim=8, **afmoe([LOCAL] * 3 + [GLOBAL, LOCAL], 7, 6, 2, 10, 1, 2.5)),
         published=PUBLISHED_AFMOE),
    case("afmoe-converted-shared", "Afmoe",
         shape(24, 2, 1, 20, layers=4, head_dim=16, **afmoe([LOCAL] * 3 + [GLOBAL], 5, 5, 3, 8, 2, 1.0, shared=2)),
         published=PUBLISHED_AFMOE),
]


def laguna(types, window, heads, gating, count, used, width, shared, dense, scale, turned, windowed, **more):
    layers = len(types)
    return dict(layer_types=types, sliding_window=window, num_attention_heads_per_layer=heads, gating=gating,
                num_experts=count, num_experts_per_tok=used, moe_intermediate_size=width,
                shared_expert_intermediate_size=shared, mlp_layer_types=["dense"] * dense + ["sparse"] * (layers - dense),
                moe_routed_scaling_factor=scale, rope_parameters={GLOBAL: turned, LOCAL: windowed}, **more)


LAGUNA = [
    case("laguna-converted", "Laguna",
         shape(32, 4, 2, 24, layers=5, head_dim=8,
               **laguna([GLOBAL] + [LOCAL] * 3 + [GLOBAL], 7, [4, 6, 6, 6, 4], True, 6, 2, 10, 12, 1, 2.5,
                        rope(500000.0, partial_rotary_factor=0.5), rope(10000.0, partial_rotary_factor=1.0)))),
    case("laguna-converted-elements", "Laguna",
         shape(24, 2, 1, 20, layers=4, head_dim=12,
               **laguna([GLOBAL] + [LOCAL] * 3, 5, [2, 2, 2, 2], "per-element", 5, 3, 8, 8, 1, 1.0,
                        rope(10000.0, partial_rotary_factor=0.5), rope(1000.0, partial_rotary_factor=1.0)))),
]

# Scores fall with the distance. Six heads have slopes of two kinds.
BLOOM = [
    case("bloom-converted", "Bloom",
         dict(vocab_size=VOCAB, hidden_size=32, n_head=4, n_layer=2, bos_token_id=1, eos_token_id=2),
         published={"seq_length": 256}),
    case("bloom-converted-six", "Bloom",
         dict(vocab_size=VOCAB, hidden_size=60, n_head=6, n_layer=2, bos_token_id=1, eos_token_id=2),
         published={"seq_length": 256}),
]

UNGATED = BLOOM + PHI2 + STARCODER2 + GPTNEOX + GPT2 + APERTUS + AFMOE + LAGUNA
