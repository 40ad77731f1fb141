// attention_split: attention of few tokens over long sequences, with a KV split.
//   y[t][h] = softmax over s of (scale * q[t][h] . k[s]) times v[s]     all query heads h of one KV head
//   grid    (tokens * KV heads, attention_splits(KV heads)): group (., j) takes the j-th range of the
//           positions, in whole pages; groups for which there is no range return at once
//   group   GROUP threads, in teams of 8 lanes to a whole wave. A team takes a position, for up to four query
//           heads: each lane has chunks of 8 values of the queries, multiplies them with those of the key,
//           and adds weighted chunks of the value. Softmax runs online in each team. At the end the teams are
//           merged, and the last group merges the ranges. The order is fixed, and how positions are split
//           depends only on the sequence and the model
//   shared  two chunks of each thread, 16 KiB; maxima; weights of the ranges
//   moves   keys and values of all positions once for each four query heads, or fewer where a wave has no
//           lane for each chunk of a head; queries and y; with several ranges value_width + 4 floats for each
//           head and range, written and read once
// The argument block is AttentionBlock in kernels/abi/ops.h.
#include "kernels/hip/attention/split.h"

AT_LEAST_WAVES(4) KERNEL(GROUP) void KERNEL_NAME(AttentionBlock p) {
  Range range;
  if (!find_range(p, range)) return;
  uint head_fours = 0;
  attend_range([] { return (const AttentionBlock&)reloaded_block<AttentionBlock>(); }, range,
               [&](const AttentionBlock& again, uint first, uint count) {
                 head_fours = again.key_width / 4;
                 const auto q = (const GLOBAL vec4*)again.q + (range.t * again.heads + first) * head_fours;
                 for (uint i = thread_x(); i < count * head_fours; i += GROUP) fours[i] = q[i];
                 group_barrier();
               },
               [&](uint h, uint i) { return fours[h * head_fours + i]; });
}
