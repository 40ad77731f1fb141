// attention_lone: attention_split of the first rows of a step, each of which is the only row of its sequence
// (StepState.lone_count), whatever their lengths.
//   grid    (KV heads, the rows of the bucket + a number of ranges that is divided by the lengths): range.h
// Group, shared memory and bytes are as in attention_split. The argument block is AttentionBlock in
// kernels/abi/ops.h.
namespace {
constexpr bool kLone = true, kBehind = false;  // range.h
}
#include "kernels/hip/attention/attention_split.h"
