"""What each key of a file's metadata means to the reference: how its config, or the model made by it, changes with the key.

`SETTINGS` has a row for each key (without the prefix of the architecture) that the reference has a result for when it
changes. A row says what a new value does, and which value llama.cpp takes where the key is absent. Keys without a row give
sizes: with another value the tensors do not fit, or what depends on the key cannot be told, so that a file is to be refused.
"""
import math
from dataclasses import dataclass, field

import torch
import transformers

from .changes import regroup
from .routers import raw_weights, sigmoid_router, softmax_router

FULL, SLIDING = "full_attention", "sliding_attention"
REQUIRED = object()  # there is no default, and a file without the key is refused


class NoReference(Exception):
    """The reference has no result for the value: a file with it is refused."""


class NoChange(Exception):
    """The value changes nothing; the text says why."""


@dataclass
class State:
    """A model about to be made otherwise than its file says."""
    arch: str
    model: str       # class of transformers
    keys: dict       # of the file, without the prefix
    context: int     # of the session
    tensors: set     # names in the file
    config: dict     # of the reference, to be changed
    hooks: list = field(default_factory=list)  # what is done to the model after it is made

    def ropes(self):
        """(parameters of layers that see all, those of layers with a window or None)."""
        rope = self.config["rope_parameters"]
        return (rope[FULL], rope[SLIDING]) if FULL in rope else (rope, None)

    def has_experts(self):
        """Whether any layer has them."""
        return self.keys.get("expert_count", 0) > 0 and \
            self.keys.get("leading_dense_block_count", 0) < self.keys["block_count"]


@dataclass
class Setting:
    """`apply(state, value)` raises NoReference or NoChange where it does not lead to a result of its own."""
    apply: object
    default: object = REQUIRED  # a value, or what makes it of the state
    factors: tuple = (2,)  # that a number is multiplied by


def in_config(name):
    def apply(state, value):
        state.config[name] = value
    return apply


def no_change(why):
    def apply(state, value):
        raise NoChange(why)
    return apply


# ---- norms ---------------------------------------------------------------------------------------------------------

def epsilon(state, value):
    """Every norm's: some models of the reference give those of latent attention one of their own, a file has one for all."""
    def hook(model):
        for place, module in model.named_modules():
            if state.arch == "muse-glimmer" and ".post_" in place:  # no file gives theirs
                continue
            for name in ("variance_epsilon", "eps"):
                if hasattr(module, name) and name not in module._buffers:  # xIELU has one
                    setattr(module, name, value)
    state.hooks.append(hook)


MEAN_NORMS = ("nemotron", "olmo", "stablelm", "command-r", "cohere2", "phi2", "starcoder2", "gptneox", "gpt2",
              "bloom")


def mean_epsilon(state, value):
    """OLMo's class has the number in its code."""
    if state.arch not in MEAN_NORMS:
        raise NoChange("no norm takes off a mean")
    if state.arch == "olmo":
        layer_norm = torch.nn.functional.layer_norm
        state.hooks.append(lambda model: [
            setattr(module, "forward", lambda x, width=module.normalized_shape: layer_norm(x, width, eps=value))
            for module in model.modules() if hasattr(module, "normalized_shape")])
    else:
        epsilon(state, value)


def square_epsilon(state, value):
    if state.arch == "nemotron":
        raise NoChange("norms subtract the mean, and layer_norm_epsilon is theirs")
    epsilon(state, value)


# ---- rope ----------------------------------------------------------------------------------------------------------

def base(state, value):
    full, sliding = state.ropes()
    if full["rope_type"] == "llama3":  # the file has factors that were worked out for the base of training
        factors = frequency_factors(state.config)
        full.update(rope_type="default")
        state.hooks.append(lambda model: model.model.rotary_emb.inv_freq.div_(factors))
    full["rope_theta"] = value
    if "layer_rope_theta" in state.config:
        state.config["layer_rope_theta"] = [value if each else 0 for each in state.config["layer_rope_theta"]]
    if sliding is not None and state.arch != "gemma3" and "rope.freq_base_swa" not in state.keys:
        sliding["rope_theta"] = value


