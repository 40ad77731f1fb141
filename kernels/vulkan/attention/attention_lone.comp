// attention_lone: attention_split of the first rows of a step, each of which is the only row of its sequence
// (StepState.lone_count), whatever their lengths.
//   grid    (KV heads, the rows of the bucket + a number of ranges that is divided by the lengths):
//           ranges_by_work.h
// Group, shared memory and bytes are as in attention_split. The argument block is AttentionBlock in
// kernels/abi/ops.h.
#include "kernels/vulkan/attention/queries_given.h"
#include "kernels/vulkan/attention/ranges_of_lone_rows.h"
#include "kernels/vulkan/attention/split.h"
