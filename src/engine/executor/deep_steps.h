// Attention of a step takes time by its tokens times the positions that they see, in one launch for each
// layer. A driver that gives a launch little time loses the device over many tokens at a great depth, so such
// a step is run in pieces. Shallow steps stay whole.
#pragma once
#include "engine/executor/executor.h"

namespace greta {

// The most pairs of a token and a position that it sees in a step: attention of one layer then ends within
// the time of one submission (kSubmitFlops). A processor has no such limit.
uint64_t most_pairs(const DeviceInfo& device, const Shape& shape);

uint64_t pairs_of(std::span<const Executor::Row> rows);

// Takes rows off the step for a piece that runs before the rest: as many as `pairs` allow, and one at least.
// They have no output, and rows of their sequence before them in the step have none either. Returns false if
// there is none to take.
bool take_piece(std::vector<Executor::Row>* rows, uint64_t pairs, std::vector<Executor::Row>* piece);

}  // namespace greta
