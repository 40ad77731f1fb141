#include "engine/executor/deep_steps.h"

#include <algorithm>
#include <bitset>

namespace greta {

uint64_t most_pairs(const DeviceInfo& device, const Shape& shape) {
  if (device.cpu_type) return ~uint64_t(0);
  uint64_t flops = 1;  // of a pair, in the layer where it has most
  for (const LayerShape& layer : shape.each)
    flops = std::max(flops, 2 * layer.heads * (uint64_t(layer.key_width) + layer.value_width));
  return std::max<uint64_t>(1, kSubmitFlops * device.unit_count / flops);
}

uint64_t pairs_of(std::span<const TokenRow> rows) {
  uint64_t pairs = 0;
  for (const TokenRow& row : rows) pairs += uint64_t(row.position) + 1;
  return pairs;
}

uint32_t count_lone(std::span<const TokenRow> rows) {
  const auto goes_on = [](const TokenRow& a, const TokenRow& b) {
    return a.sequence == b.sequence;
  };
  return uint32_t(std::ranges::adjacent_find(rows, goes_on) - rows.begin());
}

bool take_piece(std::vector<TokenRow>* rows, const PieceLimits& limits,
                std::vector<TokenRow>* piece) {
  piece->clear();
  std::bitset<kMaxStepSequences> stays;  // sequences of which an earlier row stays
  uint64_t taken = 0;
  std::erase_if(*rows, [&](const TokenRow& row) {
    const uint64_t seen = uint64_t(row.position) + 1;
    const bool fits = piece->empty() || (piece->size() < limits.tokens && taken + seen <= limits.pairs);
    if (row.output != RowOutput::None || stays[row.sequence] || !fits) {
      stays.set(row.sequence);
      return false;
    }
    taken += seen;
    piece->push_back(row);
    return true;
  });
  return !piece->empty();
}

}  // namespace greta
