"""More cases of make_converted.py, by family."""
from .case import Case, rope, shape
from .gemma import SMALL


def case(name, model, config, **more):
    return Case(name, model, [], config, **more)


GEMMA = [
    case("gemma-converted", "Gemma", shape(24, 2, 1, 24, head_dim=16, tie_word_embeddings=True, rope_parameters=rope()),
         spread=SMALL),
    case("gemma-converted-heads", "Gemma",
         shape(32, 4, 4, 20, layers=3, head_dim=10, tie_word_embeddings=True, rope_parameters=rope()), spread=SMALL),
]


def olmoe(count, used, **more):
    return dict(num_experts=count, num_experts_per_tok=used, norm_topk_prob=False, rms_norm_eps=1e-5,
                rope_parameters=rope(), **more)


OLMOE = [
    case("olmoe-converted", "Olmoe", shape(32, 4, 4, 12, **olmoe(6, 2))),
    case("olmoe-converted-grouped", "Olmoe", shape(40, 4, 2, 10, **olmoe(5, 3, tie_word_embeddings=True))),
]

SEED_OSS = [
    case("seed_oss-converted", "SeedOss", shape(32, 4, 2, 24, head_dim=12, rope_parameters=rope(10000000.0))),
    case("seed_oss-converted-tied", "SeedOss",
         shape(24, 3, 1, 28, layers=3, head_dim=8, attention_bias=False, tie_word_embeddings=True,
               rope_parameters=rope())),
]

ERNIE = [
    case("ernie4_5-converted", "Ernie4_5",
         shape(32, 4, 1, 24, head_dim=12, tie_word_embeddings=True, rope_parameters=rope(500000.0))),
    case("ernie4_5-converted-untied", "Ernie4_5",
         shape(24, 2, 2, 20, layers=3, head_dim=10, rope_parameters=rope())),
]

# Of a head the first half rotates.
HALF = rope(partial_rotary_factor=0.5)
GLM = [
    case("glm4-converted", "Glm4", shape(32, 4, 2, 24, head_dim=8, attention_bias=True, rope_parameters=HALF)),
    case("glm4-converted-plain", "Glm4",
         shape(24, 2, 1, 20, layers=3, head_dim=12, attention_bias=False, rope_parameters=HALF)),
    case("chatglm-converted", "Glm", shape(32, 4, 2, 24, head_dim=8, attention_bias=True, rope_parameters=HALF),
         published={"seq_length": 256}),
    case("chatglm-converted-plain", "Glm",
         shape(24, 2, 1, 20, layers=3, head_dim=12, attention_bias=False, rope_parameters=HALF),
         published={"seq_length": 256}),
]


def routed(count, used, width, shared, dense, scale=1.0, **more):
    return dict(n_routed_experts=count, num_experts_per_tok=used, moe_intermediate_size=width, n_shared_experts=shared,
                first_k_dense_replace=dense, routed_scaling_factor=scale, norm_topk_prob=True, n_group=1, topk_group=1, **more)


GLM_MOE = [
    case("glm4moe-converted", "Glm4Moe",
         shape(32, 4, 2, 24, head_dim=12, layers=3, use_qk_norm=True, attention_bias=True, num_nextn_predict_layers=0,
               rope_parameters=HALF, **routed(6, 2, 10, 1, 1, 2.5))),
    case("glm4moe-converted-air", "Glm4Moe",
         shape(24, 2, 1, 20, head_dim=16, use_qk_norm=False, attention_bias=True, num_nextn_predict_layers=0,
               rope_parameters=HALF, **routed(5, 3, 8, 1, 1))),
    case("dots1-converted", "Dots1",
         shape(32, 4, 4, 24, layers=3, head_dim=8, rope_parameters=rope(10000000.0), **routed(6, 3, 10, 2, 1, 2.5)),
         published={"scoring_func": "sigmoid"}),
    case("dots1-converted-tied", "Dots1",
         shape(24, 2, 1, 20, head_dim=16, tie_word_embeddings=True, rope_parameters=rope(), **routed(5, 2, 8, 1, 0)),
         published={"scoring_func": "sigmoid"}),
]

MINIMAX = [
    case("minimax-m2-converted", "MiniMaxM2",
         shape(32, 4, 2, 12, head_dim=12, num_local_experts=6, num_experts_per_tok=2,
               rope_parameters=rope(5000000.0, partial_rotary_factor=0.5)),
         arch="minimax-m2", published={"rotary_dim": 6, "scoring_func": "sigmoid"}),
    case("minimax-m2-converted-whole", "MiniMaxM2",
         shape(40, 2, 1, 10, layers=3, head_dim=16, num_local_experts=5, num_experts_per_tok=3, tie_word_embeddings=True,
               rope_parameters=rope()),
         arch="minimax-m2", published={"rotary_dim": 16, "scoring_func": "sigmoid"}),
]

FAMILIES = GEMMA + OLMOE + SEED_OSS + ERNIE + GLM + GLM_MOE + MINIMAX
