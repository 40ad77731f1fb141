// The groups of an executor's cache. The layers of a group share page tables and a pool of pages. Group 0 has
// those that see all positions, and the token log lies in its pages. Layers with a window have a group of
// their own where that takes less memory, since pages that a window has left behind go back to its pool.
#pragma once
#include <span>

#include "engine/model/shape.h"

namespace greta {

constexpr uint32_t kMaxCacheGroups = 2;
// So many positions a text may go back behind a step without a checkpoint: guessed tokens that were wrong.
constexpr uint32_t kBackTokens = 8;

struct CacheGroup {
  uint32_t window = 0;  // how many positions a token sees, its own included; 0: all
  uint32_t layers = 0;
  uint32_t pages = 0;       // in its pool
  uint64_t page_bytes = 0;  // of a page, in all its layers together
};

struct CacheGroups {
  CacheGroup group[kMaxCacheGroups];
  uint32_t count = 1;

  std::span<const CacheGroup> all() const { return {group, count}; }
  // The group of a layer with this window.
  uint32_t of(uint32_t window) const {
    for (uint32_t g = 1; g < count; ++g)
      if (group[g].window == window) return g;
    return 0;
  }
};

// The page in which the first position lies that a token at `position` sees.
inline uint32_t first_page_seen(uint32_t window, uint32_t position) {
  return window && position >= window ? (position - window + 1) / kPageTokens : 0;
}

uint32_t common_window(const Shape& shape);  // that most layers with a window have; 0: there is none

// The first page that a sequence keeps which goes on at `position`: what the multiple of kPageTokens before
// it sees, so that a checkpoint can be made there.
inline uint32_t first_page_kept(uint32_t window, uint32_t position) {
  return first_page_seen(window, position - position % kPageTokens);
}

// The pages that the next token sees behind a multiple of kPageTokens, which a checkpoint holds.
uint32_t checkpoint_pages(uint32_t window);
// The pages that a sequence needs for a step of at most kPageTokens rows.
inline uint32_t window_pages(uint32_t window) { return checkpoint_pages(window) + 2; }

// What the pools are planned for.
struct CacheWants {
  uint32_t sequences = 1, step_tokens = 1;
  uint32_t pages = 1;                    // of group 0, which the caller has chosen
  std::span<const uint64_t> page_bytes;  // of each layer; 0: it has no attention
  uint64_t checkpoint_bytes = 0;         // for checkpoints of windows; 0: a 32nd of group 0, and one at least
};
CacheGroups plan_cache_groups(const Shape& shape, const CacheWants& wants);

}  // namespace greta
