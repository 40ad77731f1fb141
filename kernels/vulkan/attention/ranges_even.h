// The ranges of attention_split and attention_heads: group (., j) takes the j-th range of its token's
// positions.
//
// It comes behind the queries (queries_given.h, queries_made.h). ranges_of_lone_rows.h and
// ranges_behind_prefixes.h have the same names.
#ifndef GRETA_VULKAN_ATTENTION_RANGES_EVEN_H
#define GRETA_VULKAN_ATTENTION_RANGES_EVEN_H

const uint kSplits = attention_splits(kKvHeads);  // most ranges of a token
// Fewest pages of a range: to merge ranges takes as long as to read some pages.
const uint kMinSplitPages = 2;
const uint prefix_ranges = 0;  // ranges of the token that another launch has made

const bool kMayStoreHalves = false;  // whether y may be wanted in float16
void store_as_halves(uint at, vec4 y) {}

void find_prefixes(StepState_address step) {}
void find_prefix(uint t) {}

// The result of a range for one head: {maximum, sum of weights}, and 16 bytes further its values.
float_address partial(uint t, uint head, uint split) {
  const uint index = (t * kHeads + head) * kMaxAttentionSplits + split;
  return float_address(uint64_t(p.scratch) + uint64_t(index) * (kValueWidth + 4) * 4);
}

#include "kernels/vulkan/attention/ranges_of_rows.h"

bool find_share(StepState_address step, out Share share) {
  share.t = gl_WorkGroupID.x / kKvHeads;
  share.split = gl_WorkGroupID.y;
  const uint pages = pages_of(step.state.row[share.t], share.t);
  share.each = max((pages + kSplits - 1) / kSplits, kMinSplitPages);
  share.splits = (pages + share.each - 1) / share.each;
  return share.t < live_rows(step, kRowsTokens) && share.split < share.splits;
}
#endif
