// The sampler's steps as rows of a table.
#pragma once
#include "engine/sampling/sampler.h"

namespace greta {

// What a step works on: the choice of one token.
struct SamplerTurn {
  const SamplerSettings& settings;
  Candidates& candidates;
  std::span<const int32_t> history;
  uint32_t position;  // of the last token of `history`
};

struct SamplerStepInfo {
  std::string_view names[6];  // the first is llama.cpp's own name, the others are accepted too
  bool truncates;             // removes candidates; the draw then runs over the rest from the best down
  bool (*active)(const SamplerSettings& settings);
  void (*apply)(SamplerTurn& turn);
};

const SamplerStepInfo& step_info(SamplerStep step);
void apply_dry(SamplerTurn& turn);  // dry.cpp

constexpr double kLargestLogit = 3.402823466e38;

}  // namespace greta
