// products_cm1: y[i] = the sum over m, n and k of w[m][k] * x[n][k], p.steps times, modulo 2^32
//   w, x float16
//   grid    (groups)
//   group   kThreads threads. They multiply with the cooperative matrices of subgroups (KHR), as
//           matmul_tiles_cm1 does; operands and sums stay in registers. The subgroups share the repetitions
//   shared  GROUP * 2 bytes for sums
//   moves   next to nothing: it measures arithmetic
// The argument block is ProductsBlock in kernels/abi/ops.h.
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#include "kernels/vulkan/device.h"
#include "kernels/abi/ops.h"
#include "kernels/vulkan/reduce.h"

layout(constant_id = 0) const uint kThreads = 128;
// The device's matrix shape for float16 x float16 -> float32.
layout(constant_id = 100) const uint kM = 16;
layout(constant_id = 101) const uint kN = 16;
layout(constant_id = 102) const uint kK = 16;
GRETA_ABI_BUFFER(uvec4, uvec4, 16)
layout(push_constant, scalar) uniform Push { ProductsBlock p; };

const uint kRows = 32, kTokens = 32;  // TILE of the kernel in CMakeLists.txt
const uint kTall = kRows / kM, kWide = kTokens / kN, kDeep = kProductsDepth / kK;
const uint kPitch = kProductsDepth / 8;  // words of 8 values

#define MatrixW coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define MatrixX coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define MatrixY coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

void main() {
  uvec4_address operands = uvec4_address(uint64_t(p.operands));
  MatrixW w[kTall * kDeep];
  MatrixX x[kWide * kDeep];
  MatrixY sums[kTall * kWide];
  [[unroll]] for (uint i = 0; i < kTall * kDeep; ++i)
    coopMatLoad(w[i], operands.at, i / kDeep * kM * kPitch + i % kDeep * (kK / 8), kPitch,
                gl_CooperativeMatrixLayoutRowMajor);
  [[unroll]] for (uint i = 0; i < kWide * kDeep; ++i)
    coopMatLoad(x[i], operands.at, (kRows + i / kDeep * kN) * kPitch + i % kDeep * (kK / 8), kPitch,
                gl_CooperativeMatrixLayoutColumnMajor);
  [[unroll]] for (uint i = 0; i < kTall * kWide; ++i) sums[i] = MatrixY(0);
  [[dont_unroll]] for (uint repetition = gl_SubgroupID; repetition < p.steps; repetition += kThreads / kLanes)
    [[unroll]] for (uint k = 0; k < kDeep; ++k)
      [[unroll]] for (uint i = 0; i < kTall * kWide; ++i)
        sums[i] = coopMatMulAdd(w[i / kWide * kDeep + k], x[i % kWide * kDeep + k], sums[i]);
  [[unroll]] for (uint i = 1; i < kTall * kWide; ++i) sums[0] = sums[0] + sums[i];
  uint sum = 0;
  [[unroll]] for (uint i = 0; i < sums[0].length(); ++i) sum += uint(sums[0][i]);
  const uint64_t all = group_sum(uint64_t(sum));
  if (gl_LocalInvocationIndex == 0) p.y.at[gl_WorkGroupID.x] = uint(all);
}
