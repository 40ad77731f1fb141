"""Routers of experts of the reference that work otherwise than their classes say."""
import types
from unittest import mock

import torch
import transformers


def blocks(model):
    layers = getattr(model.model, "language_model", model.model).layers
    names = ("mlp", "feed_forward", "mixer")  # the last is what a layer of Nemotron-H has alone
    return [next(getattr(layer, name) for name in names if hasattr(layer, name)) for layer in layers]


def routers(model):
    return [block.gate for block in blocks(model) if hasattr(block, "gate")]


def sigmoid_router(model):
    """The router of DeepSeek V3 in a model of V2."""
    v3 = transformers.models.deepseek_v3.modeling_deepseek_v3.DeepseekV3TopkRouter
    for router in routers(model):
        router.e_score_correction_bias = torch.zeros(router.num_experts)
        router.norm_topk_prob = False
        router.forward = types.MethodType(v3.forward, router)


def softmax_router(model):
    for router in routers(model):
        def forward(*given, plain=router.forward):
            softmax = lambda logits: logits.softmax(-1)
            with mock.patch.object(torch.Tensor, "sigmoid", softmax), mock.patch.object(torch, "sigmoid", softmax), \
                    mock.patch.object(torch.nn.functional, "sigmoid", softmax):
                return plain(*given)
        router.forward = forward


def raw_weights(model):
    """The weights of the chosen experts stay as the sigmoid made them."""
    for router in [router for block in blocks(model) for router in [getattr(block, "router", None) or getattr(block, "gate", None)]
                   if router is not None]:
        def forward(*given, plain=router.forward, scale=getattr(router, "route_scale", 1)):
            logits, _, chosen = plain(*given)
            return logits, logits.sigmoid().gather(1, chosen) * scale, chosen
        router.forward = forward
