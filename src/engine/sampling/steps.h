// The steps of a sampler's chain as rows of a table.
#pragma once
#include "engine/sampling/sampler.h"

namespace greta {

// One choice in the making.
struct SamplerTurn {
  const SamplerSettings& settings;
  Candidates& candidates;
  std::span<const int32_t> history;
  uint32_t position;  // of the last token of `history`
};

struct SamplerStepInfo {
  std::string_view names[6];  // the first is llama.cpp's own, the others are read as well
  bool truncates;             // leaves candidates out, so that the draw runs over them from the best down
  bool (*active)(const SamplerSettings& settings);
  void (*apply)(SamplerTurn& turn);
};

const SamplerStepInfo& step_info(SamplerStep step);
void apply_dry(SamplerTurn& turn);  // sampler_dry.cpp

constexpr double kLargestLogit = 3.402823466e38;

}  // namespace greta
