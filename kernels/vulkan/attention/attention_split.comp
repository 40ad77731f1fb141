// attention_split: attention of few tokens over long sequences, with a KV split.
//   y[t][h] = softmax over s of (scale * q[t][h] . k[s]) times v[s]     all query heads h of one KV head
//   grid    (tokens * KV heads, kSplits): group (., j) takes the j-th range of the positions, in whole pages;
//           groups for which there is no range return at once
//   group   GROUP threads, in teams of kTeamLanes lanes. A team takes a position, for kHeadsAtOnce query
//           heads: each lane has chunks of 8 values of the queries, multiplies them with those of the key,
//           and adds weighted chunks of the value. Softmax runs online in each team. At the end the teams of
//           a subgroup are merged, then the subgroups, and the last group merges the ranges. The order is
//           fixed, and how positions are split depends only on the sequence and the model
//   shared  sums of kSubgroupsAtOnce subgroups, at most about 16 KiB; maxima; weights of the ranges.
//           attention_heads also has its queries, key and value there
//   moves   keys and values of all positions once for each kHeadsAtOnce query heads; queries and y; with
//           several ranges value_width + 2 floats for each head and range, written and read once
// The argument block is AttentionBlock in kernels/abi/ops.h.
#include "kernels/vulkan/attention/queries_given.h"
#include "kernels/vulkan/attention/ranges_even.h"
#include "kernels/vulkan/attention/split.h"
