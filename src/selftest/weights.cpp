#include "selftest/weights.h"

#include <algorithm>
#include <cmath>

#include "selftest/quant/quant.h"

namespace greta::selftest {

// Returns true if a weight is NaN or infinite. Finite ones may raise `*largest`.
static bool has_bad_weight(const reference::Quant& quant, const uint8_t* block, double* largest) {
  bool bad = false;
  for (uint32_t i = 0; i < quant.block; ++i) {
    const double magnitude = std::fabs(quant.weight(block, i));
    if (!std::isfinite(magnitude))
      bad = true;
    else if (magnitude > *largest)
      *largest = magnitude;
  }
  return bad;
}

void look_at_weights(const char* type, uint32_t block_bytes, const uint8_t* blocks, uint64_t count,
                     WeightsFound* found) {
  const reference::Quant* const quant = reference::find_quant(type);
  for (uint64_t i = 0; i < count; ++i, ++found->blocks) {
    const uint8_t* const block = blocks + i * block_bytes;
    const bool zero = std::all_of(block, block + block_bytes, [](uint8_t byte) { return byte == 0; });
    found->zero += zero;
    found->zeros_at_end = zero ? found->zeros_at_end + 1 : 0;
    found->zero_run = std::max(found->zero_run, found->zeros_at_end);
    if (!quant || !has_bad_weight(*quant, block, &found->largest)) continue;
    if (found->bad++ == 0) found->first_bad = found->blocks;
  }
}

}  // namespace greta::selftest
