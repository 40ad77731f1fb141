"""What the reference makes of a file without one of its tensors."""
from .settings import NoReference, softmax_router


def tie(model):
    # Falcon-H1's factors of both are in the file's tensors.
    factor = getattr(model.config, "embedding_multiplier", 1) / getattr(model.config, "lm_head_multiplier", 1)
    if not model.config.model_type.startswith("falcon"):
        factor = 1
    model.get_output_embeddings().weight.data = factor * model.get_input_embeddings().weight.data


def no_head(state):
    if state.arch == "gpt-oss":
        raise NoReference
    state.hooks.append(tie)


def no_factors(state):
    state.ropes()[0]["rope_type"] = "default"


# exp_probs_b.bias, where one layer alone has experts.
def no_choice_bias(state):
    if "blk.0.exp_probs_b.bias" in state.tensors or "blk.2.exp_probs_b.bias" in state.tensors:
        raise NoReference  # only one of the layers would lack it
    if state.arch == "nemotron_h_moe":
        raise NoReference  # all its files have it
    if state.keys.get("expert_group_count", 1) > 1:
        raise NoReference  # how good a group is by the sigmoid alone
    if "expert_gating_func" not in state.keys:
        state.hooks.append(softmax_router)

    def hook(model):
        for module in model.modules():
            for bias in ("e_score_correction_bias", "expert_bias"):
                if hasattr(module, bias):
                    getattr(module, bias).zero_()
    state.hooks.append(hook)


ABSENT_TENSORS = {"output.weight": no_head, "rope_freqs.weight": no_factors,
                  "blk.1.exp_probs_b.bias": no_choice_bias}
