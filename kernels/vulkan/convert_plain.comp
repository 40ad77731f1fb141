// convert_plain: float32 rows to the q8 form. Group (i, j) is 32 * GROUP values of row i, a thread a block of 32.
#include "kernels/vulkan/cache.h"
#include "kernels/abi/q8.h"

layout(push_constant, scalar) uniform Push { ConvertBlock p; };

void main() {
  const uint row = gl_WorkGroupID.x, block = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  StepState_address step = step_of(p.step);
  if (row >= live_rows(step, p.rows_of) || block >= p.depth / 32) return;
  float_address x = float_address(uint64_t(p.x) + (uint64_t(source_row(step, p.rows_of, row)) * p.depth + block * 32) * 4);
  const uint64_t y = uint64_t(p.y) + uint64_t(row) * q8_row_bytes(p.depth);
  float values[32];
  float most = 0;
  [[unroll]] for (uint i = 0; i < 32; ++i) {
    values[i] = x.at[i];
    most = max(most, abs(values[i]));
  }
  const vec2 scale = int8_scale(most);
  float_address(y + q8_scales_at(p.depth)).at[block] = scale.x;
  uint words[8];
  ivec2 sums = ivec2(0);
  [[unroll]] for (uint i = 0; i < 32; ++i) {
    precise const float scaled = values[i] * scale.y;
    const int q = round_even(scaled);
    sums[i / 16] += q;
    words[i / 4] = (i % 4 == 0 ? 0 : words[i / 4]) | uint(q & 0xff) << i % 4 * 8;
  }
  [[unroll]] for (uint i = 0; i < 8; ++i) uint_address(y).at[block * 8 + i] = words[i];
  [[unroll]] for (uint i = 0; i < 2; ++i)
    uint16_address(y + q8_sums_at(p.depth)).at[block * 2 + i] = uint16_t(sums[i]);
}
