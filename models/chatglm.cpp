// ChatGLM 2 and 3, and GLM-4-9B: gate and up in one tensor, half of a head rotated, biases on query, key and
// value. Team GLM, "ChatGLM: A Family of Large Language Models from GLM-130B to GLM-4 All Tools", arXiv
// 2406.12793; transformers' modeling_glm.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_chatglm;
const Arch arch_chatglm = {
    .name = "chatglm",
    .rope = Rope::Pairs,
    .tensors = {.gate_up = "blk.%u.ffn_up.weight", .gate_bias = {}, .up_bias = {}},
};
}  // namespace greta
