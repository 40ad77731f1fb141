// Rotary position tables, made on the host in double: kernels have no range reduction for sin and cos.
#pragma once
#include "engine/shape.h"

namespace greta {

// table[context][rope_width / 2][cos, sin] of position / (scale * factor * base^(2i / rope_width)).
// Su et al., "RoFormer", arXiv 2104.09864; factors as published with Llama 3.1. `factors` is
// [rope_width / 2] or empty.
void fill_rope_table(const Shape& shape, const std::vector<float>& factors, uint32_t context, float* table);

inline uint64_t rope_table_bytes(const Shape& shape, uint32_t context) {
  return uint64_t(context) * shape.rope_width * sizeof(float);
}

}  // namespace greta
