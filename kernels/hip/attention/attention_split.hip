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
namespace {
constexpr bool kLone = false, kBehind = false;  // range.h
}
#include "kernels/hip/attention/attention_split.h"
