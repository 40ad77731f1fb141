// kv_write_plain: group (t, j) is GROUP values of token t; a thread writes one of them, in a q8_0 cache every 32nd
// thread a block of 32.
#include "kernels/vulkan/cache.h"

layout(push_constant, scalar) uniform Push { KvWriteBlock p; };

void write_block(uint x, uint64_t to) {
  float most = 0;
  [[unroll]] for (uint i = 0; i < 32; ++i) most = max(most, abs(p.x.at[x + i]));
  const vec2 scale = int8_scale(most);
  uint16_address(to).at[0] = uint16_t(f32_to_f16(scale.x));
  [[unroll]] for (uint i = 0; i < 32; i += 2) {
    const int low = round_even(p.x.at[x + i] * scale.y), high = round_even(p.x.at[x + i + 1] * scale.y);
    uint16_address(to).at[1 + i / 2] = uint16_t((low & 0xff) | (high & 0xff) << 8);
  }
}

void main() {
  const uint t = gl_WorkGroupID.x, i = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  StepState_address step = step_of(p.step);
  if (t >= live_rows(step, kRowsTokens) || i >= p.heads * p.head_width) return;
  const StepRow row = step.state.row[t];
  const uint h = i / p.head_width, k = i % p.head_width, x = t * p.heads * p.head_width + i;
  const uint slot = h * kPageTokens + row.position % kPageTokens;
  const uint64_t to = uint64_t(p.pool) + uint64_t(page_of(step, row.sequence, row.position)) * p.page_bytes +
                      slot * cache_head_bytes(p.cache_type, p.head_width);
  if (p.cache_type == kCacheF32) float_address(to).at[k] = p.x.at[x];
  else if (p.cache_type == kCacheF16) uint16_address(to).at[k] = uint16_t(f32_to_f16(p.x.at[x]));
  else if (k % 32 == 0) write_block(x, to + k / 32 * 34);
}
