// Finds the pages with which several sequences of a step begin, so that attention can read them once.
#pragma once
#include <span>
#include <vector>

#include "graph/graph.h"

namespace greta {

// A row of a step that is the only one of its sequence, and its sequence's pages before the one that the row
// is written to.
struct SharingRow {
  uint32_t row, sequence;
  std::span<const uint32_t> pages;
};

constexpr uint32_t kMinPrefixRows = 4;
constexpr uint32_t kMinPrefixPages = 4;
// A prefix is read once where this saves so many pages. In a layer of 8 KV heads of 128 float16 values an
// NVIDIA H100 reads 256 pages in about 18 us, which is what the other launches of such a step cost.
constexpr uint32_t kMinPagesSaved = 256;

// Fills `out` with the prefixes that save the most pages, at least `pages_saved` each. It reorders `rows`.
// All other bytes of `out` become 0, so that equal prefixes are equal bytes.
void find_shared_pages(std::vector<SharingRow>& rows, uint32_t pages_saved, SharedPrefixes* out);

}  // namespace greta
