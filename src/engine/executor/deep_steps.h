// Attention of a step takes time by its tokens times the positions that they see, in one launch for each
// layer. A driver that gives a launch little time loses the device over many tokens at a great depth, so such
// a step is run in pieces. Shallow steps stay whole.
#pragma once
#include <span>
#include <vector>

#include "engine/executor/step_rows.h"
#include "engine/model/shape.h"

namespace greta {

// The most pairs of a token and a position that it sees in a step: attention of one layer then ends within
// the time of one submission (kSubmitFlops). A processor has no such limit.
uint64_t most_pairs(const DeviceInfo& device, const Shape& shape);

uint64_t pairs_of(std::span<const TokenRow> rows);
// How many rows at the beginning are each the only one of their sequence.
uint32_t count_lone(std::span<const TokenRow> rows);

struct PieceLimits {
  uint32_t tokens = 0;
  uint64_t pairs = 0;
};
inline bool exceeds(std::span<const TokenRow> rows, const PieceLimits& limits) {
  return rows.size() > limits.tokens || pairs_of(rows) > limits.pairs;
}

// Takes rows off the step for a piece that runs before the rest: as many as the limits allow, and one at
// least. They have no output, and rows of their sequence before them in the step have none either. Returns
// false if there is none to take.
bool take_piece(std::vector<TokenRow>* rows, const PieceLimits& limits,
                std::vector<TokenRow>* piece);

}  // namespace greta
