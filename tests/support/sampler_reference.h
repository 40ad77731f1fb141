// The definition of right for the host's samplers, written plainly: over a whole vocabulary at once, in
// double, with -infinity for tokens that are left out. It shares no code with src/engine.
#pragma once
#include <vector>

#include "engine/sampling/sampler.h"

namespace greta::test {

struct ReferenceChoice {
  std::vector<double> probability;  // by id, after the chain
  bool by_probability;              // the draw runs from the most likely down, else in order of id
  double margin = 1;                // how near a decision of the chain was to turning
};
ReferenceChoice reference_chain(const std::vector<float>& logits, const SamplerSettings& settings,
                                const std::vector<int32_t>& history, double xtc_draw, double mu);

// Gives the id that a draw in [0, 1) falls on. Lowers `margin` to the distance from another id.
int32_t reference_draw(const ReferenceChoice& choice, double draw, double* margin);

}  // namespace greta::test