def base_of_windows(state, value):
    state.ropes()[1]["rope_theta"] = value


def frequency_factors(config):
    rope = config["rope_parameters"]
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    plain = rope["rope_theta"] ** -(torch.arange(0, head, 2, dtype=torch.float64) / head)
    kind = transformers.LlamaConfig(**config)
    return plain / transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](kind)[0]


def scaling_type(state, value):
    full, _ = state.ropes()
    if full["rope_type"] == "longrope" or value not in ("none", "linear", "yarn"):
        raise NoReference
    full["rope_type"] = "default" if value == "none" else value
    if value != "none":
        full.setdefault("factor", state.keys.get("rope.scaling.factor", 1.0))
    full["original_max_position_embeddings"] = state.keys.get("rope.scaling.original_context_length",
                                                              state.keys["context_length"])


def default_scaling(state):
    """Long and short factors say it as well."""
    return "longrope" if state.ropes()[0]["rope_type"] == "longrope" else "linear"


def in_rope(name):
    def apply(state, value):
        state.ropes()[0][name] = value
    return apply


def original_context(state, value):
    full, _ = state.ropes()
    if full["rope_type"] == "longrope":  # the longest context of a session decides, and not how much of it is used
        long = state.context > value
        full["short_factor"] = full["long_factor"] = full["long_factor" if long else "short_factor"]
        full.setdefault("attention_factor", state.keys["rope.scaling.attn_factor"])
    elif full["rope_type"] == "yarn":
        full["original_max_position_embeddings"] = value
    else:
        raise NoChange("nothing scales the rotation")


def log_multiplier(state, value):
    """Ten times of it is both, mscale and mscale_all_dim, as in all published models."""
    full, _ = state.ropes()
    if state.arch == "mistral3":  # it is mscale_all_dim, and mscale is not in the file
        full["mscale_all_dim"] = value
        return
    full["mscale"] = full["mscale_all_dim"] = 10 * value
    if not value:
        del full["mscale"], full["mscale_all_dim"]


def turns(state, value):
    if "rope_parameters" not in state.config:
        raise NoChange("no layer rotates")
    if state.model == "Bamba":
        if not value:
            state.hooks.append(stand_still)
        return
    state.config["position_embedding_type"] = "rope" if value else None


def stand_still(model):
    rotary = model.model.rotary_emb
    plain = rotary.forward

    def forward(*given, **named):
        cos, sin = plain(*given, **named)
        return torch.ones_like(cos), torch.zeros_like(sin)
    rotary.forward = forward


# ---- windows -------------------------------------------------------------------------------------------------------

PERIODS = {"muse-glimmer": 4, "gemma2": 2, "gemma3": 6, "gemma4": 6, "gpt-oss": 2, "olmo2": 4, "exaone4": 4, "granite_swa": 4}  # of the layer that sees all
FIRST = ("granite_swa",)  # there it is the first of these layers, and not the last


def window(state, value):
    if state.arch == "llama4":
        state.config["attention_chunk_size"] = value
        return
    if state.arch in ("gemma3", "olmo2", "exaone4", "laguna") and not value:
        state.config["layer_types"] = [FULL] * state.config["num_hidden_layers"]
        if state.arch == "exaone4":  # then all layers rotate
            state.config["sliding_window"] = None
    else:
        state.config["sliding_window"] = value or None


def pattern(state, value):
    """A period, or for each layer whether it has a window."""
    if state.arch == "gemma4":
        raise NoReference  # sizes of heads follow from it
    layers = range(state.config["num_hidden_layers"])
    windowed = value if isinstance(value, list) else [(layer + (state.arch not in FIRST)) % value != 0 for layer in layers]
    state.config["layer_types"] = [SLIDING if each else FULL for each in windowed]
    if state.arch == "muse-glimmer":  # the others do not rotate
        state.config["layer_rope_theta"] = [state.keys["rope.freq_base"] if each else 0 for each in windowed]


