// What sample_plain.comp and sample_filtered.h share: an output's parameters, its logits as sampling sees
// them, and masses.
//
// A mass is a sum of exp() in fixed point, 64 bits with kMassUnit for 1. Such sums are exact in any order, so
// equal inputs draw equal tokens. The build defines GROUP.
#ifndef GRETA_VULKAN_SAMPLE_ROW_H
#define GRETA_VULKAN_SAMPLE_ROW_H
#extension GL_EXT_control_flow_attributes : require
#include "kernels/gpu/math.h"
#include "kernels/vulkan/reduce.h"
#include "kernels/vulkan/step.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)
GRETA_ABI_BUFFER(uvec4, uvec4, 16)

layout(push_constant, scalar) uniform Push { SampleBlock p; };

#define kBlock 16                // values of the vocabulary that a thread takes
#define kSlice (GROUP * kBlock)  // values that a group takes: TILE of the kernel in CMakeLists.txt
const float kMassUnit = 1099511627776.0;  // 2^40
const float kLargest = 3.402823466e38;

// The output that this group works on.
StepRow row;
SampleParams params;
SamplePenalties taken;
uint64_t logits;   // address of its logits
uint64_t scratch;  // float penalised[vocab], uint block_key[blocks], uvec4 slice[slices]: each at 16 bytes
bool penalises;

SamplePenalties penalties_of(StepState_address step, uint sequence) {
  const uint at = step.state.sequence_capacity * step.state.page_capacity + sequence * 2;
  return SamplePenalties(uintBitsToFloat(step.page_table[at]), uintBitsToFloat(step.page_table[at + 1]));
}

bool repeats() { return params.repeat_penalty > 0 && params.repeat_penalty != 1; }
bool takes() { return taken.frequency != 0 || taken.presence != 0; }
bool cuts_mass() { return params.top_p > 0 && params.top_p < 1; }
bool is_filtered() { return params.top_k != 0 || cuts_mass() || params.min_p > 0; }
bool is_greedy() { return !(params.temperature > 0); }

uint blocks() { return (p.vocab + kBlock - 1) / kBlock; }
uint_address block_keys() { return uint_address(scratch + (uint64_t(p.vocab) * 4 + 15) / 16 * 16); }
uvec4_address slices() {
  return uvec4_address(uint64_t(block_keys()) + (uint64_t(blocks()) * 4 + 15) / 16 * 16);
}

// Makes a logit finite, so that differences and sums are never NaN. It works on bits, which no compiler
// optimises away.
float tame(float logit) {
  const uint bits = floatBitsToUint(logit), magnitude = bits & 0x7fffffffu;
  if (magnitude <= 0x7f7fffffu) return logit;
  return magnitude == 0x7f800000u && bits >> 31 == 0 ? kLargest : -kLargest;
}

// The magnitude of a tamed value as bits. kNotFinite stands for all that was infinite or no number.
const uint kNotFinite = 0x7f7fffffu;
uint magnitude_bits(float tamed) { return floatBitsToUint(tamed) & 0x7fffffffu; }

// Loads `count` values of block `block`, as many as the vocabulary has, and tames them.
void load_block(uint64_t from, uint block, out float values[kBlock], out uint count) {
  const uint first = block * kBlock;
  count = first < p.vocab ? min(kBlock, p.vocab - first) : 0;
  const uint64_t at = from + uint64_t(first) * 4;
  if (count == kBlock && (uint(at) & 15) == 0) {
    vec4 quads[kBlock / 4];
    [[unroll]] for (uint i = 0; i < kBlock / 4; ++i) quads[i] = vec4_address(at).at[i];
    [[unroll]] for (uint i = 0; i < kBlock; ++i) values[i] = tame(quads[i / 4][i % 4]);
  } else {
    [[unroll]] for (uint i = 0; i < kBlock; ++i) values[i] = i < count ? tame(float_address(at).at[i]) : 0;
  }
}
// Where the values after penalties lie.
uint64_t values_at() { return penalises ? scratch : logits; }

// A float as a mass. It works on bits, since not every driver converts floats to 64-bit integers.
uint64_t mass_of(float sum) {
  const uint bits = floatBitsToUint(sum), mantissa = (bits & 0x7fffffu) | 0x800000u;
  const int shift = int(bits >> 23) - 127 - 23 + 40;
  return shift >= 0 ? uint64_t(mantissa) << shift : uint64_t(shift > -24 ? mantissa >> -shift : 0);
}
float sum_of(uint64_t mass) {
  const uvec2 words = unpackUint2x32(mass);
  return (float(words.y) * 4294967296.0 + float(words.x)) / kMassUnit;
}

// share * mass; the share has 24 bits.
uint64_t share_of(uint64_t mass, float share) {
  const uint bits = uint(share * 16777216.0);
  return (mass >> 24) * bits + ((mass & 0xffffff) * bits >> 24);
}

// The first word of Philox4x32-10 (Salmon et al. 2011) for the counter {position, 0, 0, 0}: uniform in [0,
// 1), with 24 bits.
float philox_uniform(uint key0, uint key1, uint position) {
  uvec4 c = uvec4(position, 0, 0, 0);
  for (uint i = 0; i < 10; ++i) {
    uint a_high, a_low, b_high, b_low;
    umulExtended(0xd2511f53u, c.x, a_high, a_low);
    umulExtended(0xcd9e8d57u, c.z, b_high, b_low);
    c = uvec4(b_high ^ c.y ^ key0, b_low, a_high ^ c.w ^ key1, a_low);
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return float(c.x >> 8) / 16777216.0;
}
#endif
