// The kernels attention_split and attention_lone, which differ in the ranges of their groups (range.h).
#pragma once
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
