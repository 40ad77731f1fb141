// Where the shared prefixes of a step lie (kernels/abi/shared_prefix.h), and how they are cut into items.
//
// Before it includes this file the kernel declares the constants kHeadsPerKv and kKvHeads.
#ifndef GRETA_VULKAN_ATTENTION_PREFIX_H
#define GRETA_VULKAN_ATTENTION_PREFIX_H
#include "kernels/abi/shared_prefix.h"
#include "kernels/vulkan/step.h"

layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer SharedPrefixes_address {
  SharedPrefixes all;
};

SharedPrefixes_address prefixes_of(byte_address address, StepState_address step) {
  const uint penalties = kStepStateWords + step.state.sequence_capacity * step.state.page_capacity;
  return SharedPrefixes_address(uint64_t(address) +
                                uint64_t(penalties + step.state.sequence_capacity * 2) * 4);
}

uint blocks_of(SharedPrefix prefix) {
  return (prefix.count * kHeadsPerKv + kPrefixQueries - 1) / kPrefixQueries;
}

uint ranges_of_prefix(uint pages, uint each) { return (pages + each - 1) / each; }
uint items_of(SharedPrefix prefix, uint each) {
  return blocks_of(prefix) * ranges_of_prefix(prefix.pages, each);
}

// Pages of a range, so that no more items are needed than there are groups for a KV head.
uint prefix_pages_each(SharedPrefixes_address prefixes) {
  uint work = 0, most = 0;
  for (uint i = 0; i < prefixes.all.count; ++i) {
    const SharedPrefix prefix = prefixes.all.prefix[i];
    work += blocks_of(prefix) * prefix.pages;
    most = max(most, prefix.pages);
  }
  const uint spread = attention_prefix_spread(kKvHeads);
  return max(max((work + spread - 1) / spread, (most + kMaxPrefixRanges - 1) / kMaxPrefixRanges),
             kMinRangePages);
}
#endif
