// How a tile of y is multiplied without cooperative matrices, in float32. The threads of a group stand in a
// grid of kDown x kAcross, and each makes every kDown-th token and every kAcross-th row.
//
// The kernel defines TILE_BLOCK (tile.h), and store_y(), which is declared below, in tokens.h or slots.h.
#ifndef GRETA_VULKAN_GEMM_PLAIN_H
#define GRETA_VULKAN_GEMM_PLAIN_H
#include "kernels/vulkan/gemm/tile.h"

const uint kAcross = kThreads >= 256 ? 16 : 8;
const uint kDown = kThreads / kAcross;
const uint kTall = kTokens / kDown, kWide = kRows / kAcross;

float sums[kTall * kWide];

void store_y(uint token, uint row, float sum);  // tokens.h and slots.h define it

void multiply_step(uint buffer_index, uint column) {
  const uint x_at = buffer_index * kBufferSize + gl_LocalInvocationIndex / kAcross * kPitch;
  const uint w_at = buffer_index * kBufferSize + kWeightsAt + gl_LocalInvocationIndex % kAcross * kPitch;
  for (uint k = 0; k < kStep / 8; ++k) {
    uvec4 x[kTall];
    [[unroll]] for (uint i = 0; i < kTall; ++i) x[i] = tile[x_at + i * kDown * kPitch + k];
    [[unroll]] for (uint j = 0; j < kWide; ++j) {
      const uvec4 w = tile[w_at + j * kAcross * kPitch + k];
      [[unroll]] for (uint i = 0; i < kTall; ++i) {
        float sum = sums[i * kWide + j];
        [[unroll]] for (int pair = 0; pair < 4; ++pair) {
          const vec2 a = vec2(unpackFloat2x16(x[i][pair])), b = vec2(unpackFloat2x16(w[pair]));
          sum = fma(a.y, b.y, fma(a.x, b.x, sum));
        }
        sums[i * kWide + j] = sum;
      }
    }
  }
}

void clear_sums() {
  [[unroll]] for (uint i = 0; i < kTall * kWide; ++i) sums[i] = 0;
}

void store_sums() {
  [[unroll]] for (uint i = 0; i < kTall; ++i) {
    [[unroll]] for (uint j = 0; j < kWide; ++j)
      store_y(gl_LocalInvocationIndex / kAcross + i * kDown, gl_LocalInvocationIndex % kAcross + j * kAcross,
              sums[i * kWide + j]);
  }
}
#endif
