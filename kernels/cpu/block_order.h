// Where a block of weights lies in GGUF order: [n][depth / kBlock] blocks of kBytes.
#pragma once
#include <stdint.h>

namespace {

template <uint32_t kBlockWeights, uint32_t kBytes>
struct GgufOrder {
  static constexpr uint32_t kBlock = kBlockWeights;
  static constexpr uint32_t kBlockBytes = kBytes;

  // Block `block` of row `n` of a matrix [][depth].
  static inline const uint8_t* at(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block) {
    return weight + (uint64_t(n) * (depth / kBlock) + block) * kBlockBytes;
  }
  static inline uint64_t matrix_bytes(uint32_t n, uint32_t depth) {
    return uint64_t(n) * (depth / kBlock) * kBlockBytes;
  }
};

// Columns k .. k + count - 1 of row `n`, whole blocks. Types without blocks say how to read many values
// at once, which is what lets their loops be vectorised.
template <class Weight>
inline void decode_columns(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t k, uint32_t count,
                           float* out) {
  if constexpr (Weight::kBlock == 1) {
    Weight::values(Weight::at(weight, n, depth, k), count, out);
  } else {
    for (uint32_t i = 0; i < count; i += Weight::kBlock)
      Weight::decode(weight, n, depth, (k + i) / Weight::kBlock, out + i);
  }
}

}  // namespace
