// The rows of a step, as they are given to an executor.
#pragma once
#include <cstdint>

namespace greta {

// What a step makes of a row: the host gets its logits, or the device draws the token that follows it, by the
// sampling of its sequence, or the host gets its hidden state, which is what logits are made from.
enum class RowOutput : uint32_t { None, Logits, Draw, Hidden };

struct TokenRow {
  uint32_t token;  // a token's id, or kTokenFromSample: what the step before drew for this sequence
  uint32_t position, sequence;
  RowOutput output;
};

}  // namespace greta
