// The tiles of a GEMM of neighbouring tokens: group (i, j) makes tokens i * kTokens .. and rows j * kRows ..
// of y.
//
// The kernel defines TILE_BLOCK as MatmulTileBlock (tile.h).
#ifndef GRETA_VULKAN_GEMM_TOKENS_H
#define GRETA_VULKAN_GEMM_TOKENS_H
#include "kernels/vulkan/gemm/tile.h"

uint first_token, first_row, live;

uint x_row(uint token) { return min(first_token + token, live - 1) * (p.depth / 8); }

// Returns false where no token of the tile lives.
bool begin_tile() {
  first_token = gl_WorkGroupID.x * kTokens;
  first_row = gl_WorkGroupID.y * kRows;
  live = live_rows(step_of(p.step), p.rows_of);
  if (first_token >= live) return false;
  quant_begin();
  begin_weights(uint64_t(p.weight), first_row);
  begin_x();
  return true;
}

// Stores y of one token and row of the tile, after bias and residual.
void store_y(uint token, uint row, float sum) {
  const uint t = first_token + token, n = first_row + row;
  if (t >= live || n >= p.n) return;
  const uint64_t at = uint64_t(t) * p.n + n;
  if (uint64_t(p.bias) != 0) sum += p.bias.at[n];
  if (uint64_t(p.residual) != 0) sum = p.residual.at[uint(at)] + sum;
  p.y.at[uint(at)] = sum;
}
#endif
