// embed_plain: y[t][k] = scale * weight[token of t][k], and the token log
//   weight [vocab][width] of any type, y float32
//   grid    (tokens)
//   group   one token
//   scratch none
//   moves   a row of the weight and y for each token
// The argument block is EmbedBlock in kernels/abi/ops.h.
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

namespace {

using Weight = WEIGHT;

void embed(const EmbedBlock& b, const StepState* step, uint32_t t) {
  const StepRow& row = step->row[t];
  uint32_t token = row.token == kTokenFromSample ? step->last_token[row.sequence] : row.token;
  if (token >= b.vocab) token = 0;  // never read past the table
  if (token - b.first >= b.rows) return;
  float* y = (float*)b.y + uint64_t(t) * b.width;
  decode_columns<Weight>((const uint8_t*)b.weight, token - b.first, b.width, 0, b.width, y);
  for (uint32_t k = 0; k < b.width; ++k) y[k] *= b.scale;
  if (!b.token_log) return;
  const uint64_t page = page_of(step, row.sequence, row.position);
  ((uint32_t*)b.token_log)[page * kPageTokens + row.position % kPageTokens] = token;
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const EmbedBlock& b = *(const EmbedBlock*)block;
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, kRowsTokens);
  for (uint32_t t = first_group; t < first_group + group_count && t < live; ++t) embed(b, step, t);
}
