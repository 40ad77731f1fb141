// matmul_tiles_plain: y = W . x for many tokens on a device without cooperative matrices: weights decoded to
// float16 in shared memory, products and sums in float32. x is in the form f16.
//   grid   (tiles of tokens, tiles of rows)
//   group  a tile of y; its threads stand in a grid of kDown x kAcross, each with every kDown-th token and every
//          kAcross-th row
#include "kernels/vulkan/gemm/tile.h"

const uint kAcross = kThreads >= 256 ? 16 : 8;
const uint kDown = kThreads / kAcross;
const uint kTall = kTokens / kDown, kWide = kRows / kAcross;

float sums[kTall * kWide];

void multiply_step(uint which, uint column) {
  const uint x_at = which * kBufferSize + gl_LocalInvocationIndex / kAcross * kPitch;
  const uint w_at = which * kBufferSize + kWeightsAt + gl_LocalInvocationIndex % kAcross * kPitch;
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

void main() {
  Place place;
  if (!begin_tile(place)) return;
  [[unroll]] for (uint i = 0; i < kTall * kWide; ++i) sums[i] = 0;
  multiply_tile();
  [[unroll]] for (uint i = 0; i < kTall; ++i) {
    [[unroll]] for (uint j = 0; j < kWide; ++j)
      store_y(place, gl_LocalInvocationIndex / kAcross + i * kDown, gl_LocalInvocationIndex % kAcross + j * kAcross,
              sums[i * kWide + j]);
  }
}
