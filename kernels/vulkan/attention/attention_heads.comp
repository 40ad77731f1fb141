// attention_heads: attention_split of one token, with the norm and the rotation of its queries and key before
// it, and the store of key and value. Each group makes the heads that it needs (queries_made.h); the group
// that takes the newest position stores key and value in their page. Grid, group, shared memory and bytes are
// as in attention_split. The argument block is AttentionHeadsBlock in kernels/abi/ops.h.
const bool kLone = false;  // queries_made.h
#include "kernels/vulkan/attention/queries_made.h"
#include "kernels/vulkan/attention/ranges_even.h"
#include "kernels/vulkan/attention/split.h"
