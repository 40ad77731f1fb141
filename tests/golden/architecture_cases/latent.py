"""DeepSeek V2 and V3: latent attention, shared experts, a dense layer in front, or dense layers alone; also in the
form that converters wrote before April 2025."""
from . import tables
from .case import Case, rope, shape, yarn, yarn_keys

SOFTMAX, SIGMOID = 1, 2  # expert_gating_func


def latent(rank, nope, rotary, value, query_rank=None):
    """The file has the latent widths as key_length and value_length, those of a head with _mla behind."""
    keys = {"attention.head_count_kv": 1, "rope.dimension_count": rotary, "attention.kv_lora_rank": rank,
            "attention.key_length": rank + rotary, "attention.value_length": rank,
            "attention.key_length_mla": nope + rotary, "attention.value_length_mla": value}
    if query_rank:
        keys["attention.q_lora_rank"] = query_rank
    return dict(kv_lora_rank=rank, qk_nope_head_dim=nope, qk_rope_head_dim=rotary, v_head_dim=value,
                q_lora_rank=query_rank), keys


def joined(rank, nope, rotary, value, query_rank=None):
    """The form before April 2025: the widths are a head's, whose keys and values come from one tensor."""
    config, _ = latent(rank, nope, rotary, value, query_rank)
    keys = {"rope.dimension_count": rotary, "attention.kv_lora_rank": rank,
            "attention.key_length": nope + rotary, "attention.value_length": value}
    if query_rank:
        keys["attention.q_lora_rank"] = query_rank
    return config, keys


def dense(layers=None):
    """No layer has experts. The converter gives the dense layers' count and widths of experts all the same."""
    keys = {"leading_dense_block_count": layers, "expert_feed_forward_length": 24, "expert_shared_count": 0}
    return dict(first_k_dense_replace=2), keys if layers else {}


def experts(count, used, width, shared, dense, scale, groups=1, groups_used=1, normalised=False, gating=SOFTMAX):
    config = dict(n_routed_experts=count, num_experts_per_tok=used, moe_intermediate_size=width,
                  n_shared_experts=shared, first_k_dense_replace=dense, routed_scaling_factor=scale,
                  n_group=groups, topk_group=groups_used, norm_topk_prob=normalised)
    keys = {"expert_count": count, "expert_used_count": used, "expert_feed_forward_length": width,
            "expert_shared_count": shared, "leading_dense_block_count": dense, "expert_weights_scale": scale,
            "expert_gating_func": gating, "expert_group_count": groups, "expert_group_used_count": groups_used}
    if normalised:
        keys["expert_weights_norm"] = True
    return config, keys


def without(part, *names):
    config, keys = part
    return config, {name: value for name, value in keys.items() if name not in names}


def case(name, model, width, heads, parts, table=tables.DEEPSEEK2):
    config = shape(width, heads, heads, 24, rms_norm_eps=1e-6, rope_parameters=rope())
    keys = {}
    for part_config, part_keys in parts:
        config.update(part_config)
        keys.update(part_keys)
    return Case(name, model, table, config, keys)


def deep_yarn(factor, original, all_dim):
    """mscale and mscale_all_dim are equal, as in the published models; the file has a tenth of it."""
    return ({"rope_parameters": yarn(10000.0, factor, original, mscale=all_dim, mscale_all_dim=all_dim)},
            yarn_keys(factor, original, **{"rope.scaling.yarn_log_multiplier": 0.1 * all_dim}))


# Keys of experts that came later than DeepSeek V2.
NOT_YET = ["expert_gating_func", "expert_group_count", "expert_group_used_count"]
LITE = ({"topk_method": "greedy"}, {})
GROUPED = ({"topk_method": "group_limited_greedy"}, {})

LATENT = [
    case("deepseek2-lite", "DeepseekV2", 32, 2, [latent(16, 12, 8, 10), experts(6, 2, 12, 1, 1, 1.0), LITE]),
    case("deepseek2-lite-yarn", "DeepseekV2", 24, 3,
         [latent(20, 8, 12, 8), experts(5, 2, 12, 2, 1, 1.0), LITE, deep_yarn(40.0, 64, 0.707)]),
    case("deepseek2-v2-groups", "DeepseekV2", 32, 2,
         [latent(16, 10, 8, 12, query_rank=20), experts(8, 3, 8, 1, 1, 2.5, groups=4, groups_used=2), GROUPED,
          deep_yarn(4.0, 64, 1.0)]),
    case("deepseek2-v3", "DeepseekV3", 32, 2,
         [latent(16, 12, 8, 12, query_rank=24),
          experts(8, 3, 8, 1, 1, 2.5, groups=4, groups_used=2, normalised=True, gating=SIGMOID),
          deep_yarn(40.0, 64, 1.0)]),
    case("deepseek2-v3-one-group", "DeepseekV3", 32, 4,
         [latent(12, 8, 4, 8, query_rank=16), experts(6, 2, 8, 2, 1, 1.8, normalised=True, gating=SIGMOID)]),
    case("deepseek2-dense", "DeepseekV3", 32, 2,
         [latent(16, 12, 8, 10, query_rank=20), dense(2), deep_yarn(4.0, 64, 1.0)]),
    case("deepseek2-dense-lite", "DeepseekV2", 24, 3, [latent(12, 8, 4, 8), dense()]),
    case("deepseek2-joined-dense", "DeepseekV3", 24, 2, [joined(12, 8, 4, 10, query_rank=16), dense(2)],
         tables.DEEPSEEK2_JOINED),
    case("deepseek2-joined-lite", "DeepseekV2", 24, 3,
         [joined(20, 8, 12, 10), without(experts(5, 2, 12, 2, 1, 1.0), *NOT_YET), LITE, deep_yarn(40.0, 64, 0.707)],
         tables.DEEPSEEK2_JOINED),
    case("deepseek2-joined-v3", "DeepseekV3", 32, 4,
         [joined(12, 10, 4, 8, query_rank=16), experts(6, 2, 8, 2, 1, 1.8, normalised=True, gating=SIGMOID)],
         tables.DEEPSEEK2_JOINED),
]
