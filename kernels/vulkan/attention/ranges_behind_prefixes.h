// The ranges of attention_behind: those of attention_lone, behind the prefix that a row shares. How many
// ranges attention_prefix_cm1 has made of the prefix, and where their partial results lie, which the row's
// last group merges with those of its own ranges.
//
// It comes behind the queries (queries_given.h). ranges_even.h has the same names, and says what they mean.
#ifndef GRETA_VULKAN_ATTENTION_RANGES_BEHIND_PREFIXES_H
#define GRETA_VULKAN_ATTENTION_RANGES_BEHIND_PREFIXES_H
#include "kernels/vulkan/attention/prefix.h"

const uint kSplits = kMaxPrefixRanges + kMaxLoneSplits;
const uint kMinSplitPages = 4;

SharedPrefixes_address prefixes;
uint prefix_ranges;  // of the row; 0: it has no prefix
uint prefix_item, prefix_blocks, prefix_query;  // its prefix's first item and blocks, the row's first query

void find_prefixes(StepState_address step) { prefixes = prefixes_of(p.step, step); }

void find_prefix(uint t) {
  const PrefixRow row = prefixes.all.row[t];
  prefix_ranges = 0;
  if (row.pages == 0) return;
  const uint each = prefix_pages_each(prefixes);
  prefix_ranges = ranges_of_prefix(row.pages, each);
  prefix_blocks = blocks_of(prefixes.all.prefix[row.prefix]);
  prefix_query = row.place * kHeadsPerKv;
  prefix_item = 0;
  for (uint i = 0; i < row.prefix; ++i) prefix_item += items_of(prefixes.all.prefix[i], each);
}

// The result of a range of the prefix for one head.
float_address prefix_partial(uint head, uint range) {
  const uint query = prefix_query + head % kHeadsPerKv;
  const uint item = prefix_item + range * prefix_blocks + query / kPrefixQueries;
  const uint index = (item * kKvHeads + head / kHeadsPerKv) * kPrefixQueries + query % kPrefixQueries;
  return float_address(uint64_t(p.scratch) +
                       uint64_t(gl_NumWorkGroups.y * kHeads + index) * (kValueWidth + 4) * 4);
}

uint begin_of(StepRow row, uint t) { return prefixes.all.row[t].pages * kPageTokens; }
uint pages_of(StepRow row, uint t) {
  return row.position / kPageTokens + 1 - begin_of(row, t) / kPageTokens;
}
#include "kernels/vulkan/attention/ranges_by_work.h"

float_address partial(uint t, uint head, uint split) {
  if (split < prefix_ranges) return prefix_partial(head, split);
  const uint index = (first_range + split - prefix_ranges) * kHeads + head;
  return float_address(uint64_t(p.scratch) + uint64_t(index) * (kValueWidth + 4) * 4);
}
#endif