# ---- experts -------------------------------------------------------------------------------------------------------

def of_experts(apply):
    def checked(state, value):
        if not state.has_experts():
            raise NoChange("no layer has experts")
        apply(state, value)
    return checked


def sizes_of_experts(state, value):
    raise NoReference


def dense_layers(state, value):
    if value > state.keys["block_count"] or state.keys.get("expert_count"):
        raise NoReference
    raise NoChange("there are no experts")


def width_of_experts(state, value):
    value = value[0] if isinstance(value, list) else value  # of the first layer
    if value != state.keys.get("expert_feed_forward_length"):
        raise NoReference
    raise NoChange("it is feed_forward_length where it is not given")


def width_of_layers(state, value):
    if isinstance(state.keys["feed_forward_length"], list):
        raise NoReference  # it says which layers have a feed-forward block
    dense = state.keys.get("leading_dense_block_count", 0) or state.keys.get("interleave_moe_layer_step", 1) > 1
    if state.arch == "gemma4":
        raise NoReference  # every layer has a dense block
    if not state.has_experts() or dense or "expert_feed_forward_length" not in state.keys:
        raise NoReference
    raise NoChange("every layer has experts, and expert_feed_forward_length says their width")


def shared_experts(state, value):
    if not state.keys.get("expert_shared_feed_forward_length"):
        raise NoReference
    raise NoChange("expert_shared_feed_forward_length says how wide they are together")


def shared_width(state, value):
    if value or not state.keys.get("expert_shared_count"):
        raise NoReference
    each = state.keys.get("expert_feed_forward_length", state.keys.get("feed_forward_length"))
    if state.keys["expert_shared_count"] * each != state.keys["expert_shared_feed_forward_length"]:
        raise NoReference
    raise NoChange("as many values as expert_shared_count experts have")


def every_layer(state, value):
    if value > 1 or state.keys["interleave_moe_layer_step"] > 1:
        raise NoReference
    raise NoChange("every layer has experts")


def check_groups(state, used=None, groups=None, groups_used=None):
    count = state.keys["expert_count"]
    used = used or state.keys["expert_used_count"]
    groups = groups or state.keys.get("expert_group_count") or 1
    groups_used = groups_used or state.keys.get("expert_group_used_count", 1)
    if count % groups or groups_used > groups or used > count // groups * groups_used:
        raise NoReference


def experts_used(state, value):
    if state.arch == "llama4":  # no published model has more than one
        raise NoReference
    check_groups(state, used=value)
    names = {"ernie4_5-moe": "moe_k", "hunyuan-moe": "moe_topk", "gemma4": "top_k_experts"}
    state.config[names.get(state.arch, "num_experts_per_tok")] = value


def scale_of_experts(state, value):
    names = {"afmoe": "route_scale", "laguna": "moe_routed_scaling_factor"}
    state.config[names.get(state.arch, "routed_scaling_factor")] = value


def normalised(state, value):
    if state.arch in ("afmoe", "laguna"):  # the reference always does it
        if not value:
            state.hooks.append(raw_weights)
        return
    state.config["norm_topk_prob"] = value


def groups(state, value):
    if value <= 1:
        state.config.update(n_group=1, topk_group=1, topk_method="greedy")
        return
    check_groups(state, groups=value)
    state.config.update(n_group=value, topk_method="group_limited_greedy")


def groups_used(state, value):
    if state.keys["expert_group_count"] <= 1:
        raise NoChange("there is one group")
    if not value:
        raise NoReference
    check_groups(state, groups_used=value)
    state.config["topk_group"] = value


def gating(state, value):
    value = value or default_gating(state)
    if value not in (1, 2):
        raise NoReference
    if not state.has_experts():
        raise NoChange("no layer has experts")
    if value == (1 if state.model == "DeepseekV2" else 2):
        raise NoChange("it is what an absent one means here")
    if state.keys.get("expert_group_count", 1) > 1:
        raise NoReference  # how good a group is
    state.hooks.append(sigmoid_router if value == 2 else softmax_router)


