// How a group of a matvec kernel makes the sums of its kGroupResults (16) results.
//
// A result is made of one or two sums, and a sum is the product of one row of weights and the row of x.
//   lane   takes units of the columns in turn: unit `lane` of its slice, then every slices * kWave-th
//   wave   multiplies kWaveRows (4) rows at once, a set, which share the values of x that its lanes hold
//   group  makes as many sets as it has waves side by side. Where it has more waves than sets, several
//          waves share a set: each takes a slice of the columns. Their partial sums meet in shared memory
// Shared memory: 4 partial sums and a sum of squares for each wave, float32.
//
// Weights and dot_load() are those of gpu/dot/<type>.h. A kernel describes its matrix by a struct, its
// Source, and defines
//   weights_of(source, result, second)   address of the row of a result's first or second sum
#pragma once
#include "kernels/hip/step.h"

#pragma clang fp contract(off)
constexpr uint kWaveRows = 4;  // rows that a wave multiplies at once
constexpr uint kMostThreads = 512, kMostWaves = kMostThreads / kWave;

SHARED float partial_sums[kMostWaves * kWaveRows];  // [slice][result][sum]
SHARED float squares[kMostWaves];

// What a wave of the group makes. The number of waves is a power of two.
struct Share {
  uint threads, waves;  // of the group
  uint sums;            // of a result, 1 or 2
  uint results, sets;   // results of a set, sets of a group
  uint slices, slice;   // waves that share a set, and which of them this one is
};

// Four rows of weights, and the unit of each that is multiplied next.
struct Rows {
  uint64_t at[kWaveRows];
  Weights w[kWaveRows];
};

DEVICE Share share_of(uint threads, uint sums) {
  const uint waves = threads / kWave, results = kWaveRows / sums, sets = kGroupResults / kWaveRows * sums;
  const uint slices = waves > sets ? waves / sets : 1;
  return {threads, waves, sums, results, sets, slices, waves > sets ? wave_index() / sets : 0};
}

// The wave's first set, the results of which are first_set * results ..; its next one is `waves` further.
DEVICE uint first_set(const Share& share) { return wave_index() & (share.sets - 1); }

// The first unit of a lane, and how far it is to the next.
DEVICE uint first_unit(const Share& share) { return share.slice * kWave + lane(); }
DEVICE uint unit_step(const Share& share) { return share.slices * kWave; }

DEVICE void load_unit(Rows& rows, uint unit) {
#pragma unroll
  for (uint i = 0; i < kWaveRows; ++i) rows.w[i] = dot_load(rows.at[i], unit);
}

// Finds the rows of set `set` of a group whose first result is `first`, and loads their first unit. Results
// past the last repeat it.
template <class Source>
DEVICE Rows begin_rows(const Source& source, const Share& share, uint first, uint count, uint set,
                       uint units) {
  Rows rows;
#pragma unroll
  for (uint i = 0; i < kWaveRows; ++i) {
    const uint result = first + set * share.results + (share.sums == 2 ? i / 2 : i);
    rows.at[i] = weights_of(source, min(result, count - 1), share.sums == 2 && i % 2 == 1);
  }
  load_unit(rows, min(first_unit(share), units - 1));
  return rows;
}

// Adds up the sums of the lanes, and leaves those of set `set`.
DEVICE void publish_sums(const float (&sums)[kWaveRows], const Share& share, uint set) {
  vec4 of_wave;
#pragma unroll
  for (uint i = 0; i < kWaveRows; ++i) of_wave[i] = wave_sum(sums[i]);
  const uint at = (share.slice * share.sets + set) * kWaveRows;
  if (lane() == 0)
#pragma unroll
    for (uint i = 0; i < kWaveRows; ++i) partial_sums[at + i] = of_wave[i];
}

// The one or two sums of result `i` of the group: its partial sums, added in the order of slices.
DEVICE vec2 sums_of_result(const Share& share, uint i) {
  vec2 sums = {0, 0};
  for (uint slice = 0; slice < share.slices; ++slice) {
    const uint at = (slice * kGroupResults + i) * share.sums;
    sums.x += partial_sums[at];
    if (share.sums == 2) sums.y += partial_sums[at + 1];
  }
  return sums;
}

// The factor of the norm that precedes the product needs the squares of all values of x. Each wave leaves its
// sum of squares as squares[i]; a barrier follows.
DEVICE void publish_squares(float sum, uint i) {
  sum = wave_sum(sum);
  if (lane() == 0) squares[i] = sum;
}

// 1 / rms of `width` values whose squares are the first `count` published sums.
DEVICE float norm_factor(uint count, uint width, float epsilon) {
  float sum = 0;
  for (uint i = 0; i < count; ++i) sum += squares[i];
  return 1 / __builtin_sqrtf(sum / float(width) + epsilon);
}

// The value, of which the compiler now knows nothing. Addresses that are made of it stay sums of a row's
// address, which all lanes share, and one offset for all rows; else each row gets a pointer of its own in
// registers, which every round moves on.
DEVICE uint opaque(uint value) {
#ifndef GRETA_EMULATED
  asm volatile("" : "+v"(value));
#endif
  return value;
}

// All loads before it are under way before what follows. Without it the compiler waits for some rows before
// it loads x, to save registers that it has.
DEVICE void loads_first() {
#ifndef GRETA_EMULATED
  __builtin_amdgcn_sched_barrier(0);
#endif
}

// The sums are made before what follows is loaded, in the registers of the weights that they are made of.
DEVICE void sums_first([[maybe_unused]] float (&sums)[kWaveRows]) {
#ifndef GRETA_EMULATED
  asm volatile("" : "+v"(sums[0]), "+v"(sums[1]), "+v"(sums[2]), "+v"(sums[3]));
#endif
}

// The argument block, loaded again where it is used: what only the end of a kernel needs, or a round of a
// loop, takes no registers elsewhere.
template <class Block>
DEVICE Block reload([[maybe_unused]] const Block& p) {
#ifdef GRETA_EMULATED
  return p;
#else
  auto at = (const ARGUMENT Block*)argument_block();
  asm volatile("" : "+s"(at));
  return *(const Block*)at;
#endif
}
