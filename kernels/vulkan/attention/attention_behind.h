// The shared prefix of a row in attention_behind: how many ranges attention_prefix_cm1 has made of it, and
// where their partial results lie, which the row's last group merges with those of its own ranges.
//
// Before it includes this file the kernel declares its argument block `p`, an AttentionBlock, and the
// constants kHeads, kKvHeads, kHeadsPerKv and kValueWidth.
#ifndef GRETA_VULKAN_ATTENTION_BEHIND_H
#define GRETA_VULKAN_ATTENTION_BEHIND_H
#include "kernels/vulkan/attention/prefix.h"

SharedPrefixes_address prefixes;
uint prefix_ranges;  // of the row; 0: it has no prefix
uint prefix_item, prefix_blocks, prefix_query;  // its prefix's first item and blocks, the row's first query

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
#endif