def default_gating(state):
    """llama.cpp takes the softmax; a bias of the choice came with the sigmoid (README.md)."""
    return 2 if any(name.endswith("exp_probs_b.bias") for name in state.tensors) else 1


# ---- all -----------------------------------------------------------------------------------------------------------

def width_of_heads(state):
    """Also that of keys and values; DeepSeek's files from before April 2025 have to give theirs."""
    joined = state.arch == "deepseek2" and "attention.key_length_mla" not in state.keys
    return REQUIRED if joined else head_width(state)


def head_width(state):
    heads = state.keys["attention.head_count"]
    return state.keys["embedding_length"] // (heads[0] if isinstance(heads, list) else heads)


def size(state, value):
    raise NoReference


def no_drafts(state, value):
    if value:
        raise NoReference
    raise NoChange("no layer drafts tokens")


def rotated_part(state, value):
    """Where the reference knows of a part of a head that rotates."""
    head = state.keys.get("attention.key_length", head_width(state))
    if "rope_parameters" not in state.config and value <= head:
        raise NoChange("no layer rotates")
    full, _ = state.ropes() if value <= head else ({}, None)
    if "partial_rotary_factor" not in full or full.get("rope_type") == "longrope" or value > head or value % 2:
        raise NoReference
    full["partial_rotary_factor"] = value / head


def rotated_part_of_windows(state, value):
    if state.arch != "laguna" or value > state.keys["attention.key_length"]:
        raise NoReference
    state.ropes()[1]["partial_rotary_factor"] = value / state.keys["attention.key_length"]


