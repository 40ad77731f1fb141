// IQ4_XS: 256 weights in 8 groups of 32, w = d * (scale - 32) * value[q];
// the values are those of kernels/tables/iq4_values.inc.
//   f16 d, uint16 high two bits of 8 scales, low four bits of 8 scales in 4 bytes, 4-bit q[256]: 16 bytes
//   for each group, byte i with q[i] low and q[i + 16] high
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct iq4_xs : GgufOrder<256, 136> {
  static constexpr int8_t kValues[16] = {
#include "kernels/tables/iq4_values.inc"
  };
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    const uint32_t high = load_u16(from + 2);
    for (uint32_t group = 0; group < 8; ++group) {
      const uint32_t low = (from[4 + group / 2] >> group % 2 * 4) & 15;
      const float scale = d * float(int(low | ((high >> group * 2) & 3) << 4) - 32);
      const uint8_t* q = from + 8 + group * 16;
      for (uint32_t i = 0; i < 16; ++i) {
        out[group * 32 + i] = scale * float(kValues[q[i] & 15]);
        out[group * 32 + 16 + i] = scale * float(kValues[q[i] >> 4]);
      }
    }
  }
};

}  // namespace
