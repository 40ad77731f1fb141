// gate with the vectors of the instruction set it is compiled for: the scalar code of math.h has no
// branches, so the compiler spreads it over lanes, with the bits of gate_plain. 1.1B at 512 tokens
// spent 10 % of a prompt's time in gate_plain.
#pragma once
#include "kernels/cpu/math.h"
#include "kernels/cpu/step.h"

namespace {

constexpr uint32_t kGateChunk = 16;  // rows of a group of matmul_rows, which uses this too

// Through a buffer, since y may be gate or up.
template <uint32_t kActivation>
inline void gate_row(const float* gate, const float* up, uint32_t width, float* y) {
  float out[kGateChunk];
  uint32_t i = 0;
  for (; i + kGateChunk <= width; i += kGateChunk) {
#pragma GCC unroll 1  // GCC spreads no loop over lanes that it has unrolled
    for (uint32_t j = 0; j < kGateChunk; ++j) out[j] = gated(kActivation, gate[i + j], up[i + j]);
    __builtin_memcpy(y + i, out, sizeof out);
  }
  for (; i < width; ++i) y[i] = gated(kActivation, gate[i], up[i]);
}

inline void gate_row(uint32_t activation, const float* gate, const float* up, uint32_t width, float* y) {
  switch (activation) {
    case kActivationGelu:
      return gate_row<kActivationGelu>(gate, up, width, y);
    case kActivationClamped:
      return gate_row<kActivationClamped>(gate, up, width, y);
    default:
      return gate_row<kActivationSilu>(gate, up, width, y);
  }
}

inline void gate_rows(const GateBlock& b, uint32_t first_group, uint32_t group_count) {
  const uint32_t live = live_rows(step_of(b.step), kRowsTokens);
  for (uint32_t t = first_group; t < first_group + group_count && t < live; ++t) {
    const uint64_t at = uint64_t(t) * b.width;
    gate_row(b.activation, (const float*)b.gate + at, (const float*)b.up + at, b.width, (float*)b.y + at);
  }
}

}  // namespace
