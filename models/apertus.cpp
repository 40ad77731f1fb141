// Apertus: llama with norms of the heads of queries and keys, and in place of a gate the activation xIELU,
// whose constants belong to the layer. Apertus Team, "Apertus: Democratizing Open and Compliant LLMs for
// Global Language Environments", arXiv 2509.14233; Huang and Schlag, "Deriving Activation Functions Using
// Integration", arXiv 2411.13010.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_apertus;
const Arch arch_apertus = {
    .name = "apertus",
    .rope = Rope::Halves,
    .ungated = Factor::Xielu,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight",
                .key_norm = "blk.%u.attn_k_norm.weight",
                .gate = {}},
};
}  // namespace greta
