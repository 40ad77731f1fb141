// Teams: powers of two of neighbouring lanes of a wave, 8 at least, that work together.
#pragma once
#include "kernels/hip/device.h"

struct Team {
  uint lanes, count;  // of a team; teams of the group
  uint index, lane;   // of this thread's team; of this thread in it
  uint thread;        // of the group
};

// Teams with a lane for each of `chunks` chunks, or of a whole wave. What is made of a team stays within the
// loop that asks for it: the compiler does not know that it is the same each time, and so does not keep it in
// registers over all that comes before.
DEVICE Team team_for(uint chunks) {
  uint thread = thread_x();
#ifndef GRETA_EMULATED
  asm volatile("" : "+v"(thread));
#endif
  const uint lanes = chunks <= 8 ? 8 : chunks <= 16 ? 16 : chunks <= 32 || kWave == 32 ? 32 : 64;
  return {lanes, GROUP / lanes, thread / lanes, thread % lanes, thread};
}

// values[i] = its sum over the team, in the order of wave_sum(). All lanes of the wave call it.
#ifdef GRETA_EMULATED
struct TeamSums {
  float* values;
  uint count, lanes;
};
static void add_team_lanes(mock_hip::Wave& wave) {
  TeamSums of_lane[kWave];
  for (uint i = 0; i < kWave; ++i) {
    if (!wave.in[i]) {
      wave.fault = "lanes are absent where teams add their values";
      return;
    }
    of_lane[i] = *static_cast<const TeamSums*>(wave.in[i]);
  }
  for (uint i = 0; i < of_lane[0].count; ++i)
    for (uint team = 0; team < kWave; team += of_lane[0].lanes) {
      const TeamSums* lanes = of_lane + team;
      for (uint d = 1; d < lanes->lanes; d *= 2)
        for (uint k = 0; k < lanes->lanes; k += 2 * d) lanes[k].values[i] += lanes[k + d].values[i];
      for (uint k = 1; k < lanes->lanes; ++k) lanes[k].values[i] = lanes[0].values[i];
    }
}
template <uint kCount>
DEVICE void team_sums(float (&values)[kCount], uint lanes) {
  const TeamSums in = {values, kCount, lanes};
  mock_hip::meet_wave(add_team_lanes, &in, nullptr);
}
#else
// value + that of the lane 16 away.
DEVICE float add_other_row(float value) {
  const int bits = __builtin_bit_cast(int, value);
#ifdef __GFX9__
  const int other = __builtin_amdgcn_ds_swizzle(bits, 0x401f);
#else
  const int other = __builtin_amdgcn_permlanex16(bits, bits, 0x76543210, 0xfedcba98, true, true);
#endif
  return value + __builtin_bit_cast(float, other);
}

template <uint kCount>
DEVICE void team_sums(float (&values)[kCount], uint lanes) {
#pragma unroll
  for (float& value : values) {
    value += in_row<kXor1>(value);
    value += in_row<kXor2>(value);
    value += in_row<kMirrorEight>(value);
  }
  if (lanes == 8) return;
#pragma unroll
  for (float& value : values) value += in_row<kMirrorRow>(value);
  if (lanes == 16) return;
#pragma unroll
  for (float& value : values) value = add_other_row(value);
  if (kWave == 32 || lanes == 32) return;
#pragma unroll
  for (float& value : values) value += shuffle(value, lane() ^ 32);
}
#endif
