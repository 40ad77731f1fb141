"""Where each tensor of a GGUF file comes from: (name in the file, name in transformers, change).

`{}` is the layer; a name without it is one for the model. A row whose transformers name is not in the
model is left out (biases, tied heads, dense layers among expert layers). Names and changes are those of
llama.cpp's converter (conversion/*.py) and of what its loader asks for (src/models/*.cpp).
"""
from .changes import (down_experts, gate_columns, gate_experts, gate_rows, key_pairs, latent_keys,
                      latent_values, plus_one, query_pairs, transposed, up_columns, up_experts, up_rows)

L = "model.layers.{}."
ATTN, MLP = L + "self_attn.", L + "mlp."

ENDS = [
    ("token_embd.weight", "model.embed_tokens.weight"),
    ("output_norm.weight", "model.norm.weight"),
    ("output_norm.bias", "model.norm.bias"),
    ("output.weight", "lm_head.weight"),
]
# Queries and keys in the order of transformers: rotary halves.
ATTENTION = [(f"blk.{{}}.attn_{name}.{kind}", f"{ATTN}{letter}_proj.{kind}")
             for name, letter in (("q", "q"), ("k", "k"), ("v", "v"), ("output", "o"))
             for kind in ("weight", "bias")]
# Queries and keys reordered, so that what rotates together lies side by side: rotary pairs.
ATTENTION_PAIRS = [row + ((query_pairs,) if ".attn_q." in row[0] else (key_pairs,) if ".attn_k." in row[0] else ())
                   for row in ATTENTION]
FFN = [(f"blk.{{}}.ffn_{name}.{kind}", f"{MLP}{name}_proj.{kind}")
       for name in ("gate", "up", "down") for kind in ("weight", "bias")]
NORMS = [(f"blk.{{}}.{name}.{kind}", f"{L}{theirs}.{kind}")
         for name, theirs in (("attn_norm", "input_layernorm"), ("ffn_norm", "post_attention_layernorm"))
         for kind in ("weight", "bias")]
HEAD_NORMS = [(f"blk.{{}}.attn_{x}_norm.weight", f"{ATTN}{x}_norm.weight") for x in "qk"]
ROUTER = [("blk.{}.ffn_gate_inp.weight", MLP + "gate.weight")]
EXPERTS = [
    ("blk.{}.ffn_gate_exps.weight", MLP + "experts.gate_up_proj", gate_experts),
    ("blk.{}.ffn_up_exps.weight", MLP + "experts.gate_up_proj", up_experts),
    ("blk.{}.ffn_down_exps.weight", MLP + "experts.down_proj", down_experts),
]


def shared(theirs):
    return [(f"blk.{{}}.ffn_{name}_shexp.weight", f"{MLP}{theirs}.{name}_proj.weight")
            for name in ("gate", "up", "down")]


def gemma(rows):
    """The file holds the gain itself, transformers the gain less one."""
    return [row + (plus_one,) if "_norm." in row[0] or "output_norm" in row[0] else row for row in rows]


LLAMA = ENDS + ATTENTION_PAIRS + FFN + NORMS
LLAMA_EXPERTS = ENDS + ATTENTION_PAIRS + NORMS + ROUTER + EXPERTS
QWEN2 = ENDS + ATTENTION + FFN + NORMS
QWEN3 = QWEN2 + HEAD_NORMS
QWEN3_EXPERTS = ENDS + ATTENTION + HEAD_NORMS + NORMS + ROUTER + EXPERTS

GEMMA_NORMS = [
    ("blk.{}.attn_norm.weight", L + "input_layernorm.weight"),
    ("blk.{}.post_attention_norm.weight", L + "post_attention_layernorm.weight"),
    ("blk.{}.ffn_norm.weight", L + "pre_feedforward_layernorm.weight"),
    ("blk.{}.post_ffw_norm.weight", L + "post_feedforward_layernorm.weight"),
]
GEMMA2 = gemma(ENDS + ATTENTION + FFN + GEMMA_NORMS)
GEMMA3 = gemma(ENDS + ATTENTION + FFN + GEMMA_NORMS + HEAD_NORMS)

