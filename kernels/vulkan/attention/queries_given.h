// Queries, keys and values that earlier launches have made, for split.h: the argument block, its constants,
// and where queries lie. queries_made.h has the same names.
#ifndef GRETA_VULKAN_ATTENTION_QUERIES_GIVEN_H
#define GRETA_VULKAN_ATTENTION_QUERIES_GIVEN_H
#include "kernels/vulkan/attention/split_basics.h"

layout(push_constant, scalar) uniform Push { AttentionBlock p; };
layout(constant_id = 2) const uint kHeads = 1;
layout(constant_id = 3) const uint kKvHeads = 1;
layout(constant_id = 4) const uint kKeyWidth = 64;
layout(constant_id = 5) const uint kValueWidth = 64;
layout(constant_id = 6) const uint kKeyType = 1;
layout(constant_id = 7) const uint kValueType = 1;
layout(constant_id = 8) const uint kSoftcap = 0;  // its bits

const uint kHeadsPerKv = kHeads / kKvHeads;  // query heads that share a KV head

float sink_of(uint head) { return uint64_t(p.sinks) != 0 ? p.sinks.at[head] : kNone; }
uint value_stride() { return p.value_stride; }
vec4 query_at(uint t, uint head, uint i) {
  return vec4_address(p.q).at[(t * kHeads + head) * (kKeyWidth / 4) + i];
}

// Of lone rows: whether y is wanted in float16, and where.
bool stores_halves() { return uint64_t(p.halves) != 0; }
byte_address halves_at() { return p.halves; }

void make_heads(StepState_address step, uint t, StepRow row, uint kv_head, bool newest) {}
#endif
