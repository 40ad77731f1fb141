// What a decode kernel does with the results of a token where a norm is behind them: groups leave them in memory, and the
// last takes the norm of them all, which is shorter than a launch. Reads the block `p`, a MatmulNormBlock.
#ifndef GRETA_VULKAN_ROWS_NORMED_H
#define GRETA_VULKAN_ROWS_NORMED_H
#include "kernels/vulkan/group_ticket.h"
#include "kernels/vulkan/convert/q8x16.h"

layout(constant_id = 3) const uint kWidth = 256;

const uint kSums = 1;
uint first_result() { return gl_WorkGroupID.y * kGroupResults; }
uint result_count() { return kWidth; }
uint64_t weights_of(uint result, bool) { return uint64_t(p.weight) + result * quant_row_bytes(kDepth); }

#include "kernels/vulkan/matvec/rows_factor.h"
#include "kernels/vulkan/matvec/rows_results.h"  // which asks for the four above

// A row in fours of values: each thread takes every kThreads-th, kAhead of them at once, so that their loads are under way
// together: all there are, unless they would take more registers than the products.
const uint kFours = kWidth / 4, kOwn = (kFours + kThreads - 1) / kThreads;
const uint kAhead = kOwn < 4 ? kOwn : 2;
struct Fours {
  vec4 x[kAhead], residual[kAhead], norm_gain[kAhead], gain[kAhead];
};

vec4 four(float_address values, uint at) { return vec4_address(uint64_t(values)).at[at]; }

uint own_four(uint i) { return gl_SubgroupID * kLanes + gl_SubgroupInvocationID + i * kThreads; }

void load(uint t, uint first, out Fours f) {
  [[unroll]] for (uint i = 0; i < kAhead; ++i) {
    const uint at = min(own_four(first + i), kFours - 1);
    f.x[i] = four(p.product, t * kFours + at);
    f.residual[i] = four(p.residual, t * kFours + at);
    f.norm_gain[i] = four(p.norm_gain, at);
    f.gain[i] = uint64_t(p.gain) != 0 ? four(p.gain, at) : vec4(1);
  }
  if (kHolds) subgroupMemoryBarrierBuffer();  // no load sinks below it
}

float squares_of(Fours f, uint first) {
  float sum = 0;
  [[unroll]] for (uint i = 0; i < kAhead; ++i)
    if (own_four(first + i) < kFours) sum += dot(f.x[i], f.x[i]);
  return sum;
}

void store(Fours f, uint t, uint first, float factor) {
  [[unroll]] for (uint i = 0; i < kAhead; ++i) {
    const uint at = own_four(first + i);
    if (at >= kFours) break;
    const vec4 y = f.residual[i] + p.scale * (f.x[i] * factor * f.norm_gain[i]);
    vec4_address(uint64_t(p.y)).at[t * kFours + at] = y;
    if (uint64_t(p.rounded) != 0)
      store_q8x16(uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(kWidth), kWidth, at, y * f.gain[i], dot(y, y));
  }
}

void norm_row(uint t) {
  Fours f, more;
  load(t, 0, f);
  float sum = squares_of(f, 0);
  [[dont_unroll]] for (uint first = kAhead; first < kOwn; first += kAhead) {
    load(t, first, more);
    sum += squares_of(more, first);
  }
  share_squares(sum, gl_SubgroupID);
  barrier();
  const float factor = norm_factor(kSubgroups, kWidth, p.epsilon);
  store(f, t, 0, factor);
  [[dont_unroll]] for (uint first = kAhead; first < kOwn; first += kAhead) {
    load(t, first, more);
    store(more, t, first, factor);
  }
}

// The result of a thread, which the first of a group have.
uint own_result() { return first_result() + gl_LocalInvocationIndex; }
bool finishes() { return gl_LocalInvocationIndex < kGroupResults && own_result() < kWidth; }
float own_bias() { return finishes() && uint64_t(p.bias) != 0 ? p.bias.at[own_result()] : 0; }

// By all threads, after a barrier behind make_all().
void finish(uint t, float bias) {
  if (finishes()) p.product.at[t * kWidth + own_result()] = sums_of_slices(gl_LocalInvocationIndex).x + bias;
  if (is_last_group(p.counters, t, gl_NumWorkGroups.y)) norm_row(t);
}

#endif
