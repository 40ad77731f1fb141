// attention_heads: attention_split of one token, with the norm and the rotation of its queries and key before
// it, and the store of key and value. Each group makes the heads that it needs (attention_heads.h); the group
// that takes the newest position stores key and value in their page. Grid, group and bytes are as in
// attention_split; shared memory has the heads too, 9 KiB. The argument block is AttentionHeads in
// kernels/abi/ops.h.
namespace {
constexpr bool kLone = false, kBehind = false;  // range.h
}
#include "kernels/hip/attention/attention_heads.h"
