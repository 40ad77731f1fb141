// attention_heads: attention_split of one token, with the norm and the rotation of its queries and key before
// it, and the store of key and value. Each group makes the heads that it needs (attention_heads.h); the group
// that takes the newest position stores key and value in their page. Grid, group, shared memory and bytes are
// as in attention_split. The argument block is AttentionHeadsBlock in kernels/abi/ops.h.
#define MAKES_HEADS
#include "kernels/vulkan/attention/attention_split.comp"
