"""More cases of make_converted.py, by family."""
from .case import VOCAB, Case, rope, shape, yarn
from .dense import GRANITE_CONFIG, GRANITE_CONFIG_2, LLAMA3
from .gemma import GLOBAL, LOCAL, SMALL


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
    # Whole heads rotate, and every layer has experts.
    case("glm4moe-converted-solar", "SolarOpen",
         shape(32, 4, 2, 10, head_dim=8, rope_parameters=rope(partial_rotary_factor=1.0),
               **routed(6, 2, 10, 1, 0, 1.5))),
    case("dots1-converted", "Dots1",
         shape(32, 4, 4, 24, layers=3, head_dim=8, rope_parameters=rope(10000000.0), **routed(6, 3, 10, 2, 1, 2.5)),
         published={"scoring_func": "sigmoid"}),
    case("dots1-converted-tied", "Dots1",
         shape(24, 2, 1, 20, head_dim=16, tie_word_embeddings=True, rope_parameters=rope(), **routed(5, 2, 8, 1, 0)),
         published={"scoring_func": "sigmoid"}),
]

def qwen2_moe(count, used, width, shared, **more):
    return dict(num_experts=count, num_experts_per_tok=used, moe_intermediate_size=width, norm_topk_prob=False,
                shared_expert_intermediate_size=shared, decoder_sparse_step=1, rope_parameters=rope(1000000.0), **more)


# A gate says how much the shared expert counts.
QWEN2_MOE = [
    case("qwen2moe-converted", "Qwen2Moe", shape(32, 4, 2, 24, **qwen2_moe(6, 2, 10, 14))),
    case("qwen2moe-converted-tied", "Qwen2Moe",
         shape(40, 2, 1, 20, layers=3, tie_word_embeddings=True, **qwen2_moe(5, 3, 8, 12))),
]

# Positions in three dimensions, which are one in a text. They take turns over 4, 2 and 2 of 8 pairs.
SECTIONS = rope(5000000.0, mrope_section=[4, 2, 2], mrope_interleaved=True)


def qwen3_vl(count, used, width):
    return dict(num_experts=count, num_experts_per_tok=used, moe_intermediate_size=width, norm_topk_prob=True,
                decoder_sparse_step=1)


