"""Gemma: scaled embeddings, norms on both sides, soft caps, windows in some layers."""
from . import tables
from .case import Case, rope, shape

LOCAL, GLOBAL = "sliding_attention", "full_attention"


def gemma2(heads, kv_heads, head, window, attention_cap, final_cap, layers, **more):
    return (shape(32, heads, kv_heads, 20, layers=layers, head_dim=head, query_pre_attn_scalar=head,
                  sliding_window=window, attn_logit_softcapping=attention_cap, final_logit_softcapping=final_cap,
                  tie_word_embeddings=True, rope_parameters=rope(), **more),
            {"attention.sliding_window": window, "attn_logit_softcapping": attention_cap,
             "final_logit_softcapping": final_cap})


def gemma3(width, heads, kv_heads, head, ffn, window, layer_types, base, factor, final_cap=None):
    config = shape(width, heads, kv_heads, ffn, layers=len(layer_types), head_dim=head, query_pre_attn_scalar=head,
                   sliding_window=window, layer_types=layer_types, tie_word_embeddings=True,
                   final_logit_softcapping=final_cap,
                   rope_parameters={LOCAL: rope(10000.0), GLOBAL: rope(base, rope_type="linear", factor=factor)})
    keys = {"attention.sliding_window": window, "rope.scaling.type": "linear", "rope.scaling.factor": factor}
    if final_cap:
        keys["final_logit_softcapping"] = final_cap
    return config, keys


SMALL = {"embed_tokens": 0.4}  # times sqrt(width), as the graph does, is still of the size of a branch

GEMMA = [
    Case("gemma2-head24", "Gemma2", tables.GEMMA2, *gemma2(2, 1, 24, 8, 4.0, 6.0, layers=3), spread=SMALL),
    Case("gemma2-head10", "Gemma2", tables.GEMMA2, *gemma2(4, 2, 10, 5, 2.0, 3.0, layers=4), spread=SMALL),
    # Seven layers of the usual pattern: five with a window, one without.
    Case("gemma3-pattern6", "Gemma3", tables.GEMMA3,
         *gemma3(24, 2, 1, 12, 24, 6, [LOCAL] * 5 + [GLOBAL, LOCAL], 1000000.0, 8.0), spread=SMALL),
    # A period of its own, and a final soft cap.
    Case("gemma3-pattern3", "Gemma3", tables.GEMMA3,
         *gemma3(32, 2, 2, 20, 20, 7, [LOCAL, LOCAL, GLOBAL, LOCAL], 50000.0, 4.0, 5.0), spread=SMALL),
]
GEMMA[-1].keys["attention.sliding_window_pattern"] = 3
