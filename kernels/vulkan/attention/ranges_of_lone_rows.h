// The ranges of attention_lone and attention_lone_heads: they are dealt out by the work of the step.
//
// It comes behind the queries. ranges_even.h has the same names, and says what they mean.
#ifndef GRETA_VULKAN_ATTENTION_RANGES_OF_LONE_ROWS_H
#define GRETA_VULKAN_ATTENTION_RANGES_OF_LONE_ROWS_H

const uint kSplits = kMaxLoneSplits;
const uint kMinSplitPages = 4;
const uint prefix_ranges = 0;
void find_prefixes(StepState_address step) {}
void find_prefix(uint t) {}

#include "kernels/vulkan/attention/ranges_of_rows.h"
#include "kernels/vulkan/attention/ranges_by_work.h"

float_address partial(uint t, uint head, uint split) {
  const uint index = (first_range + split) * kHeads + head;
  return float_address(uint64_t(p.scratch) + uint64_t(index) * (kValueWidth + 4) * 4);
}
#endif
