#pragma once
#include <cstdint>

namespace greta::test {

// What RADV says of a pipeline. Register counts are a lane's (VGPRs) and a subgroup's (SGPRs).
struct Compiled {
  uint32_t lanes = 0;
  uint32_t vgprs = 0, sgprs = 0, spilled_vgprs = 0, spilled_sgprs = 0;
  uint32_t scratch_bytes = 0, shared_bytes = 0, code_bytes = 0, instructions = 0;
  uint32_t wanted = 0;  // instructions with the name that was asked for
};

}  // namespace greta::test
