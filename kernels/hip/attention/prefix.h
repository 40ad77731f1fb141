// Where the shared prefixes of a step lie (kernels/abi/shared_prefix.h), how they are cut into items, and
// where the results of the items lie.
#pragma once
#include "kernels/abi/shared_prefix.h"
#include "kernels/hip/grid.h"
#include "kernels/hip/math.h"
#include "kernels/hip/step.h"

namespace {

using Prefixes = const GLOBAL SharedPrefixes*;

// Behind the page table and the penalties, which are two words for each sequence.
DEVICE Prefixes prefixes_of(Step step) {
  const auto page_table = (const GLOBAL uint*)(step + 1);
  return (Prefixes)(page_table + step->sequence_capacity * (step->page_capacity + 2));
}

// How the pages of all prefixes are cut into ranges, for `heads` query heads of a KV head.
struct PrefixCut {
  Prefixes all;
  uint heads;
  uint each;  // pages of a range
};

DEVICE uint blocks_of(const PrefixCut& cut, uint prefix) {
  return (cut.all->prefix[prefix].count * cut.heads + kPrefixQueries - 1) / kPrefixQueries;
}
DEVICE uint ranges_of(const PrefixCut& cut, uint prefix) {
  return (cut.all->prefix[prefix].pages + cut.each - 1) / cut.each;
}
DEVICE uint items_of(const PrefixCut& cut, uint prefix) {
  return blocks_of(cut, prefix) * ranges_of(cut, prefix);
}

// No more items are made than there are groups for a KV head.
DEVICE PrefixCut cut_prefixes(Step step, uint heads, uint kv_heads) {
  PrefixCut cut = {prefixes_of(step), heads / kv_heads, 0};
  uint work = 0, most = 0;
  for (uint i = 0; i < cut.all->count; ++i) {
    const uint pages = cut.all->prefix[i].pages;
    work += blocks_of(cut, i) * pages;
    most = max(most, pages);
  }
  const uint spread = attention_prefix_spread(kv_heads);
  cut.each = max(max((work + spread - 1) / spread, (most + kMaxPrefixRanges - 1) / kMaxPrefixRanges),
                 uint(kMinRangePages));
  return cut;
}

// The results of a row's prefix: those of its first query and range, among the queries of the prefix and the
// items of the step. A further range has them `blocks` items further.
struct PrefixResults {
  uint query, item, blocks;
};

DEVICE PrefixResults find_results(const PrefixCut& cut, uint t) {
  const auto& row = cut.all->row[t];
  PrefixResults found = {row.place * cut.heads, 0, blocks_of(cut, row.prefix)};
  for (uint i = 0; i < row.prefix; ++i) found.item += items_of(cut, i);
  return found;
}

// The place of a query's result among those of all items.
DEVICE uint prefix_result(uint item, uint kv_heads, uint kv_head, uint query) {
  return (item * kv_heads + kv_head) * kPrefixQueries + query;
}

}  // namespace
