// matmul_tiles_cm2: y = W . x for many tokens with the matrices of whole groups (NV_cooperative_matrix2). Weights are
// decoded to float16 in shared memory; x, in the form f16, bias, residual and y are tensors in memory whose bounds
// the hardware keeps.
//   grid   (tiles of tokens, tiles of rows)
//   group  a tile of y
#define ONLY_WEIGHTS
#define STEP 64
#define BUFFERS 1
#include "kernels/vulkan/gemm/tile.h"
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_NV_cooperative_matrix2 : require
GRETA_ABI_BUFFER(float16, float16_t, 16)

#define MatrixW coopmat<float16_t, gl_ScopeWorkgroup, kRows, kStep, gl_MatrixUseA>
#define MatrixX coopmat<float16_t, gl_ScopeWorkgroup, kStep, kTokens, gl_MatrixUseB>
#define MatrixY coopmat<float, gl_ScopeWorkgroup, kRows, kTokens, gl_MatrixUseAccumulator>
#define Tensor tensorLayoutNV<2, gl_CooperativeMatrixClampModeConstantNV>
#define TURNED createTensorViewNV(2, false, 1, 0)  // tokens are rows in memory and columns here

MatrixY sums;
Tensor x_layout;
uint first_token;

Tensor layout_of(uint rows, uint columns, uint stride) {
  Tensor tensor = createTensorLayoutNV(2, gl_CooperativeMatrixClampModeConstantNV);
  tensor = setTensorLayoutDimensionNV(tensor, rows, columns);
  return setTensorLayoutStrideNV(tensor, stride, 1);
}

Tensor part_of(Tensor y, Place place) {
  return sliceTensorLayoutNV(y, place.first_token, kTokens, place.first_row, kRows);
}

void multiply_step(uint which, uint column) {
  MatrixX x;
  MatrixW w;
  coopMatLoadTensorNV(x, float16_address(uint64_t(p.x)).at, 0,
                      sliceTensorLayoutNV(x_layout, first_token, kTokens, column, kStep), TURNED);
  coopMatLoad(w, tile, which * kBufferSize, kPitch, gl_CooperativeMatrixLayoutRowMajor);
  sums = coopMatMulAdd(w, x, sums);
}

void main() {
  Place place;
  if (!begin_tile(place)) return;
  first_token = place.first_token;
  x_layout = layout_of(place.live, p.depth, p.depth);
  sums = MatrixY(0);
  multiply_tile();
  const Tensor y = part_of(layout_of(place.live, p.n, p.n), place);
  if (uint64_t(p.bias) != 0) {
    MatrixY bias;
    coopMatLoadTensorNV(bias, p.bias.at, 0, part_of(layout_of(place.live, p.n, 0), place), TURNED);
    sums = sums + bias;
  }
  if (uint64_t(p.residual) != 0) {
    MatrixY residual;
    coopMatLoadTensorNV(residual, p.residual.at, 0, y, TURNED);
    sums = residual + sums;
  }
  coopMatStoreTensorNV(sums, p.y.at, 0, y, TURNED);
}
