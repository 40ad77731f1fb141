// attention_lone_heads: attention_lone with the norms and rotations of queries and keys before it, and the
// stores of keys and values, as in attention_heads. The argument block is AttentionHeadsBlock in
// kernels/abi/ops.h.
#define LONE_ROWS
#define MAKES_HEADS
#include "kernels/vulkan/attention/attention_split.comp"
