// Tables of rotary positions. The host makes them in double; kernels have no range reduction for sine.
#pragma once
#include "engine/model/weights.h"

namespace greta {

// Fills table[context][width / 2][2] with cosine and sine of position * frequency, times the attention
// factor. Sources: Su et al., "RoFormer", arXiv 2104.09864; YaRN: Peng et al., arXiv 2309.00071; factors as
// published with Llama 3.1 and, depending on the context's length, with LongRoPE, arXiv 2402.13753.
// Tables of other kinds are such that they turn two ones into two values.
void fill_rope_table(const Shape& shape, const Weights& weights, uint32_t index, uint32_t context,
                     float* table);

// Returns true if contexts of this length rotate positions by other factors than short ones.
bool long_rope(const Shape& shape, uint32_t context);

// The bytes of one table.
inline uint64_t rope_table_bytes(const RopeTable& rope, uint32_t context) {
  return uint64_t(context) * rope.width * sizeof(float);
}
// The bytes of all tables of a model.
uint64_t rope_tables_bytes(const Shape& shape, uint32_t context);

}  // namespace greta
