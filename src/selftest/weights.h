// Looks for weights that are no numbers, by the oracles' own reading of tensor types.
#pragma once
#include <cstdint>

namespace greta::selftest {

struct WeightsFound {
  uint64_t blocks = 0;     // that were looked at
  uint64_t bad = 0;        // with a weight that is NaN or infinite
  uint64_t first_bad = 0;  // the index of the first of these
  uint64_t zero = 0;       // of which every byte is 0
  uint64_t zero_run = 0;   // the most of these in a row
  uint64_t zeros_at_end = 0;
  double largest = 0;  // the largest magnitude of a finite weight
};

// Looks at `count` blocks [count][bytes of a block] of the type `type` ("q4_k"), and adds them to `*found`.
// Of types that hold no weights (integers) only the bytes are looked at.
void look_at_weights(const char* type, uint32_t block_bytes, const uint8_t* blocks, uint64_t count,
                     WeightsFound* found);

}  // namespace greta::selftest
