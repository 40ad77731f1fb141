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

// The norm takes fours of values: each thread every kThreads-th four. Only the last group runs this code, so
// most instruction caches probably do not have it when it runs. Short code gained more than loads that are
// under way together (docs/experiments/families.md): no loop is unrolled but that of the first reads.
const uint kFours = kWidth / 4, kThreadFours = (kFours + kThreads - 1) / kThreads;
const uint kEarlyFours = kThreadFours < 4 ? kThreadFours : 1;

float factor_of_y = 1;
void load_factor() {
  if (uint64_t(residual_factor) != 0) factor_of_y = residual_factor.at[0];
}

vec4 four(float_address values, uint at) { return vec4_address(uint64_t(values)).at[at]; }

// The index in the row of the thread's i-th four.
uint four_of_thread(uint i) { return gl_SubgroupID * kLanes + gl_SubgroupInvocationID + i * kThreads; }

void store(vec4 x, uint t, uint at, float factor) {
  const vec4 residual = four(p.residual, t * kFours + at), norm_gain = four(p.norm_gain, at);
  const vec4 gain = uint64_t(p.gain) != 0 ? four(p.gain, at) : vec4(1);
  const vec4 y = factor_of_y * (residual + p.scale * (x * factor * norm_gain));
  vec4_address(uint64_t(p.y)).at[t * kFours + at] = y;
  if (uint64_t(p.rounded) != 0) {
    const uint64_t row = uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(kWidth);
    store_q8x16(row, kWidth, at, y * gain, dot(y, y));
  }
}

// Normalises and stores token t. All threads of the last group call it.
void norm_row(uint t) {
  float sum = 0;
  [[unroll]] for (uint i = 0; i < kEarlyFours; ++i) {
    const uint at = four_of_thread(i);
    const vec4 x = four(p.product, t * kFours + min(at, kFours - 1));
    sum += at < kFours ? dot(x, x) : 0;
  }
  [[dont_unroll]] for (uint at = four_of_thread(kEarlyFours); at < kFours; at += kThreads) {
    const vec4 more = four(p.product, t * kFours + at);
    sum += dot(more, more);
  }
  if (kTokens > 1) barrier();  // all threads have the factor of the token before
  publish_squares(sum, gl_SubgroupID);
  barrier();
  const float factor = norm_factor(0, kSubgroups, kWidth, p.epsilon);
  [[dont_unroll]] for (uint at = four_of_thread(0); at < kFours; at += kThreads)
    store(four(p.product, t * kFours + at), t, at, factor);
}

// Thread i of the first kGroupResults * kTokens of a group finishes a result of a token.
uint own_token() { return kTokens == 1 ? 0 : gl_LocalInvocationIndex / kGroupResults; }
uint result_of_thread() { return first_result() + gl_LocalInvocationIndex - own_token() * kGroupResults; }
bool finishes() { return gl_LocalInvocationIndex < kGroupResults * kTokens && result_of_thread() < kWidth; }
float bias_of_thread() { return finishes() && uint64_t(p.bias) != 0 ? p.bias.at[result_of_thread()] : 0; }

// Leaves the group's results of tokens first .. first + kTokens - 1, of which those before `live` live. The
// last group of these tokens takes their norms. All threads call it, after a barrier behind make_sums().
// Returns how many groups have ended with it: none, or all of these tokens.
uint finish(uint first, uint live, float bias) {
  const uint t = first + own_token();
  if (finishes() && t < live)
    p.product.at[t * kWidth + result_of_thread()] = sums_of_result(gl_LocalInvocationIndex).x + bias;
  if (!is_last_group(p.counters, first / kTokens, gl_NumWorkGroups.y)) return 0;
  [[dont_unroll]] for (uint of_group = 0; of_group < kTokens && first + of_group < live; ++of_group)
    norm_row(first + of_group);
  return gl_NumWorkGroups.y;
}

#endif
