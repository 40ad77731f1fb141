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

}  // namespace
