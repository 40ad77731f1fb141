"""Models whose layers keep states, alone or among layers with attention."""
from .case import VOCAB, Case, rope, shape
from .dense import GRANITE_CONFIG


def case(name, model, config, **more):
    return Case(name, model, [], config, **more)


def lfm2(width, heads, kv_heads, ffn, kinds, conv, **more):
    return shape(width, heads, kv_heads, ffn, layers=len(kinds), norm_eps=1e-5, conv_L_cache=conv,
                 block_auto_adjust_ff_dim=False, rope_parameters=rope(1000000.0),
                 layer_types=["full_attention" if kind == "a" else "conv" for kind in kinds], **more)


LFM2 = [
    case("lfm2-converted", "Lfm2", lfm2(32, 4, 2, 24, "ccac", 3)),
    # A text shorter than the convolution is read in the tests, token by token.
    case("lfm2-converted-wide", "Lfm2", lfm2(40, 2, 1, 20, "acc", 8)),
]


def delta(keys, values, key_width, value_width, kinds, conv=4, part=0.25, **more):
    """The part of a config that says what the layers with a state have: "s", among those that attend: "a"."""
    return dict(linear_num_key_heads=keys, linear_num_value_heads=values, linear_key_head_dim=key_width,
                linear_value_head_dim=value_width, linear_conv_kernel_dim=conv,
                layer_types=["full_attention" if kind == "a" else "linear_attention" for kind in kinds],
                rope_parameters=rope(10000.0, partial_rotary_factor=part), **more)


def experts(count, used, width, shared):
    return dict(num_experts=count, num_experts_per_tok=used, moe_intermediate_size=width,
                shared_expert_intermediate_size=shared)


def qwen(name, model, layers, *parts, **more):
    config = shape(*layers, rms_norm_eps=1e-6)
    for part in parts:
        config.update(part)
    if model.startswith("Qwen3_5"):  # positions of a text are the same in all three dimensions
        pairs = int(config["head_dim"] * config["rope_parameters"]["partial_rotary_factor"]) // 2
        config["rope_parameters"]["mrope_section"] = [1, 1, pairs - 2]
    return case(name, model, config, **more)


# The converter takes 4 for full_attention_interval, which transformers does not write, unless it is published.
QWEN = [
    qwen("qwen35-converted", "Qwen3_5", (32, 4, 2, 24, 4), delta(2, 4, 8, 12, "sssa", head_dim=16)),
    # As many heads of keys as of values; every second layer attends.
    qwen("qwen35-converted-period", "Qwen3_5", (24, 2, 1, 20, 3),
         delta(3, 3, 12, 8, "sas", conv=2, part=0.5, head_dim=12, tie_word_embeddings=True),
         published={"full_attention_interval": 2}),
    qwen("qwen3next-converted", "Qwen3Next", (32, 4, 2, 24, 4),
         delta(2, 4, 8, 12, "sssa", head_dim=16), experts(6, 3, 8, 10), seed=1),
    qwen("qwen3next-converted-alike", "Qwen3Next", (24, 2, 1, 20, 2),
         delta(3, 3, 12, 8, "sa", conv=3, part=0.5, head_dim=8), experts(4, 2, 12, 8),
         published={"full_attention_interval": 2}),
    qwen("qwen35moe-converted", "Qwen3_5Moe", (32, 4, 2, 24, 4),
         delta(2, 6, 8, 12, "sssa", head_dim=16), experts(6, 3, 8, 10), seed=1),
    qwen("qwen35moe-converted-alike", "Qwen3_5Moe", (24, 2, 1, 20, 2),
         delta(3, 3, 12, 8, "sa", conv=3, part=0.5, head_dim=8), experts(4, 2, 12, 8),
         published={"full_attention_interval": 2}),
]


def lfm2moe(*layers, **more):
    config = lfm2(*layers, **more)
    del config["block_auto_adjust_ff_dim"]
    return config


