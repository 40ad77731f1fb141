// matmul_tiles_cm1: y = W . x for many tokens with the cooperative matrices of subgroups (KHR), weights decoded to
// float16 on their way to shared memory, sums in float32. x is in the form f16.
//   grid   (tiles of tokens, tiles of rows)
//   group  a tile of y; its subgroups stand in a grid of kDown x kAcross, each with a part of the tile
#include "kernels/vulkan/gemm/tile.h"
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require

// The device's shape of float16 x float16 -> float32.
layout(constant_id = 100) const uint kM = 16;
layout(constant_id = 101) const uint kN = 16;
layout(constant_id = 102) const uint kK = 16;

const uint kSubgroups = kThreads / kLanes;
const uint kShape = kSubgroups * kRows / kTokens;
const uint kAcross = kShape >= 64 ? 8 : kShape >= 16 ? 4 : kShape >= 4 ? 2 : 1;
const uint kDown = kSubgroups / kAcross;
const uint kPartTokens = kTokens / kDown, kPartRows = kRows / kAcross;
const uint kTall = kPartTokens / kM, kWide = kPartRows / kN;

#define MatrixX coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define MatrixW coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define MatrixY coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

MatrixY sums[kTall * kWide];

void multiply_step(uint which, uint column) {
  const uint base = which * kBufferSize;
  const uint x_at = base + gl_SubgroupID / kAcross * kPartTokens * kPitch;
  const uint w_at = base + kWeightsAt + gl_SubgroupID % kAcross * kPartRows * kPitch;
  [[unroll]] for (uint k = 0; k < kStep; k += kK) {
    MatrixX x[kTall];
    MatrixW w;
    [[unroll]] for (uint i = 0; i < kTall; ++i)
      coopMatLoad(x[i], tile, x_at + i * kM * kPitch + k / 8, kPitch, gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint j = 0; j < kWide; ++j) {
      coopMatLoad(w, tile, w_at + j * kN * kPitch + k / 8, kPitch, gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (uint i = 0; i < kTall; ++i)
        sums[i * kWide + j] = coopMatMulAdd(x[i], w, sums[i * kWide + j]);
    }
  }
}

// A tile that lies inside of y, each row of it at a multiple of 16 bytes.
void store_whole(Place place) {
  const uint token = place.first_token + gl_SubgroupID / kAcross * kPartTokens;
  const uint row = place.first_row + gl_SubgroupID % kAcross * kPartRows;
  [[unroll]] for (uint i = 0; i < kTall; ++i) {
    [[unroll]] for (uint j = 0; j < kWide; ++j) {
      const uint at = (token + i * kM) * p.n + row + j * kN;
      MatrixY y = sums[i * kWide + j];
      if (uint64_t(p.residual) != 0) {
        MatrixY residual;
        coopMatLoad(residual, p.residual.at, at, p.n, gl_CooperativeMatrixLayoutRowMajor);
        y = residual + y;
      }
      coopMatStore(y, p.y.at, at, p.n, gl_CooperativeMatrixLayoutRowMajor);
    }
  }
}

// Through shared memory, value by value.
void store_clipped(Place place) {
  const uint words = kM * kN / 4;
  const uint own = gl_SubgroupID * words;
  [[unroll]] for (uint i = 0; i < kTall; ++i) {
    [[unroll]] for (uint j = 0; j < kWide; ++j) {
      barrier();
      coopMatStore(sums[i * kWide + j], tile, own, kN / 4, gl_CooperativeMatrixLayoutRowMajor);
      barrier();
      for (uint at = gl_SubgroupInvocationID; at < kM * kN; at += kLanes)
        store_y(place, gl_SubgroupID / kAcross * kPartTokens + i * kM + at / kN,
                gl_SubgroupID % kAcross * kPartRows + j * kN + at % kN,
                uintBitsToFloat(tile[own + at / 4][at % 4]));
    }
  }
}

void main() {
  Place place;
  if (!begin_tile(place)) return;
  [[unroll]] for (uint i = 0; i < kTall * kWide; ++i) sums[i] = MatrixY(0);
  multiply_tile();
  const bool whole = place.first_token + kTokens <= place.live && place.first_row + kRows <= p.n && p.n % 4 == 0;
  if (whole && uint64_t(p.bias) == 0)
    store_whole(place);
  else
    store_clipped(place);
}
