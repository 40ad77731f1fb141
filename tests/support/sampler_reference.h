// What the host's samplers must do, written down plainly: over all of a vocabulary at once, in double, with
// -infinity for what is left out. No code is shared with src/engine.
#pragma once
#include <vector>

#include "engine/sampling/sampler.h"

namespace greta::test {

struct ReferenceChoice {
  std::vector<double> probability;  // by id, after the chain
  bool by_probability;              // the draw runs from the most likely down, else in order of id
  double margin = 1;                // distance of a decision of the chain from where it would turn
};
ReferenceChoice reference_chain(const std::vector<float>& logits, const SamplerSettings& settings,
                                const std::vector<int32_t>& history, double xtc_draw, double mu);

// The id that a draw in [0, 1) falls on; lowers `margin` to how near it is to another.
int32_t reference_draw(const ReferenceChoice& choice, double draw, double* margin);

}  // namespace greta::test
