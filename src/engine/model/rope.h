// Rotary position tables, made on the host in double: kernels have no range reduction for sin and cos.
#pragma once
#include "engine/model/weights.h"

namespace greta {

// table[context][rope_width / 2][cos, sin] of position * frequency, times the attention factor.
// Su et al., "RoFormer", arXiv 2104.09864; YaRN: Peng et al., arXiv 2309.00071; factors as published with
// Llama 3.1 and, by length of context, with LongRoPE, arXiv 2402.13753.
void fill_rope_table(const Shape& shape, const Weights& weights, uint32_t index, uint32_t context,
                     float* table);

// Whether positions turn otherwise for contexts of this length than for short ones.
bool long_rope(const Shape& shape, uint32_t context);

// Of one table.
inline uint64_t rope_table_bytes(const Shape& shape, uint32_t context) {
  return uint64_t(context) * shape.rope_width * sizeof(float);
}

}  // namespace greta
