// attention_avx512vnni: attention with vectors of AVX-512, for any shape and type of cache.
//   y[t][h] = softmax over s of (scale * q[t][h] . k[s]) times v[s]     all query heads h of one KV head
//   grid    (tokens * KV heads)
//   group   a token and a KV head; a worker takes tokens that share a sequence together (simd/attention.h)
//   scratch a page of keys and one of values as floats, scores and sums of the queries
//   moves   keys and values once for each run of tokens; queries and y once
// The argument block is AttentionBlock in kernels/abi/ops.h.
#include "kernels/cpu/simd/avx512vnni/attention.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  attention_groups<Vec>(*(const AttentionBlock*)block, first_group, group_count, scratch);
}
