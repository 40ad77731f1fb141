// What the lanes of the attention kernels for many tokens do together, and how their instructions are kept in
// order.
#pragma once
#include "kernels/hip/matrix.h"

namespace {
constexpr float kLog2e = 1.44269504f;

DEVICE float exp2_f32(float x) { return __builtin_amdgcn_exp2f(x); }

DEVICE uint half_pair_of(float low, float high) {
  return __builtin_bit_cast(uint, f16vec2{float16_t(low), float16_t(high)});
}

// No instruction is moved over it: what would be loaded early would wait in registers. Where a fragment takes
// eight of them (gfx11), the fragments of a phase are loaded by fours.
DEVICE void end_phase() {
#ifndef GRETA_EMULATED
  __builtin_amdgcn_sched_barrier(0);
#endif
}

DEVICE void end_fours(uint fragment) {
  if (kFragmentWords > 1 && fragment % 4 == 0) end_phase();
}

// All lanes wait here for what was loaded. Where some of them went around the wait, the compiler would wait
// once more for all loads that were begun since.
DEVICE void wait_for([[maybe_unused]] uvec4& loaded) {
#ifndef GRETA_EMULATED
  asm volatile("" : "+v"(loaded));
#endif
}

DEVICE bool wave_any(bool value) {
#ifdef GRETA_EMULATED
  return wave_max(uint(value)) != 0;
#elif defined(__GFX9__)
  return __builtin_amdgcn_ballot_w64(value) != 0;
#else
  return __builtin_amdgcn_ballot_w32(value) != 0;
#endif
}

// value as the lane 16 before or behind holds it, of waves of 32.
DEVICE uint other_row(uint value) {
#if defined(GRETA_EMULATED) || defined(__GFX9__)
  return shuffle_xor(value, 16);
#else
  return __builtin_amdgcn_permlanex16(value, value, 0x76543210, 0xfedcba98, true, true);
#endif
}
}  // namespace
