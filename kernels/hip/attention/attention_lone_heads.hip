// attention_lone_heads: attention_lone with the norms and rotations of queries and keys before it, and the
// stores of keys and values, as in attention_heads. The argument block is AttentionHeads in
// kernels/abi/ops.h.
namespace {
constexpr bool kLone = true, kBehind = false;  // range.h
}
#include "kernels/hip/attention/attention_heads.h"
