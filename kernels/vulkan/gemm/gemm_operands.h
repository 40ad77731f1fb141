// How the tiles of A and B come to shared memory for gemm on matrix units: kStep columns of A, and as many
// rows of B, at a time. They keep the order that they have in memory, so that nothing is turned on the way:
//   along k   A, or B turned: `lines` of k. Where a step has less than 64 columns, several lines stand in one
//             row of shared memory, L lines apart, so that rows are 64 values and one word (16 bytes)
//   across    A turned, or B: kStep lines of the tile's rows or columns, and one word
// Eight neighbouring lines thus lie in different banks, and no more than an eighth is lost.
#ifndef GRETA_VULKAN_GEMM_OPERANDS_H
#define GRETA_VULKAN_GEMM_OPERANDS_H
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/gemm/values.h"

layout(constant_id = 0) const uint kThreads = 256;
layout(constant_id = 2) const uint kHigh = 128;   // the tile's rows, of A and y
layout(constant_id = 3) const uint kWide = 128;   // its columns, of B and y
layout(constant_id = 4) const uint kATurned = 0;
layout(constant_id = 5) const uint kBTurned = 0;
layout(constant_id = 6) const uint kYType = 0;
layout(constant_id = 7) const uint kWhole = 0;
layout(constant_id = 8) const uint kStep = 32;
layout(push_constant, scalar) uniform Push { GemmBlock p; };

GRETA_ABI_BUFFER(uvec4, uvec4, 16)

const uint kWord = 8;  // values of a word
const uint kAlong = kStep / kWord;
const bool kAIsAlong = kATurned == 0, kBIsAlong = kBTurned != 0;
const uint kFold = 64 / kStep;
const uint kAFold = kHigh / kFold >= 16 ? kFold : 1, kBFold = kWide / kFold >= 16 ? kFold : 1;
const uint kALines = kHigh / kAFold, kBLines = kWide / kBFold;  // rows of shared memory, along k
const uint kAPitch = kAIsAlong ? kAFold * kAlong + 1 : kHigh / kWord + 1;
const uint kBPitch = kBIsAlong ? kBFold * kAlong + 1 : kWide / kWord + 1;
const uint kBAt = (kAIsAlong ? kALines : kStep) * kAPitch;  // where B's tile stands behind A's
const uint kStepSize = kBAt + (kBIsAlong ? kBLines : kStep) * kBPitch;

const uint kAWords = kHigh * kAlong, kBWords = kWide * kAlong;
const uint kAEach = (kAWords + kThreads - 1) / kThreads, kBEach = (kBWords + kThreads - 1) / kThreads;

uint first_row, first_column;  // of the tile in y
uint64_t a_from, b_from;       // what the first step brings
uint steps;
bool a_has_words, b_has_words; // rows begin at multiples of 16 bytes
uvec4 a_words[kAEach], b_words[kBEach];

// Which line of the operand in memory a word belongs to, and at which value of the line it begins: counted
// from the tile's first line and value.
uint line_of(uint word, bool along, uint across) { return along ? word / kAlong : word / (across / kWord); }
uint place_of(uint word, bool along, uint across) {
  return (along ? word % kAlong : word % (across / kWord)) * kWord;
}

// Where the word stands in its tile.
uint word_at(uint word, bool along, uint across, uint lines, uint pitch) {
  const uint line = line_of(word, along, across), chunk = place_of(word, along, across) / kWord;
  return along ? line % lines * pitch + line / lines * kAlong + chunk : line * pitch + chunk;
}

// Eight values from `at` on, of which `left` are inside; the others are 0.
uvec4 load_some(uint64_t from, uint at, uint left, bool has_words) {
  if (left >= kWord && has_words) return uvec4_address(from + uint64_t(at) * 2).at[0];
  uvec4 word = uvec4(0);
  [[unroll]] for (uint i = 0; i < kWord; ++i)
    if (i < left) word[i / 2] |= uint(uint16_address(from + uint64_t(at + i) * 2).at[0]) << (i % 2 * 16);
  return word;
}

uint left_of(uint all, uint first) { return all - min(all, first); }

// Brings a step to registers. Steps behind the last one bring what is not multiplied, since a branch around
// the loads would let the driver wait for them at its end.
void load_step(uint step) {
  const uint thread = gl_LocalInvocationIndex, k = step * kStep;
  const uint64_t inside_step = min(step, steps - 1);
  const uint64_t a = a_from + inside_step * (kAIsAlong ? kStep : kStep * p.a_stride) * 2;
  const uint64_t b = b_from + inside_step * (kBIsAlong ? kStep : kStep * p.b_stride) * 2;
  [[unroll]] for (uint i = 0; i < kAEach; ++i) {
    const uint word = i * kThreads + thread, line = line_of(word, kAIsAlong, kHigh),
               place = place_of(word, kAIsAlong, kHigh), at = line * p.a_stride + place;
    if (kWhole != 0) {
      a_words[i] = uvec4_address(a).at[at / kWord];
    } else {
      const bool inside = kAIsAlong ? first_row + line < p.m : k + line < p.k;
      const uint left = kAIsAlong ? left_of(p.k, k + place) : left_of(p.m, first_row + place);
      a_words[i] = load_some(a, at, inside ? left : 0, a_has_words);
    }
  }
  [[unroll]] for (uint i = 0; i < kBEach; ++i) {
    const uint word = i * kThreads + thread, line = line_of(word, kBIsAlong, kWide),
               place = place_of(word, kBIsAlong, kWide), at = line * p.b_stride + place;
    if (kWhole != 0) {
      b_words[i] = uvec4_address(b).at[at / kWord];
    } else {
      const bool inside = kBIsAlong ? first_column + line < p.n : k + line < p.k;
      const uint left = kBIsAlong ? left_of(p.k, k + place) : left_of(p.n, first_column + place);
      b_words[i] = load_some(b, at, inside ? left : 0, b_has_words);
    }
  }
}

void begin_operands() {
  steps = (p.k + kStep - 1) / kStep;
  const uint64_t matrix = gl_WorkGroupID.z;
  const uint64_t a_first = kAIsAlong ? uint64_t(first_row) * p.a_stride : first_row;
  const uint64_t b_first = kBIsAlong ? uint64_t(first_column) * p.b_stride : first_column;
  a_from = uint64_t(p.a) + (matrix * p.a_batch + a_first) * 2;
  b_from = uint64_t(p.b) + (matrix * p.b_batch + b_first) * 2;
  a_has_words = (p.a_stride | p.a_batch) % kWord == 0;
  b_has_words = (p.b_stride | p.b_batch) % kWord == 0;
}
#endif