PHI3 = ENDS + NORMS + [
    ("blk.{}.attn_qkv.weight", ATTN + "qkv_proj.weight"),
    ("blk.{}.attn_output.weight", ATTN + "o_proj.weight"),
    ("blk.{}.ffn_up.weight", MLP + "gate_up_proj.weight"),
    ("blk.{}.ffn_down.weight", MLP + "down_proj.weight"),
]
OLMO2 = ENDS + ATTENTION + FFN + HEAD_NORMS + [
    ("blk.{}.post_attention_norm.weight", L + "post_attention_layernorm.weight"),
    ("blk.{}.post_ffw_norm.weight", L + "post_feedforward_layernorm.weight"),
]
GRANITE_EXPERTS = ENDS + ATTENTION_PAIRS + NORMS + [
    ("blk.{}.ffn_gate_inp.weight", L + "block_sparse_moe.router.weight"),
    ("blk.{}.ffn_gate_exps.weight", L + "block_sparse_moe.experts.gate_up_proj", gate_experts),
    ("blk.{}.ffn_up_exps.weight", L + "block_sparse_moe.experts.gate_up_proj", up_experts),
    ("blk.{}.ffn_down_exps.weight", L + "block_sparse_moe.experts.down_proj", down_experts),
    ("blk.{}.ffn_gate_shexp.weight", L + "shared_mlp.input_linear.weight", gate_rows),
    ("blk.{}.ffn_up_shexp.weight", L + "shared_mlp.input_linear.weight", up_rows),
    ("blk.{}.ffn_down_shexp.weight", L + "shared_mlp.output_linear.weight"),
]

# The experts of gpt-oss multiply from the right, and gate and up take turns along the columns.
GPT_OSS = ENDS + ATTENTION + [
    ("blk.{}.attn_norm.weight", L + "input_layernorm.weight"),
    ("blk.{}.post_attention_norm.weight", L + "post_attention_layernorm.weight"),
    ("blk.{}.attn_sinks.weight", ATTN + "sinks"),
    ("blk.{}.ffn_gate_inp.weight", MLP + "router.weight"),
    ("blk.{}.ffn_gate_inp.bias", MLP + "router.bias"),
    ("blk.{}.ffn_gate_exps.weight", MLP + "experts.gate_up_proj", lambda t, c: gate_columns(transposed(t, c), c)),
    ("blk.{}.ffn_up_exps.weight", MLP + "experts.gate_up_proj", lambda t, c: up_columns(transposed(t, c), c)),
    ("blk.{}.ffn_down_exps.weight", MLP + "experts.down_proj", transposed),
    ("blk.{}.ffn_gate_exps.bias", MLP + "experts.gate_up_proj_bias", gate_columns),
    ("blk.{}.ffn_up_exps.bias", MLP + "experts.gate_up_proj_bias", up_columns),
    ("blk.{}.ffn_down_exps.bias", MLP + "experts.down_proj_bias"),
]

DEEPSEEK2 = ENDS + NORMS + FFN + ROUTER + EXPERTS + shared("shared_experts") + [
    ("blk.{}.attn_q.weight", ATTN + "q_proj.weight"),
    ("blk.{}.attn_q_a.weight", ATTN + "q_a_proj.weight"),
    ("blk.{}.attn_q_a_norm.weight", ATTN + "q_a_layernorm.weight"),
    ("blk.{}.attn_q_b.weight", ATTN + "q_b_proj.weight"),
    ("blk.{}.attn_kv_a_mqa.weight", ATTN + "kv_a_proj_with_mqa.weight"),
    ("blk.{}.attn_kv_a_norm.weight", ATTN + "kv_a_layernorm.weight"),
    ("blk.{}.attn_k_b.weight", ATTN + "kv_b_proj.weight", latent_keys),
    ("blk.{}.attn_v_b.weight", ATTN + "kv_b_proj.weight", latent_values),
    ("blk.{}.attn_output.weight", ATTN + "o_proj.weight"),
    ("blk.{}.exp_probs_b.bias", MLP + "gate.e_score_correction_bias"),
]
# As converters wrote it before April 2025.
DEEPSEEK2_JOINED = [row for row in DEEPSEEK2 if not row[0].endswith(("attn_k_b.weight", "attn_v_b.weight"))] + [
    ("blk.{}.attn_kv_b.weight", ATTN + "kv_b_proj.weight"),
]