LFM2MOE = [
    case("lfm2moe-converted", "Lfm2Moe",
         lfm2moe(32, 4, 2, 24, "ccac", 3, num_dense_layers=2, num_experts=6, num_experts_per_tok=2,
                 moe_intermediate_size=8)),
    case("lfm2moe-converted-few", "Lfm2Moe",
         lfm2moe(24, 2, 1, 20, "ca", 4, num_dense_layers=1, num_experts=4, num_experts_per_tok=3,
                 moe_intermediate_size=12)),
]


def mamba2(width, layers, heads, groups, state, conv=4, **more):
    return dict(vocab_size=VOCAB, hidden_size=width, num_hidden_layers=layers, num_heads=heads,
                head_dim=2 * width // heads, n_groups=groups, state_size=state, conv_kernel=conv,
                bos_token_id=1, eos_token_id=2, pad_token_id=None, chunk_size=16, **more)


MAMBA = [
    case("mamba2-converted", "Mamba2", mamba2(32, 2, 8, 2, 12)),
    case("mamba2-converted-lone", "Mamba2",
         mamba2(24, 3, 3, 1, 8, conv=2, use_conv_bias=False, tie_word_embeddings=True)),
    case("mamba-converted", "Mamba",
         dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, state_size=8, time_step_rank=4,
              bos_token_id=1, eos_token_id=2, pad_token_id=None)),
    case("mamba-converted-odd", "Mamba",
         dict(vocab_size=VOCAB, hidden_size=20, num_hidden_layers=3, state_size=5, time_step_rank=3, conv_kernel=3,
              use_conv_bias=False, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=None)),
]


def mixer(heads, groups, state, width, **more):
    """Mamba 2 in a model that attends too."""
    return dict(mamba_n_heads=heads, mamba_n_groups=groups, mamba_d_state=state, mamba_d_head=2 * width // heads,
                mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=16, **more)


def granite(name, width, heads, kv_heads, ffn, kinds, *parts, **more):
    config = shape(width, heads, kv_heads, ffn, layers=len(kinds), rope_parameters=rope(),
                   layer_types=["full_attention" if kind == "a" else "linear_attention" for kind in kinds],
                   **GRANITE_CONFIG)
    for part in parts:
        config.update(part)
    return case(name, "GraniteMoeHybrid", config,
                published={"layer_types": ["attention" if kind == "a" else "mamba" for kind in kinds]}, **more)


GRANITE = [
    granite("granitehybrid-converted", 32, 4, 2, 12, "amma", mixer(8, 2, 12, 32),
            dict(num_local_experts=5, num_experts_per_tok=2, shared_intermediate_size=20)),
    granite("granitehybrid-converted-dense", 32, 4, 2, 24, "ama", mixer(4, 1, 8, 32),
            dict(num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=24, tie_word_embeddings=True)),
]
# Bamba is granitehybrid without scales and with a rotation, which must be that of whole heads.
BAMBA = [
    case("granitehybrid-converted-bamba", "Bamba",
         shape(40, 4, 2, 24, layers=3, attn_layer_indices=[2], hidden_act="silu",
               rope_parameters=rope(partial_rotary_factor=1.0), **mixer(8, 2, 12, 40)),
         published={"layer_types": None, "attn_rotary_emb": 10}),
]
FALCON = [
    case("falcon-h1-converted", "FalconH1",
         shape(32, 4, 2, 24, head_dim=8, mamba_d_ssm=48, mamba_n_heads=6, mamba_d_head=8, mamba_n_groups=2,
               mamba_d_state=12, mamba_chunk_size=16, mamba_rms_norm=True, mamba_norm_before_gate=False,
               rope_parameters=rope(100000.0), key_multiplier=0.7, attention_in_multiplier=1.2,
               attention_out_multiplier=0.8, ssm_in_multiplier=1.1, ssm_out_multiplier=0.9,
               mlp_multipliers=[0.9, 1.3], ssm_multipliers=[0.9, 1.1, 0.8, 1.2, 0.7], embedding_multiplier=2.0,
               lm_head_multiplier=0.5), arch="falcon-h1"),
    case("falcon-h1-converted-plain", "FalconH1",
         shape(24, 2, 1, 20, head_dim=12, mamba_d_ssm=48, mamba_n_heads=4, mamba_d_head=12, mamba_n_groups=1,
               mamba_d_state=8, mamba_chunk_size=16, mamba_rms_norm=False, mamba_conv_bias=False,
               rope_parameters=rope(10000.0)), arch="falcon-h1"),
]


