// attention_lone_heads: attention_lone with the norms and rotations of queries and keys before it, and the
// stores of keys and values, as in attention_heads. The argument block is AttentionHeadsBlock in
// kernels/abi/ops.h.
const bool kLone = true;  // queries_made.h
#include "kernels/vulkan/attention/queries_made.h"
#include "kernels/vulkan/attention/ranges_of_lone_rows.h"
#include "kernels/vulkan/attention/split.h"
