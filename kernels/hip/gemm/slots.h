// The tiles of a GEMM with experts. A slot is one of the `used` experts of a token. Group (i, j) makes one
// tile of rows of one expert: j counts the row tiles of the first expert, then those of the next. It makes
// them for slots i * kMostTokens .. of those that chose the expert, and then for those that lie as many tiles
// further as the grid has along x. Each group finds these slots itself, in their order; each of its waves
// looks through a range of the ids.
#pragma once
#include "kernels/hip/gemm/tile.h"
#include "kernels/hip/grid.h"

namespace {
SHARED uint slots[kMostTokens];     // the slots of the tile
SHARED uint slots_of_wave[kWaves];  // how many slots each wave has found

struct Expert {
  uint id, matrix;       // among all experts, and among those of p.weight
  uint live;             // slots of all live tokens
  uint slot_count;       // how many of them chose the expert
};

// Which of slots 4 i .. 4 i + 3 chose the expert, as bits. A bucket has at least 16 tokens, so the ids are
// whole words of 16 bytes.
DEVICE uint chosen(const ARGUMENT MatmulExpertBlock& p, const Expert& expert, uint i) {
  uint bits = 0;
  if (i * 4 >= expert.live) return bits;
  const uvec4 ids = load<uvec4>(p.ids + i * 4);
#pragma unroll
  for (uint j = 0; j < 4; ++j) bits |= uint(ids[j] == expert.id && i * 4 + j < expert.live) << j;
  return bits;
}

// How many words of 4 ids a wave looks through: a multiple of its lanes.
DEVICE uint words_of_wave(const Expert& expert) {
  const uint words = (expert.live + 3) / 4, each = (words + kWaves - 1) / kWaves;
  return (each + kWave - 1) / kWave * kWave;
}

// The sum over the lanes before this one.
DEVICE uint wave_sum_before(uint value) {
  uint sum = value;
#pragma unroll
  for (uint d = 1; d < kWave; d *= 2) {
    const uint before = shuffle(sum, lane() >= d ? lane() - d : 0);
    sum += lane() >= d ? before : 0;
  }
  return sum - value;
}

// Expert `matrix` of p.weight, with its slots counted.
DEVICE Expert find_expert(const ARGUMENT MatmulExpertBlock& p, uint matrix) {
  Expert expert = {p.first + matrix, matrix, live_rows(step_of(p.step), kRowsTokens) * p.used, 0};
  if (!p.ids) {
    expert.slot_count = expert.live / p.used;
    return expert;
  }
  const uint words = words_of_wave(expert), begin = wave_index() * words;
  uint count = 0;
  for (uint i = begin + lane(); i < begin + words; i += kWave) count += bitCount(chosen(p, expert, i));
  count = wave_sum(count);
  if (lane() == 0) slots_of_wave[wave_index()] = count;
  group_barrier();
#pragma unroll
  for (uint i = 0; i < kWaves; ++i) expert.slot_count += slots_of_wave[i];
  return expert;
}

// Fills `slots` with the slots that chose the expert, from the first-th on.
DEVICE void find_slots(const ARGUMENT MatmulExpertBlock& p, const Expert& expert, uint first) {
  group_barrier();  // all threads have stored the tile before, for which they read `slots`
  if (!p.ids) {
    if (thread_x() < kMostTokens) slots[thread_x()] = (first + thread_x()) * p.used + expert.id;
    return group_barrier();
  }
  const uint words = words_of_wave(expert), begin = wave_index() * words;
  uint before = 0;
#pragma unroll
  for (uint i = 0; i < kWaves; ++i) before += i < wave_index() ? slots_of_wave[i] : 0;
  for (uint i = begin; i < begin + words; i += kWave) {
    const uint word = i + lane(), which = chosen(p, expert, word), count = bitCount(which);
    uint at = before + wave_sum_before(count) - first;
#pragma unroll
    for (uint j = 0; j < 4; ++j) {
      if ((which >> j & 1) && at < kMostTokens) slots[at] = word * 4 + j;
      at += which >> j & 1;
    }
    before += wave_sum(count);
  }
  group_barrier();
}
}  // namespace
