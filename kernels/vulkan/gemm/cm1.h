// Tiles on the cooperative matrices of subgroups (KHR), weights as the left matrix. The subgroups of a group stand in a
// grid of kDown x kAcross, each with a part of the tile. Included after gemm/tokens.h or gemm/slots.h.
// What counts on an H200, with the tile of 128 x 128: parts of 64 x 64, so two groups of 128 threads on a unit, of which
// one multiplies while the other decodes; sums in registers (see store_clipped); then 64 columns a step are faster than
// two buffers of 32 (229 and 195 TFLOP/s). On RDNA, not measured, two buffers need 12 to 48 registers less.
#ifndef GRETA_VULKAN_GEMM_CM1_H
#define GRETA_VULKAN_GEMM_CM1_H
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
const uint kWanted = kShape >= 32 ? 8 : kShape >= 8 ? 4 : kShape >= 2 ? 2 : 1;  // parts no taller than wide
// At least a matrix of rows and of tokens for each.
const uint kMostAcross = kSubgroups < kRows / kM ? kSubgroups : kRows / kM;
const uint kLeastAcross = kSubgroups * kN / kTokens;
const uint kAcross = kWanted < kLeastAcross ? kLeastAcross : kWanted > kMostAcross ? kMostAcross : kWanted;
const uint kDown = kSubgroups / kAcross;
const uint kPartTokens = kTokens / kDown, kPartRows = kRows / kAcross;
const uint kTall = kPartRows / kM, kWide = kPartTokens / kN;

#define MatrixW coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define MatrixX coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define MatrixY coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

MatrixY sums[kTall * kWide];

void multiply_step(uint which, uint column) {
  const uint base = which * kBufferSize;
  const uint x_at = base + gl_SubgroupID / kAcross * kPartTokens * kPitch;
  const uint w_at = base + kWeightsAt + gl_SubgroupID % kAcross * kPartRows * kPitch;
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

// Through shared memory, value by value. Always sums[0], to which the others move down: where the index is no constant
// NVIDIA's driver keeps all sums in memory, in the products too (34 TFLOP/s instead of 101).
void store_clipped() {
  const uint own = gl_SubgroupID * (kM * kN / 4);
  const uint token = gl_SubgroupID / kAcross * kPartTokens, row = gl_SubgroupID % kAcross * kPartRows;
  barrier();  // all have multiplied what is replaced now
  for (uint part = 0; part < kTall * kWide; ++part) {
    coopMatStore(sums[0], tile, own, kM / 4, gl_CooperativeMatrixLayoutColumnMajor);
    subgroupBarrier();
    for (uint at = gl_SubgroupInvocationID; at < kM * kN; at += kLanes)
      store_y(token + part % kWide * kN + at / kM, row + part / kWide * kM + at % kM,
              uintBitsToFloat(tile[own + at / 4][at % 4]));
    subgroupBarrier();
    [[unroll]] for (uint i = 1; i < kTall * kWide; ++i) sums[i - 1] = sums[i];
  }
}
#endif