def count_of_heads(state, value):
    """Where the file has as many heads of keys as of queries, it does not say their width."""
    if state.arch == "gpt2":
        state.config["n_head"] = value
    elif state.arch == "gptneox":
        before, width = state.config["num_attention_heads"], state.config["hidden_size"]
        state.config["num_attention_heads"] = value
        state.ropes()[0]["partial_rotary_factor"] = state.keys["rope.dimension_count"] / (width // value)
        state.hooks.append(lambda model: regroup(model, before, value))
    else:
        raise NoReference


def parallel(state, value):
    """Both forms have the same tensors in one architecture alone."""
    if state.arch != "gptneox":
        raise NoReference
    state.config["use_parallel_residual"] = value


SETTINGS = {
    "context_length": Setting(no_change("it limits how long a session may be"), factors=(1 / 32, 2)),
    "vocab_size": Setting(no_change("token_embd.weight says it"), 0),
    "feed_forward_length": Setting(width_of_layers, 0),
    "attention.head_count": Setting(count_of_heads),
    "attention.head_count_kv": Setting(size, lambda state: state.keys["attention.head_count"]),
    "attention.key_length": Setting(size, width_of_heads),
    "attention.value_length": Setting(size, width_of_heads),
    "attention.layer_norm_rms_epsilon": Setting(  # twice of it is nothing to float32
        square_epsilon, lambda state: 0 if state.arch == "nemotron" else REQUIRED, (5e4,)),
    "attention.layer_norm_epsilon": Setting(
        mean_epsilon, lambda state: REQUIRED if state.arch in MEAN_NORMS else 0, (5e4,)),
    "use_parallel_residual": Setting(parallel, True),
    "attention.scale": Setting(in_config("attention_multiplier"), lambda state: head_width(state) ** -0.5),
    "attention.sliding_window": Setting(
        window, lambda state: {"gemma2": 4096, "gpt-oss": REQUIRED, "granite_swa": REQUIRED,
                                "gemma4": REQUIRED, "cohere2": REQUIRED, "afmoe": REQUIRED, "muse-glimmer": REQUIRED,
                                "llama4": 8192}.get(state.arch, 0), (2, 64)),
    "attention.sliding_window_pattern": Setting(pattern, lambda state: PERIODS[state.arch]),
    "attn_logit_softcapping": Setting(in_config("attn_logit_softcapping"), 50.0),
    "final_logit_softcapping": Setting(
        in_config("final_logit_softcapping"), lambda state: {"gemma2": 30.0, "muse-glimmer": 1e9}.get(state.arch)),
    "embedding_scale": Setting(in_config("embedding_multiplier"), 1.0),
    "residual_scale": Setting(in_config("residual_multiplier"), 1.0),
    "logit_scale": Setting(lambda state, value: state.config.update(
        {"output_multiplier" if state.arch == "muse-glimmer" else
         "logit_scale" if state.arch in ("command-r", "cohere2") else "logits_scaling": value})),
    "rope.dimension_count": Setting(
        rotated_part, lambda state: state.keys.get("attention.key_length", head_width(state))),
    "rope.dimension_count_swa": Setting(
        rotated_part_of_windows, lambda state: state.keys.get("attention.key_length_swa", state.keys.get("rope.dimension_count"))),
    "attention.shared_kv_layers": Setting(size, 0),
    "embedding_length_per_layer_input": Setting(size, 0),
    "rope.freq_base": Setting(base, 10000.0),
    "rope.freq_base_swa": Setting(
        base_of_windows, lambda state: 10000.0 if state.arch in ("gemma3", "gemma4") else state.keys["rope.freq_base"]),
    "rope.scaling.type": Setting(scaling_type, default_scaling),
    "rope.scaling.factor": Setting(in_rope("factor"), 1.0),
    "rope.scaling.attn_factor": Setting(in_rope("attention_factor"), 1.0),
    "rope.scaling.original_context_length": Setting(
        original_context, lambda state: state.keys["context_length"], (0.25, 2, 16)),
    "rope.scaling.finetuned": Setting(turns, True),
    "rope.scaling.yarn_attn_factor": Setting(in_rope("attention_factor"), None),
    "rope.scaling.yarn_beta_fast": Setting(in_rope("beta_fast"), 32.0, (0.125, 2)),
    "rope.scaling.yarn_beta_slow": Setting(in_rope("beta_slow"), 1.0),
    "rope.scaling.yarn_truncate": Setting(in_rope("truncate"), lambda state: state.arch != "gpt-oss"),
    "rope.scaling.yarn_log_multiplier": Setting(log_multiplier, 0.0),
    "nextn_predict_layers": Setting(no_drafts, 0),
    "expert_count": Setting(of_experts(sizes_of_experts), 0),
    "expert_used_count": Setting(
        of_experts(experts_used), lambda state: REQUIRED if state.keys.get("expert_count") else 0),
    "leading_dense_block_count": Setting(dense_layers, 0),
    "expert_feed_forward_length": Setting(
        of_experts(width_of_experts), lambda state: state.keys["feed_forward_length"]),
    "expert_shared_count": Setting(of_experts(shared_experts), 0),
    "expert_shared_feed_forward_length": Setting(of_experts(shared_width), 0),
    "interleave_moe_layer_step": Setting(every_layer, 1),
    "attention.temperature_scale": Setting(
        lambda state, value: state.config.update(attn_scale=value) if state.arch == "llama4"
        else in_rope("llama_4_scaling_beta")(state, value), lambda state: 0.1 if state.arch == "llama4" else 0.0),
    "attention.temperature_length": Setting(in_config("floor_scale"), 8192),
    "expert_weights_scale": Setting(of_experts(scale_of_experts), 1.0),
    "expert_weights_norm": Setting(
        of_experts(normalised), lambda state: state.arch not in ("deepseek2", "dots1", "olmoe", "qwen2moe")),
    "expert_gating_func": Setting(gating, default_gating, (0.5, 2)),
    "expert_group_count": Setting(of_experts(groups), 0),
    "expert_group_used_count": Setting(of_experts(groups_used), 0),
}
