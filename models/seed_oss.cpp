// Seed-OSS: llama with biases on query, key and value, and rotary halves.
// ByteDance Seed, "Seed-OSS Open-Source Models", 2025; transformers' modeling_seed_oss.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_seed_oss;
const Arch arch_seed_oss = {
    .name = "seed_oss",
    .rope = Rope::Halves,
    .tensors = {.ffn_norm = "blk.%u.post_attention_norm.weight"},
};
}  // namespace greta