QWEN3_VL = [
    case("qwen3vl-converted", "Qwen3VL", shape(32, 2, 1, 24, head_dim=16, rope_parameters=SECTIONS), pictures=True),
    case("qwen3vl-converted-heads", "Qwen3VL",
         shape(32, 4, 2, 20, layers=3, head_dim=8,
               rope_parameters=rope(10000.0, mrope_section=[2, 1, 1], mrope_interleaved=True)), pictures=True),
    case("qwen3vlmoe-converted", "Qwen3VLMoe",
         shape(32, 2, 1, 24, head_dim=16, rope_parameters=SECTIONS, **qwen3_vl(6, 2, 10)), pictures=True),
    case("qwen3vlmoe-converted-heads", "Qwen3VLMoe",
         shape(32, 4, 4, 20, layers=3, head_dim=8, rope_parameters=rope(10000.0, mrope_section=[2, 1, 1]),
               **qwen3_vl(5, 3, 8)), pictures=True),
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

# Where a layer has a window, those without one do not rotate.
EXAONE = [
    case("exaone4-converted", "Exaone4",
         shape(32, 4, 2, 24, layers=5, head_dim=8, sliding_window=7, sliding_window_pattern="LLLG",
               layer_types=[LOCAL] * 3 + [GLOBAL, LOCAL], rope_parameters=rope(1000000.0))),
    case("exaone4-converted-whole", "Exaone4",
         shape(24, 2, 1, 20, head_dim=16, sliding_window=None, sliding_window_pattern=None, layer_types=[GLOBAL] * 2,
               tie_word_embeddings=True, rope_parameters={**LLAMA3, "original_max_position_embeddings": 32})),
]


def hunyuan(count, used, width, **more):
    return dict(num_experts=count, moe_topk=used, rope_parameters=rope(), attention_bias=False, **more)


def hunyuan_lists(layers, count, used, width):
    return {"moe_topk": [used] * layers, "moe_intermediate_size": [width] * layers, "num_shared_expert": [1] * layers,
            "num_experts": count}


HUNYUAN = [
    case("hunyuan-dense-converted", "HunYuanDenseV1",
         shape(32, 4, 2, 24, head_dim=8, tie_word_embeddings=True, rope_parameters=rope()), arch="hunyuan-dense"),
    case("hunyuan-dense-converted-untied", "HunYuanDenseV1",
         shape(24, 2, 1, 20, layers=3, head_dim=16, rope_parameters=rope(100000.0)), arch="hunyuan-dense"),
    case("hunyuan-moe-converted", "HunYuanMoEV1",
         shape(32, 4, 2, 12, head_dim=8, **hunyuan(6, 2, 12)), arch="hunyuan-moe", published=hunyuan_lists(2, 6, 2, 12)),
    case("hunyuan-moe-converted-tied", "HunYuanMoEV1",
         shape(24, 2, 1, 10, layers=3, head_dim=12, tie_word_embeddings=True, **hunyuan(5, 3, 10)), arch="hunyuan-moe",
         published=hunyuan_lists(3, 5, 3, 10)),
]

ERNIE_MOE = [
    case("ernie4_5-moe-converted", "Ernie4_5_Moe",
         shape(32, 4, 2, 24, layers=3, moe_num_experts=6, moe_k=2, moe_intermediate_size=12, moe_num_shared_experts=1,
               moe_layer_start_index=1, moe_layer_end_index=2, rope_parameters=rope(500000.0)), arch="ernie4_5-moe"),
    case("ernie4_5-moe-converted-tied", "Ernie4_5_Moe",
         shape(40, 4, 1, 20, moe_num_experts=5, moe_k=3, moe_intermediate_size=10, moe_num_shared_experts=2,
               moe_layer_start_index=1, moe_layer_end_index=1, tie_word_embeddings=True, rope_parameters=rope()),
         arch="ernie4_5-moe"),
]


def granite_windows(types, window, **more):
    return dict(layer_types=types, sliding_window=window, rope_parameters=rope(),
                layer_rope_theta=[10000.0] * len(types), **more)


GRANITE_SWA = [
    case("granite_swa-converted", "GraniteSWA",
         shape(32, 4, 2, 24, layers=5, **granite_windows([GLOBAL, LOCAL, LOCAL, LOCAL, GLOBAL], 6), **GRANITE_CONFIG)),
    case("granite_swa-converted-tied", "GraniteSWA",
         shape(24, 2, 1, 20, layers=3, tie_word_embeddings=True, **granite_windows([GLOBAL, LOCAL, GLOBAL], 9),
               **GRANITE_CONFIG_2)),
]

# Within the original context of 8 positions queries do not grow, behind it they do.
MISTRAL3 = [
    case("mistral3-converted", "Ministral3",
         shape(32, 4, 2, 24, head_dim=8,
               rope_parameters=yarn(1000000.0, 16.0, 8, mscale=1.0, mscale_all_dim=1.0, beta_fast=32.0, beta_slow=1.0,
                                    llama_4_scaling_beta=0.1))),
    case("mistral3-converted-tied", "Ministral3",
         shape(24, 2, 1, 20, layers=3, head_dim=16, tie_word_embeddings=True,
               rope_parameters=yarn(10000.0, 4.0, 12, mscale=1.0, mscale_all_dim=1.0, beta_fast=4.0, beta_slow=1.0,
                                    llama_4_scaling_beta=0.4))),
]



def gemma4(types, window, head, wide, turned, final_cap=None, base=1000000.0, **more):
    """Layers without a window have heads of `wide` values, of which a part turns."""
    return dict(layer_types=types, sliding_window=window, head_dim=head, global_head_dim=wide, tie_word_embeddings=True,
                final_logit_softcapping=final_cap, hidden_size_per_layer_input=more.pop("each", 0), vocab_size_per_layer_input=VOCAB,
                rope_parameters={LOCAL: rope(10000.0), GLOBAL: {"rope_type": "proportional", "rope_theta": base,
                                                                "partial_rotary_factor": turned}}, **more)


GEMMA4 = [
    # As 31B: values that are the keys where a layer sees all positions.
    case("gemma4-converted", "Gemma4",
         shape(24, 4, 2, 28, layers=4, **gemma4([LOCAL, LOCAL, GLOBAL, GLOBAL], 6, 8, 16, 0.25, 8.0,
                                                attention_k_eq_v=True, num_global_key_value_heads=1)), spread=SMALL),
    # As 26B-A4B: experts beside a dense block.
    case("gemma4-converted-experts", "Gemma4",
         shape(32, 2, 1, 20, **gemma4([LOCAL, GLOBAL], 9, 12, 24, 0.5, base=10000.0, enable_moe_block=True, num_experts=6,
                                                top_k_experts=2, moe_intermediate_size=10, attention_k_eq_v=True,
                                                num_global_key_value_heads=2)),
         seed=119, spread={**SMALL, "router.proj": 12}),
    # As E2B: embeddings for each layer, and layers that use the caches of earlier ones.
    case("gemma4-converted-each", "Gemma4",
         shape(32, 4, 1, 16, layers=6, **gemma4([LOCAL, GLOBAL, LOCAL, LOCAL, LOCAL, GLOBAL], 6, 8, 16, 0.25, 10.0, each=12,
                                                num_kv_shared_layers=3, use_double_wide_mlp=True)), seed=1, spread=SMALL),
]

# No gate, and the square of what is positive.
ARCEE = [
    case("arcee-converted", "Arcee", shape(32, 4, 2, 28, head_dim=8, rms_norm_eps=1e-5, rope_parameters=rope())),
    case("arcee-converted-yarn", "Arcee",
         shape(24, 2, 1, 20, layers=3, head_dim=12, tie_word_embeddings=True, rms_norm_eps=1e-5,
               rope_parameters=yarn(10000.0, 4.0, 16, beta_fast=32.0, beta_slow=1.0, mscale=1.0))),
]

# Norms that subtract the mean.
STABLELM = [
    case("stablelm-converted", "StableLm",
         shape(32, 4, 2, 24, use_qkv_bias=True, use_parallel_residual=False, layer_norm_eps=1e-5,
               rope_parameters=rope(partial_rotary_factor=0.25))),
    # Attention and feed-forward beside each other, as in StableLM 2 12B. Its norms of heads the converter loses.
    case("stablelm-converted-beside", "StableLm",
         shape(32, 2, 1, 24, layers=3, use_qkv_bias=False, use_parallel_residual=True,
               layer_norm_eps=1e-5, rope_parameters=rope(partial_rotary_factor=0.25))),
]

OLMO = [
    case("olmo-converted", "Olmo", shape(32, 4, 2, 24, rope_parameters=rope(), clip_qkv=None)),
    case("olmo-converted-tied", "Olmo",
         shape(24, 2, 2, 28, layers=3, tie_word_embeddings=True, rope_parameters=rope(500000.0), clip_qkv=None)),
]

COHERE = [
    case("command-r-converted", "Cohere",
         shape(32, 4, 2, 24, logit_scale=0.25, use_qk_norm=False, layer_norm_eps=1e-5, rope_parameters=rope(8000000.0)),
         arch="command-r", published={"model_max_length": 256}),
    # As Command R+.
    case("command-r-converted-norms", "Cohere",
         shape(24, 2, 1, 20, layers=3, logit_scale=0.5, use_qk_norm=True, layer_norm_eps=1e-5, rope_parameters=rope()),
         arch="command-r", published={"model_max_length": 256}),
    # Layers without a window do not rotate.
    case("cohere2-converted", "Cohere2",
         shape(32, 4, 2, 24, layers=5, logit_scale=0.25, layer_norm_eps=1e-5, sliding_window=7,
               layer_types=[LOCAL] * 3 + [GLOBAL, LOCAL], rope_parameters=rope(50000.0)),
         published={"rotary_pct": 1.0}),
    case("cohere2-converted-half", "Cohere2",
         shape(24, 3, 1, 28, layers=4, logit_scale=1.0, layer_norm_eps=1e-5, sliding_window=5,
               layer_types=[LOCAL] * 3 + [GLOBAL], rope_parameters=rope()),
         published={"rotary_pct": 1.0}),
]

NEMOTRON = [
    case("nemotron-converted", "Nemotron",
         shape(32, 4, 2, 24, norm_eps=1e-5, rope_parameters=rope(partial_rotary_factor=0.5))),
    case("nemotron-converted-biases", "Nemotron",
         shape(24, 2, 1, 28, layers=3, norm_eps=1e-5, attention_bias=True, mlp_bias=True,
               rope_parameters=rope(partial_rotary_factor=0.5))),
]



def llama4(hidden, count, step, **more):
    return dict(intermediate_size_mlp=hidden, num_local_experts=count, num_experts_per_tok=1,
                interleave_moe_layer_step=step, rope_parameters=rope(500000.0), **more)


# The converter writes neither chunks nor what queries grow by, since public engines have the published values.
LLAMA4 = [
    case("llama4-converted", "Llama4", shape(32, 4, 2, 20, layers=5, head_dim=8, **llama4(28, 6, 1))),
    case("llama4-converted-chunks", "Llama4",
         shape(24, 2, 1, 12, layers=5, head_dim=12,
               **llama4(20, 5, 2, attention_chunk_size=6, floor_scale=5, attn_scale=0.4)),
         keys={"attention.sliding_window": 6, "attention.temperature_length": 5, "attention.temperature_scale": 0.4}),
    # As Maverick, whose heads are not normalised.
    case("llama4-converted-plain", "Llama4",
         shape(16, 2, 2, 4, layers=4, head_dim=8, use_qk_norm=False, tie_word_embeddings=True,
               **llama4(20, 128, 2, attention_chunk_size=5)),
         keys={"attention.sliding_window": 5}),
]

MUSE_PICTURES = {"vision_config": {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2},
                 "out_hidden_size": 16, "projector_hidden_size": 16}
MUSE_GLIMMER = [
    case("muse-glimmer-converted", "MuseGlimmer",
         shape(32, 4, 2, 24, layers=4, head_dim=8, sliding_window=7, final_logit_softcapping=1.0, output_multiplier=0.2,
               qk_scale_factor=1.3, rope_parameters=rope(500000.0)),
         arch="muse-glimmer", pictures=MUSE_PICTURES),
    case("muse-glimmer-converted-turned", "MuseGlimmer",
         shape(24, 2, 1, 20, layers=5, head_dim=12, sliding_window=5, final_logit_softcapping=2.0, output_multiplier=0.5,
               qk_scale_factor=2.0, layer_types=[LOCAL] * 3 + [GLOBAL, LOCAL], layer_rope_theta=[10000.0] * 3 + [0, 10000.0],
               rope_parameters=rope()),
         arch="muse-glimmer", pictures=MUSE_PICTURES),
]

FAMILIES = LLAMA4 + MUSE_GLIMMER + ARCEE + STABLELM + OLMO + COHERE + NEMOTRON + GEMMA4 + QWEN2_MOE + QWEN3_VL + EXAONE + HUNYUAN + ERNIE_MOE + GRANITE_SWA + MISTRAL3 + GEMMA + OLMOE + SEED_OSS + ERNIE + GLM + GLM_MOE + MINIMAX
