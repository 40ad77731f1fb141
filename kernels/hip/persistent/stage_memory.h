// Memory of a group that decode_stages and its bodies share. Each of them is compiled by itself, and they are
// linked into one kernel. What decode_stages itself does not define, each body would have for itself.
#pragma once
#include "kernels/hip/device.h"

#define STAGE_SHARED __attribute__((weak, __shared__))

// What a body knows of its launch. Every thread writes it, with the same values, so that the compiler knows
// them without a load.
struct StageContext {
  uint group[3];
  uint unused;
  uint64_t block;
};
STAGE_SHARED StageContext stage_context;
// Waves that have come to a barrier of a body with fewer threads than decode_stages, for each count of waves.
STAGE_SHARED uint stage_arrived[8];

// Memory that bodies share with each other, where a kernel of its own would have SHARED arrays: it is as
// large as the largest need and not as their sum.
constexpr uint kStageBytes = 19456;
struct alignas(16) StageMemory {
  unsigned char bytes[kStageBytes];
};
STAGE_SHARED StageMemory stage_memory;
