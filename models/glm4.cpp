// GLM-4-0414 and GLM-Z1: norms before and after each block, gate and up in one tensor, half of a head
// rotated. Team GLM, "ChatGLM: A Family of Large Language Models from GLM-130B to GLM-4 All Tools", arXiv
// 2406.12793; transformers' modeling_glm4.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_glm4;
const Arch arch_glm4 = {
    .name = "glm4",
    .rope = Rope::Pairs,
    .tensors = {.post_attention_norm = "blk.%u.post_attention_norm.weight",
                .gate_up = "blk.%u.ffn_up.weight",
                .gate_bias = {},
                .up_bias = {},
                .post_ffn_norm = "blk.%u.post_ffw_norm.weight"},
};
}  // namespace greta
