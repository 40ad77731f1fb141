// What sample_plain.hip and sample_filtered.h share: an output's parameters, its logits as sampling sees
// them, candidates and masses.
//
// A candidate is a value of the vocabulary as a number, key << 32 | ~id: the larger one comes first, and no
// two are equal. A mass is a sum of exp() in fixed point, 64 bits with kMassUnit for 1. Such sums are exact
// in any order, so equal inputs draw equal tokens. The build defines GROUP.
#pragma once
#include "kernels/hip/math.h"
#include "kernels/hip/reduce.h"
#include "kernels/hip/step.h"

namespace {

constexpr uint kBlock = 16;              // values of the vocabulary that a thread takes
constexpr uint kSlice = GROUP * kBlock;  // values that a group takes: TILE of the kernel in CMakeLists.txt
constexpr float kMassUnit = 0x1p40f;
constexpr float kLargest = 0x1.fffffep127f;
constexpr uint kNotFinite = 0x7f7fffffu;  // magnitude, as bits, of all that was infinite or no number

typedef uint64_t Record __attribute__((ext_vector_type(2)));  // of a slice: its best candidate, and its mass

// The output that this group works on.
struct Output {
  uint vocab, blocks, slices;
  uint sequence, position;
  SampleParams params;
  SamplePenalties taken;
  bool penalises;
  const GLOBAL float* logits;  // [vocab]
  GLOBAL float* values;        // [vocab] after penalties: logits, if there are none
  GLOBAL uint* block_keys;     // [blocks] the largest key of each
  GLOBAL Record* records;      // [slices]
};

}  // namespace

DEVICE SampleParams params_of(Step step, uint sequence) {
  const auto from = &step->sample[sequence];
  return {from->temperature, from->top_p,         from->min_p,    from->repeat_penalty,
          from->top_k,       from->repeat_last_n, from->seed_low, from->seed_high};
}

DEVICE SamplePenalties penalties_of(Step step, uint sequence) {
  const auto behind = (const GLOBAL float*)(step + 1) + step->sequence_capacity * step->page_capacity;
  return {behind[sequence * 2], behind[sequence * 2 + 1]};
}

DEVICE bool repeats(const SampleParams& params) {
  return params.repeat_penalty > 0 && params.repeat_penalty != 1;
}
DEVICE bool takes(const SamplePenalties& taken) { return taken.frequency != 0 || taken.presence != 0; }

DEVICE Output output_of(const SampleBlock& p, Step step, uint index) {
  Output o;
  const auto row = &step->row[step->output_row[index]];
  o.vocab = p.vocab;
  o.blocks = (p.vocab + kBlock - 1) / kBlock;
  o.slices = (p.vocab + kSlice - 1) / kSlice;
  o.sequence = row->sequence;
  o.position = row->position;
  o.params = params_of(step, o.sequence);
  o.taken = penalties_of(step, o.sequence);
  o.penalises = (repeats(o.params) || takes(o.taken)) && o.params.repeat_last_n != 0 && p.token_log;
  o.logits = p.logits + uint64_t(index) * p.vocab;
  const auto scratch = p.scratch + uint64_t(index) * sample_scratch_bytes(p.vocab);
  o.values = o.penalises ? (GLOBAL float*)scratch : p.logits + uint64_t(index) * p.vocab;
  o.block_keys = (GLOBAL uint*)(scratch + (uint64_t(p.vocab) * 4 + 15) / 16 * 16);
  o.records = (GLOBAL Record*)(o.block_keys + (o.blocks + 3) / 4 * 4);
  return o;
}

// Whether there is no draw; whether top-p leaves out candidates; whether any filter does.
DEVICE bool is_greedy(const SampleParams& params) { return !(params.temperature > 0); }
DEVICE bool cuts_mass(const SampleParams& params) { return params.top_p > 0 && params.top_p < 1; }
DEVICE bool is_filtered(const SampleParams& params) {
  return params.top_k != 0 || cuts_mass(params) || params.min_p > 0;
}

DEVICE uint bits_of(float x) { return __builtin_bit_cast(uint, x); }

// Makes a logit finite, so that differences and sums are never NaN.
DEVICE float tame(float logit) {
  const uint magnitude = bits_of(logit) & 0x7fffffffu;
  if (magnitude <= 0x7f7fffffu) return logit;
  return bits_of(logit) == 0x7f800000u ? kLargest : -kLargest;
}

DEVICE uint magnitude_bits(float tamed) { return bits_of(tamed) & 0x7fffffffu; }

// Loads values id .. id + 3, as many as the vocabulary has, and tames them.
DEVICE vec4 load_four(const Output& o, const GLOBAL float* from, uint id) {
  // A row begins at any float. As a template's argument (load) the type would lose its alignment of 4 bytes.
  typedef float Unaligned __attribute__((ext_vector_type(4), aligned(4)));
  vec4 values = {};
  if (id + 4 <= o.vocab)
    values = *reinterpret_cast<const GLOBAL Unaligned*>(from + id);
  else
    for (uint i = 0; i < 3; ++i) values[i] = id + i < o.vocab ? from[id + i] : 0;
  for (uint i = 0; i < 4; ++i) values[i] = tame(values[i]);
  return values;
}

// Loads a block likewise. Returns the number of its values.
DEVICE uint load_block(const Output& o, const GLOBAL float* from, uint block, float (&values)[kBlock]) {
  const uint first = block * kBlock;
  for (uint i = 0; i < kBlock; i += 4) {
    const vec4 four = load_four(o, from, first + i);
    for (uint j = 0; j < 4; ++j) values[i + j] = four[j];
  }
  return first < o.vocab ? min(kBlock, o.vocab - first) : 0;
}

DEVICE uint64_t candidate(uint key, uint id) { return uint64_t(key) << 32 | uint(~id); }
DEVICE uint key_part(uint64_t candidate) { return uint(candidate >> 32); }
DEVICE uint id_part(uint64_t candidate) { return ~uint(candidate); }

// A float that is 0 or more as a mass, rounded down.
DEVICE uint64_t mass_of(float sum) {
  const uint mantissa = (bits_of(sum) & 0x7fffffu) | 0x800000u;
  const int shift = int(bits_of(sum) >> 23) - 127 - 23 + 40;
  return shift >= 0 ? uint64_t(mantissa) << shift : uint64_t(shift > -24 ? mantissa >> -shift : 0);
}
DEVICE float sum_of(uint64_t mass) {
  return (float(uint(mass >> 32)) * 0x1p32f + float(uint(mass))) / kMassUnit;
}

// share * mass; the share has 24 bits.
DEVICE uint64_t share_of(uint64_t mass, float share) {
  const uint bits = uint(share * 0x1p24f);
  return (mass >> 24) * bits + ((mass & 0xffffff) * bits >> 24);
}

// The first word of Philox4x32-10 (Salmon et al. 2011) for the counter {position, 0, 0, 0}: uniform in [0,
// 1), with 24 bits.
DEVICE float philox_uniform(uint key0, uint key1, uint position) {
  uint c[4] = {position, 0, 0, 0};
  for (uint i = 0; i < 10; ++i) {
    const uint64_t a = uint64_t(0xd2511f53u) * c[0], b = uint64_t(0xcd9e8d57u) * c[2];
    c[0] = uint(b >> 32) ^ c[1] ^ key0;
    c[1] = uint(b);
    c[2] = uint(a >> 32) ^ c[3] ^ key1;
    c[3] = uint(a);
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return float(c[0] >> 8) * 0x1p-24f;
}
