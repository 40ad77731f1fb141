// matmul_expert_rows_avx2: the product with experts, of any number of tokens.
//   y[slot][n] = sum over k of W[expert][n][k] * x[slot][k] + bias[expert][n]
//     where x float32; a slot is an expert of a token
//   grid    (n / TILE, slots of all tokens)
//   group   TILE rows of y of one slot; a worker takes slots of the same expert together (simd/expert_rows.h)
//   scratch x of the slots that are taken together, rounded to the format in which the type multiplies
//   moves   an expert's weights once for the slots that are taken together; x; y
// The argument block is MatmulExpertBlock in kernels/abi/ops.h.
#include "kernels/cpu/simd/avx2/type.h"
#include "kernels/cpu/simd/expert_rows.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  matmul_expert_rows<Rows, WEIGHT>(*(const MatmulExpertBlock*)block, first_group, group_count, scratch);
}
