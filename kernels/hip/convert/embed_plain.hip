// embed_plain: y[t][k] = scale * weight[token of t][k], and the token log
//   weight [vocab][width] of any type, y float32
//   grid    (tokens)
//   group   GROUP threads; each takes units of 32 weights
//   shared  the tables of quant/<type>.h
//   moves   a row of the weight and y for each token; 1.75 bytes more a value where y is rounded to q8x16 too
// The argument block is EmbedBlock in kernels/abi/ops.h.
#include "kernels/hip/glsl.h"
#include "kernels/hip/step.h"
GLSL_BEGIN
#include "kernels/gpu/q8x16.h"
GLSL_END

// Rounds a unit of y, which is two groups of 16 values.
DEVICE void round_unit(const EmbedBlock& p, uint t, uint unit, const float* y) {
  for (uint first = 0; first < kUnit; first += 16) {
    float values[16], squares = 0;
    for (uint i = 0; i < 16; ++i) {
      values[i] = y[first + i];
      squares = __builtin_fmaf(values[i], values[i], squares);
      if (p.next_gain) values[i] *= p.next_gain[unit * kUnit + first + i];
    }
    store_q8x16(uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(p.width), p.width,
                (unit * kUnit + first) / 16, values, squares);
  }
}

KERNEL(GROUP) void KERNEL_NAME(EmbedBlock p) {
  quant_begin();
  const Step step = step_of(p.step);
  const uint t = group_x();
  if (t >= live_rows(step, kRowsTokens)) return;
  const uint sequence = step->row[t].sequence, position = step->row[t].position;
  uint token = step->row[t].token;
  if (token == kTokenFromSample) token = step->last_token[sequence];
  if (token >= p.vocab) token = 0;  // never read past the table
  if (token - p.first >= p.rows) return;
  const uint64_t weight = uint64_t(p.weight) + (token - p.first) * quant_row_bytes(p.width);
  for (uint k = thread_x() * kUnit; k < p.width; k += GROUP * kUnit) {
    float w[kUnit];
    quant_decode(weight, p.width, k / kUnit, w);
    for (uint i = 0; i < kUnit; ++i) w[i] *= p.scale;
    for (uint i = 0; i < kUnit; ++i)
      if (kWholeUnits || k + i < p.width) p.y[t * p.width + k + i] = w[i];
    if (p.rounded) round_unit(p, t, k / kUnit, w);
  }
  if (thread_x() != 0 || !p.token_log) return;
  const uint page = page_of(step, sequence, position);
  p.token_log[page * kPageTokens + position % kPageTokens] = token;
}
