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
  groups.group[0] = {0, shape.layers, wants.pages};
  const uint32_t window = common_window(shape);
  if (!window) return groups;
  const uint32_t layers = uint32_t(std::ranges::count(shape.each, window, &LayerShape::window));
  const uint64_t page_bytes = wants.layer_page_bytes * layers;
  const uint64_t full_bytes = wants.layer_page_bytes * (shape.layers - layers) * wants.pages;
  const uint64_t bytes = wants.checkpoint_bytes ? wants.checkpoint_bytes : full_bytes / 32;
  // A page more, since the pages of a sequence that is restored lie beside those that it has.
  const uint64_t places = std::max<uint64_t>(checkpoint_pages(window) + 1, bytes / page_bytes);
  // Rows of a step need at most a page for each kPageTokens of them beyond window_pages() of their sequences.
  const uint64_t pages = uint64_t(wants.sequences) * window_pages(window) +
                         std::max<uint64_t>(divide_up(wants.step_tokens, kPageTokens), places);
  if (pages >= wants.pages) return groups;
  groups.group[0].layers -= layers;
  groups.group[1] = {window, layers, uint32_t(pages)};
  groups.count = 2;
  return groups;
}

}  // namespace greta
