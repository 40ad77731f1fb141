// Where the time of one step goes, by stage and kernel, as `greta-cli bench --profile` prints it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/roofline.h"
#include "json.h"

namespace greta::cli {

struct StageWork {
  std::string stage, kernel;
  uint64_t launches, ns, bytes, flops;
};

struct BenchProfile {
  uint32_t tokens = 0;           // tokens of the step; 0: there is no profile
  std::vector<StageWork> works;  // in the order of first launches
};

Json stages_json(const BenchProfile& profile, const Roofs& roofs);
// A table. Its last line has the rates of a step of the test, in which launches overlap; step_ns is 0 where
// its time is not known.
std::string stages_text(const BenchProfile& profile, const Roofs& roofs, double step_ns);

}  // namespace greta::cli
