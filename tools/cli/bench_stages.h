// Where the time of one step goes, by stage and kernel: what `greta-cli bench --profile` prints.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "json.h"
#include "roofline.h"

namespace greta::cli {

struct StageWork {
  std::string stage, kernel;
  uint64_t launches, ns, bytes, flops;
};

struct BenchProfile {
  uint32_t tokens = 0;           // of the step; 0: there was none
  std::vector<StageWork> works;  // in order of their first launches
};

Json stages_json(const BenchProfile& profile, const Roofs& roofs);
// A table, with the rates of a step of the test too, where launches overlap; step_ns 0: not known.
std::string stages_text(const BenchProfile& profile, const Roofs& roofs, double step_ns);

}  // namespace greta::cli
