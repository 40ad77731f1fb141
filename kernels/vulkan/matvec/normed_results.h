// What matmul_rows_normed and matmul_rows_float_normed make of the sums: y[t] = residual[t] + scale *
// norm(sums + bias). Each group leaves its results in p.product. The last group of a token normalises them
// all, which is shorter than a launch of its own.
//
// Before it includes this file the kernel declares its argument block, a MatmulNormBlock `p` and the address
// residual_factor behind it, and the build includes quant/<type>.h and dot/<type>.h. The kernel defines
// kTokens.
#ifndef GRETA_VULKAN_MATVEC_NORMED_RESULTS_H
#define GRETA_VULKAN_MATVEC_NORMED_RESULTS_H
#include "kernels/vulkan/group_ticket.h"
#include "kernels/gpu/q8x16.h"

layout(constant_id = 3) const uint kWidth = 256;  // results of a token, values that the norm takes together

const uint kSums = 1;  // sums of a result

#include "kernels/vulkan/matvec/group.h"  // needs kSums

uint first_result() { return gl_WorkGroupID.y * kGroupResults; }
uint result_count() { return kWidth; }
uint64_t weights_of(uint result, bool) { return uint64_t(p.weight) + result * quant_row_bytes(kDepth); }

// The norm takes fours of values: each thread every kThreads-th four, kFours / kThreads in all, and
// kFoursAtOnce of them at a time, so that their loads are under way together. It takes all at once, unless
// they would need more registers than the products.
const uint kFours = kWidth / 4, kThreadFours = (kFours + kThreads - 1) / kThreads;
const uint kFoursAtOnce = kThreadFours < 4 ? kThreadFours : 2;
struct Fours {
  vec4 x[kFoursAtOnce], residual[kFoursAtOnce], norm_gain[kFoursAtOnce], gain[kFoursAtOnce];
};

float factor_of_y = 1;
void load_factor() {
  if (uint64_t(residual_factor) != 0) factor_of_y = residual_factor.at[0];
}

vec4 four(float_address values, uint at) { return vec4_address(uint64_t(values)).at[at]; }

// The index in the row of the thread's i-th four.
uint four_of_thread(uint i) { return gl_SubgroupID * kLanes + gl_SubgroupInvocationID + i * kThreads; }

void load(uint t, uint first, out Fours f) {
  [[unroll]] for (uint i = 0; i < kFoursAtOnce; ++i) {
    const uint at = min(four_of_thread(first + i), kFours - 1);
    f.x[i] = four(p.product, t * kFours + at);
    f.residual[i] = four(p.residual, t * kFours + at);
    f.norm_gain[i] = four(p.norm_gain, at);
    f.gain[i] = uint64_t(p.gain) != 0 ? four(p.gain, at) : vec4(1);
  }
  if (kLoadsEarly) subgroupMemoryBarrierBuffer();  // no load sinks below it
}

float squares_of(Fours f, uint first) {
  float sum = 0;
  [[unroll]] for (uint i = 0; i < kFoursAtOnce; ++i)
    if (four_of_thread(first + i) < kFours) sum += dot(f.x[i], f.x[i]);
  return sum;
}

void store(Fours f, uint t, uint first, float factor) {
  [[unroll]] for (uint i = 0; i < kFoursAtOnce; ++i) {
    const uint at = four_of_thread(first + i);
    if (at >= kFours) break;
    const vec4 y = factor_of_y * (f.residual[i] + p.scale * (f.x[i] * factor * f.norm_gain[i]));
    vec4_address(uint64_t(p.y)).at[t * kFours + at] = y;
    if (uint64_t(p.rounded) != 0) {
      const uint64_t row = uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(kWidth);
      store_q8x16(row, kWidth, at, y * f.gain[i], dot(y, y));
    }
  }
}

// Normalises and stores token t. All threads of the last group call it.
void norm_row(uint t) {
  Fours f, more;
  load(t, 0, f);
  float sum = squares_of(f, 0);
  [[dont_unroll]] for (uint first = kFoursAtOnce; first < kThreadFours; first += kFoursAtOnce) {
    load(t, first, more);
    sum += squares_of(more, first);
  }
  if (kTokens > 1) barrier();  // all threads have the factor of the token before
  publish_squares(sum, gl_SubgroupID);
  barrier();
  const float factor = norm_factor(0, kSubgroups, kWidth, p.epsilon);
  store(f, t, 0, factor);
  [[dont_unroll]] for (uint first = kFoursAtOnce; first < kThreadFours; first += kFoursAtOnce) {
    load(t, first, more);
    store(more, t, first, factor);
  }
}

// Thread i of the first kGroupResults * kTokens of a group finishes a result of a token.
uint own_token() { return kTokens == 1 ? 0 : gl_LocalInvocationIndex / kGroupResults; }
uint result_of_thread() { return first_result() + gl_LocalInvocationIndex - own_token() * kGroupResults; }
bool finishes() { return gl_LocalInvocationIndex < kGroupResults * kTokens && result_of_thread() < kWidth; }
float bias_of_thread() { return finishes() && uint64_t(p.bias) != 0 ? p.bias.at[result_of_thread()] : 0; }

// Leaves the group's results of tokens first .. first + kTokens - 1, of which those before `live` live. The
// last group of these tokens takes their norms. All threads call it, after a barrier behind make_sums().
void finish(uint first, uint live, float bias) {
  const uint t = first + own_token();
  if (finishes() && t < live)
    p.product.at[t * kWidth + result_of_thread()] = sums_of_result(gl_LocalInvocationIndex).x + bias;
  if (!is_last_group(p.counters, first / kTokens, gl_NumWorkGroups.y)) return;
  [[dont_unroll]] for (uint of_group = 0; of_group < kTokens && first + of_group < live; ++of_group)
    norm_row(first + of_group);
}

#endif