def nemotron_config(width, heads, kv_heads, ffn, pattern, **more):
    kinds = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
    return shape(width, heads, kv_heads, ffn, layers=len(pattern), chunk_size=16,
                 layers_block_type=[kinds[kind] for kind in pattern], **more)


def nemotron(name, width, heads, kv_heads, ffn, pattern, **more):
    config = nemotron_config(width, heads, kv_heads, ffn, pattern, **more)
    # A dense model has no keys of experts. The class of transformers, which the converter would find by the type,
    # adds them again.
    return case(name, "NemotronH", config, arch="nemotron_h",
                published={"model_type": "nemotron_h_dense", "hybrid_override_pattern": pattern,
                           "mamba_d_head": more["mamba_head_dim"], "rms_norm_eps": 1e-5,
                           "layer_norm_epsilon": None, "num_experts_per_tok": None, "n_routed_experts": None,
                           "n_group": None, "topk_group": None})


NEMOTRON = [
    nemotron("nemotron_h-converted", 32, 4, 2, 24, "M-M*-", head_dim=12, mamba_num_heads=8, mamba_head_dim=6,
             n_groups=2, ssm_state_size=12),
    nemotron("nemotron_h-converted-lone", 24, 2, 1, 20, "*M-M", head_dim=16, mamba_num_heads=3, mamba_head_dim=16,
             n_groups=1, ssm_state_size=8, conv_kernel=3),
]


def nemotron_moe(name, width, heads, kv_heads, pattern, **more):
    config = nemotron_config(width, heads, kv_heads, 16, pattern, **more)
    return case(name, "NemotronH", config, arch="nemotron_h_moe",
                published={"hybrid_override_pattern": pattern, "mamba_d_head": more["mamba_head_dim"],
                           "rms_norm_eps": 1e-5, "layer_norm_epsilon": None})


NEMOTRON_MOE = [
    nemotron_moe("nemotron_h_moe-converted", 32, 4, 2, "ME*E", head_dim=12, mamba_num_heads=8, mamba_head_dim=6,
                 n_groups=2, ssm_state_size=12, n_routed_experts=6, num_experts_per_tok=3, moe_intermediate_size=8,
                 moe_shared_expert_intermediate_size=10, routed_scaling_factor=2.5),
    nemotron_moe("nemotron_h_moe-converted-lone", 24, 2, 1, "E*M", head_dim=16, mamba_num_heads=3, mamba_head_dim=16,
                 n_groups=1, ssm_state_size=8, conv_kernel=3, n_routed_experts=4, num_experts_per_tok=1,
                 moe_intermediate_size=12, moe_shared_expert_intermediate_size=20, norm_topk_prob=False),
]


def jamba(width, heads, kv_heads, ffn, layers, period, offset, count, used, state, rank):
    return shape(width, heads, kv_heads, ffn, layers=layers, attn_layer_period=period, attn_layer_offset=offset,
                 expert_layer_period=2, expert_layer_offset=1, num_experts=count, num_experts_per_tok=used,
                 mamba_d_state=state, mamba_dt_rank=rank, use_mamba_kernels=False)


JAMBA = [
    case("jamba-converted", "Jamba", jamba(32, 4, 2, 12, 4, 4, 2, 4, 2, 8, 4)),
    case("jamba-converted-odd", "Jamba", jamba(24, 2, 1, 10, 3, 2, 1, 3, 1, 5, 3)),
]

HYBRIDS = LFM2 + QWEN + LFM2MOE + MAMBA + GRANITE + BAMBA + FALCON + NEMOTRON + NEMOTRON_MOE + JAMBA
