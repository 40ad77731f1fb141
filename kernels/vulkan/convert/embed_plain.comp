// embed_plain: y[t][k] = scale * weight[token of t][k], and the token log
//   weight [vocab][width] of any type, y float32
//   grid    (tokens)
//   group   GROUP threads; each takes units of 32 weights
//   shared  the tables of quant/<type>.h
//   moves   a row of the weight and y for each token; 1.75 bytes more a value where y is rounded to q8x16 too
// The argument block is EmbedBlock in kernels/abi/ops.h.
#include "kernels/vulkan/step.h"
#include "kernels/gpu/q8x16.h"

layout(push_constant, scalar) uniform Push { EmbedBlock p; };

// Rounds a unit of y, which is two groups of 16 values.
void round_unit(uint t, uint unit, float y[kUnit]) {
  [[unroll]] for (uint first = 0; first < kUnit; first += 16) {
    float values[16], squares = 0;
    [[unroll]] for (uint i = 0; i < 16; ++i) {
      values[i] = y[first + i];
      squares = fma(values[i], values[i], squares);
      if (uint64_t(p.next_gain) != 0) values[i] *= p.next_gain.at[unit * kUnit + first + i];
    }
    store_q8x16(uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(p.width), p.width,
                (unit * kUnit + first) / 16, values, squares);
  }
}

void main() {
  quant_begin();
  StepState_address step = step_of(p.step);
  const uint t = gl_WorkGroupID.x;
  if (t >= live_rows(step, kRowsTokens)) return;
  const StepRow row = step.state.row[t];
  uint token = row.token == kTokenFromSample ? step.state.last_token[row.sequence] : row.token;
  if (token >= p.vocab) token = 0;  // never read past the table
  if (token - p.first >= p.rows) return;
  const uint64_t weight = uint64_t(p.weight) + (token - p.first) * quant_row_bytes(p.width);
  for (uint k = gl_LocalInvocationIndex * kUnit; k < p.width; k += gl_WorkGroupSize.x * kUnit) {
    float w[kUnit];
    quant_decode(weight, p.width, k / kUnit, w);
    [[unroll]] for (uint i = 0; i < kUnit; ++i) w[i] *= p.scale;
    for (uint i = 0; i < kUnit && k + i < p.width; ++i) p.y.at[t * p.width + k + i] = w[i];
    if (uint64_t(p.rounded) != 0) round_unit(t, k / kUnit, w);
  }
  if (gl_LocalInvocationIndex != 0 || uint64_t(p.token_log) == 0) return;
  const uint page = page_of(step, row.sequence, row.position);
  p.token_log.at[page * kPageTokens + row.position % kPageTokens] = token;
}
