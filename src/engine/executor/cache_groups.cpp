#include "engine/executor/cache_groups.h"

#include <algorithm>

namespace greta {

uint32_t checkpoint_pages(uint32_t window) { return uint32_t(divide_up(uint64_t(window) - 1, kPageTokens)); }

uint32_t common_window(const Shape& shape) {
  uint32_t best = 0;
  std::ptrdiff_t most = 0;
  for (const LayerShape& layer : shape.each) {
    const std::ptrdiff_t count = std::ranges::count(shape.each, layer.window, &LayerShape::window);
    if (layer.window && count > most) best = layer.window, most = count;
  }
  return best;
}

CacheGroups plan_cache_groups(const Shape& shape, const CacheWants& wants) {
  CacheGroups groups;
  CacheGroup whole{0, shape.layers, wants.pages}, windowed{common_window(shape)};
  for (const uint64_t bytes : wants.page_bytes) whole.page_bytes += bytes;
  groups.group[0] = whole;
  const uint32_t window = windowed.window;
  if (!window || shape.recurrent_layers) return groups;  // checkpoints are of states
  for (uint32_t l = 0; l < shape.layers; ++l)
    if (shape.each[l].window == window) ++windowed.layers, windowed.page_bytes += wants.page_bytes[l];
  whole.layers -= windowed.layers;
  whole.page_bytes -= windowed.page_bytes;
  const uint64_t bytes =
      wants.checkpoint_bytes ? wants.checkpoint_bytes : whole.page_bytes * wants.pages / 32;
  // A page more, since the pages of a sequence that is restored lie beside those that it has.
  const uint64_t places = std::max<uint64_t>(checkpoint_pages(window) + 1, bytes / windowed.page_bytes);
  // Rows of a step need at most a page for each kPageTokens of them beyond window_pages() of their sequences.
  const uint64_t pages = uint64_t(wants.sequences) * window_pages(window) +
                         std::max<uint64_t>(divide_up(wants.step_tokens, kPageTokens), places);
  if (pages >= wants.pages) return groups;
  windowed.pages = uint32_t(pages);
  groups.group[0] = whole;
  groups.group[1] = windowed;
  groups.count = 2;
  return groups;
}

}  // namespace greta
