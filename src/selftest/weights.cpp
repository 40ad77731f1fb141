#include "selftest/weights.h"

#include <algorithm>
#include <cmath>

#include "selftest/quant/quant.h"

namespace greta::selftest {

static bool has_bad_weight(const reference::Quant& quant, const uint8_t* block) {
  for (uint32_t i = 0; i < quant.block; ++i)
    if (!std::isfinite(quant.weight(block, i))) return true;
  return false;
}

void look_at_weights(const char* type, uint32_t block_bytes, const uint8_t* blocks, uint64_t count,
                     WeightsFound* found) {
  const reference::Quant* const quant = reference::find_quant(type);
  for (uint64_t i = 0; i < count; ++i, ++found->blocks) {
    const uint8_t* const block = blocks + i * block_bytes;
    found->zero += std::all_of(block, block + block_bytes, [](uint8_t byte) { return byte == 0; });
    if (!quant || !has_bad_weight(*quant, block)) continue;
    if (found->bad++ == 0) found->first_bad = found->blocks;
  }
}

}  // namespace greta::selftest
