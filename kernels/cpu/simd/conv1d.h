// conv1d for a tile of channels, which the plain rows and those with vectors share: compiled for an
// instruction set, the loops over channels are spread over its lanes.
#pragma once
#include "kernels/cpu/math.h"
#include "kernels/cpu/runs.h"

namespace {

constexpr uint32_t kConvTile = 64;  // as in kernels/cpu/CMakeLists.txt

struct ConvTile {
  const Conv1dBlock& b;
  StepRun run;
  bool begins;
  uint32_t first, count;  // channels
  float* state;
  const float* weight;  // [width][kConvTile]

  // Row t + back - last of x, where rows before the run are those of the state. Null: zeros.
  const float* row(uint32_t i, uint32_t back) const {
    const uint32_t last = b.width - 1;
    if (i + back >= last)
      return (const float*)b.x + uint64_t(run.first + i + back - last) * b.x_stride + first;
    return begins ? nullptr : state + uint64_t(i + back) * b.channels + first;
  }
};

inline void make_row(const ConvTile& tile, uint32_t i) {
  const Conv1dBlock& b = tile.b;
  float* y = (float*)b.y + uint64_t(tile.run.first + i) * b.y_stride + tile.first;
  float sum[kConvTile];
  for (uint32_t c = 0; c < tile.count; ++c) sum[c] = b.bias ? ((const float*)b.bias)[tile.first + c] : 0.f;
  for (uint32_t j = 0; j < b.width; ++j) {
    const float* x = tile.row(i, j);
    if (!x) continue;
    for (uint32_t c = 0; c < tile.count; ++c) sum[c] += tile.weight[j * kConvTile + c] * x[c];
  }
  if (b.silu)
    for (uint32_t c = 0; c < tile.count; ++c) sum[c] = silu_f32(sum[c]);
  __builtin_memcpy(y, sum, tile.count * sizeof(float));
}

// The state's row j becomes that of count rows later, in place: rows only move to the front.
inline void keep_last(const ConvTile& tile) {
  for (uint32_t j = 0; j + 1 < tile.b.width; ++j) {
    float* to = tile.state + uint64_t(j) * tile.b.channels + tile.first;
    const float* from = tile.row(tile.run.count, j);
    for (uint32_t c = 0; c < tile.count; ++c) to[c] = from ? from[c] : 0.f;
  }
}

inline void conv_tiles(const Conv1dBlock& b, uint32_t first_group, uint32_t group_count) {
  const StepState* step = step_of(b.step);
  const StepRuns* runs = runs_of(b.runs);
  const uint32_t live = live_rows(step, kRowsTokens);
  float weight[kMaxConvWidth * kConvTile];
  uint32_t weight_of = ~0u;  // the first channel of those that `weight` has
  for (uint32_t group = first_group; group < first_group + group_count; ++group) {
    const uint32_t t = group % b.rows, first = group / b.rows * kConvTile;
    if (t >= live) continue;
    const StepRun& run = runs->run[runs->run_of[t]];
    if (t != run.first) continue;
    const uint32_t left = b.channels - first, count = left < kConvTile ? left : kConvTile;
    if (weight_of != first)
      for (uint32_t c = 0; c < count; ++c)
        for (uint32_t j = 0; j < b.width; ++j)
          weight[j * kConvTile + c] = ((const float*)b.weight)[uint64_t(first + c) * b.width + j];
    weight_of = first;
    float* state = (float*)b.state + uint64_t(run.state) * b.state_stride;
    const ConvTile tile = {b, run, begins_sequence(step, run), first, count, state, weight};
    for (uint32_t i = 0; i < run.count; ++i) make_row(tile, i);
    keep_last(tile);
  }
}

}  // namespace
