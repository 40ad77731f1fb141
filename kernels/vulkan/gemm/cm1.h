// How a tile of y is multiplied with the cooperative matrices of subgroups (KHR); the weights are the left
// matrix. The subgroups of a group stand in a grid of kDown x kAcross, and each makes kSubgroupTokens x
// kSubgroupRows of the tile.
//
// What counts on an H200, with the tile of 128 x 128: subgroups make 64 x 64, so that two groups of 128
// threads share a multiprocessor, and one multiplies while the other decodes. Sums stay in registers
// (store_clipped). 64 columns at a time in one buffer are faster than 32 columns in two buffers (229 and 195
// TFLOP/s). On RDNA, which was not measured, two buffers need 12 to 48 registers less.
//
// The kernel defines TILE_BLOCK (tile.h), and store_y(), which is declared below, in tokens.h or slots.h.
#ifndef GRETA_VULKAN_GEMM_CM1_H
#define GRETA_VULKAN_GEMM_CM1_H
#include "kernels/vulkan/gemm/tile.h"
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require

// The device's matrix shape for float16 x float16 -> float32.
layout(constant_id = 100) const uint kM = 16;
layout(constant_id = 101) const uint kN = 16;
layout(constant_id = 102) const uint kK = 16;

const uint kSubgroups = kThreads / kLanes;
const uint kAspect = kSubgroups * kRows / kTokens;
const uint kWantedAcross = kAspect >= 32 ? 8 : kAspect >= 8 ? 4 : kAspect >= 2 ? 2 : 1;  // subgroups across
// Each subgroup has at least one matrix of rows and one of tokens.
const uint kMostAcross = kSubgroups < kRows / kM ? kSubgroups : kRows / kM;
const uint kLeastAcross = kSubgroups * kN / kTokens;
const uint kAcross =
    kWantedAcross < kLeastAcross ? kLeastAcross : kWantedAcross > kMostAcross ? kMostAcross : kWantedAcross;
const uint kDown = kSubgroups / kAcross;
const uint kSubgroupTokens = kTokens / kDown, kSubgroupRows = kRows / kAcross;
const uint kTall = kSubgroupRows / kM, kWide = kSubgroupTokens / kN;

#define MatrixW coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define MatrixX coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define MatrixY coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

MatrixY sums[kTall * kWide];

void store_y(uint token, uint row, float sum);  // tokens.h and slots.h define it

void multiply_step(uint buffer_index, uint column) {
  const uint base = buffer_index * kBufferSize;
  const uint x_at = base + gl_SubgroupID / kAcross * kSubgroupTokens * kPitch;
  const uint w_at = base + kWeightsAt + gl_SubgroupID % kAcross * kSubgroupRows * kPitch;
  [[unroll]] for (uint k = 0; k < kStep; k += kK) {
    MatrixW w[kTall];
    MatrixX x;
    [[unroll]] for (uint i = 0; i < kTall; ++i)
      coopMatLoad(w[i], tile, w_at + i * kM * kPitch + k / 8, kPitch, gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint j = 0; j < kWide; ++j) {
      coopMatLoad(x, tile, x_at + j * kN * kPitch + k / 8, kPitch, gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (uint i = 0; i < kTall; ++i)
        sums[i * kWide + j] = coopMatMulAdd(w[i], x, sums[i * kWide + j]);
    }
  }
}

void clear_sums() {
  [[unroll]] for (uint i = 0; i < kTall * kWide; ++i) sums[i] = MatrixY(0);
}

// Stores the tile through shared memory, value by value. It always stores sums[0], to which the others move
// down: with an index that is no constant NVIDIA's driver would keep all sums in memory, in the products too
// (34 TFLOP/s instead of 101).
void store_clipped() {
  const uint own_matrix = gl_SubgroupID * (kM * kN / 4);
  const uint token = gl_SubgroupID / kAcross * kSubgroupTokens, row = gl_SubgroupID % kAcross * kSubgroupRows;
  barrier();  // all subgroups have multiplied what is replaced now
  for (uint matrix = 0; matrix < kTall * kWide; ++matrix) {
    coopMatStore(sums[0], tile, own_matrix, kM / 4, gl_CooperativeMatrixLayoutColumnMajor);
    subgroupBarrier();
    for (uint at = gl_SubgroupInvocationID; at < kM * kN; at += kLanes)
      store_y(token + matrix % kWide * kN + at / kM, row + matrix / kWide * kM + at % kM,
              uintBitsToFloat(tile[own_matrix + at / 4][at % 4]));
    subgroupBarrier();
    [[unroll]] for (uint i = 1; i < kTall * kWide; ++i) sums[i - 1] = sums[i];
  }
}
#endif
