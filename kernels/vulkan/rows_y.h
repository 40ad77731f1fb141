// What a decode kernel does with a pair of sums: bias, rotation, cache, residual, gate. Reads the block `p`.
//
// A pair is rows 2 i and 2 i + 1 of y, but row i of the gate and of the up where there is one, and the two values
// that are rotated together where heads are rotated by halves.
#ifndef GRETA_VULKAN_ROWS_Y_H
#define GRETA_VULKAN_ROWS_Y_H
#include "kernels/vulkan/activation.h"

uint pair_count() { return uint64_t(p.weight2) != 0 ? p.n : (p.n + 1) / 2; }

// The rows of y that pair `pair` makes; the second may be one too many.
uvec2 rows_of_pair(uint pair) {
  if (uint64_t(p.rope) == 0 || p.rope_halves == 0) return uvec2(2 * pair, 2 * pair + 1);
  const uint in_head = pair % (p.head_width / 2), first = pair / (p.head_width / 2) * p.head_width;
  const uint half_width = p.rope_width / 2;
  return in_head < half_width ? uvec2(first + in_head, first + in_head + half_width)
                              : uvec2(first + 2 * in_head, first + 2 * in_head + 1);
}

void weight_rows(uint pair, uint64_t row_bytes, out uint64_t row0, out uint64_t row1) {
  if (uint64_t(p.weight2) != 0) {
    row0 = uint64_t(p.weight) + pair * row_bytes;
    row1 = uint64_t(p.weight2) + pair * row_bytes;
    return;
  }
  const uvec2 rows = rows_of_pair(pair);
  row0 = uint64_t(p.weight) + rows.x * row_bytes;
  row1 = uint64_t(p.weight) + min(rows.y, p.n - 1) * row_bytes;
}

// Value `row` of the token's key or value into its page; the cache holds f32 or f16.
void store_in_page(uint token, uint row, float value) {
  const StepRow at_row = step_of(p.step).state.row[token];
  const uint position = at_row.position;
  const uint64_t page = uint64_t(p.pool) + uint64_t(page_of(step_of(p.step), at_row.sequence, position)) * p.page_bytes;
  const uint64_t at = (uint64_t(row / p.head_width) * kPageTokens + position % kPageTokens) * p.head_width + row % p.head_width;
  if (p.cache_type == 0) float_address(page).at[uint(at)] = value;
  else float16_address(page).at[uint(at)] = float16_t(value);
}

void finish_pair(uint token, uint pair, float y0, float y1) {
  if (uint64_t(p.weight2) != 0) {
    p.y.at[token * p.n + pair] = gated(p.activation, y0, y1);
    return;
  }
  const uvec2 rows = rows_of_pair(pair);
  const bool both = rows.y < p.n;
  if (uint64_t(p.bias) != 0) {
    y0 += p.bias.at[rows.x];
    if (both) y1 += p.bias.at[rows.y];
  }
  if (uint64_t(p.rope) != 0) {
    const uint i = pair % (p.head_width / 2);
    if (i < p.rope_width / 2) {
      const uint at = (step_of(p.step).state.row[token].position * (p.rope_width / 2) + i) * 2;
      const float cosine = p.rope.at[at], sine = p.rope.at[at + 1], turned = y0 * cosine - y1 * sine;
      y1 = y0 * sine + y1 * cosine;
      y0 = turned;
    }
  }
  if (uint64_t(p.pool) != 0) {
    store_in_page(token, rows.x, y0);
    store_in_page(token, rows.y, y1);
    return;
  }
  const uint at = token * p.n;
  if (uint64_t(p.residual) != 0) {
    y0 += p.residual.at[at + rows.x];
    if (both) y1 += p.residual.at[at + rows.y];
  }
  p.y.at[at + rows.x] = y0;
  if (both) p.y.at[at + rows.y] = y1;
}

#endif
