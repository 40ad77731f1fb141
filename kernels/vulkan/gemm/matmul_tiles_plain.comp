// matmul_tiles_plain: y = W . x for many tokens on a device without cooperative matrices: weights decoded to
// float16 in shared memory, products and sums in float32. x is in the form f16.
//   grid   (tiles of tokens, tiles of rows)
//   group  a tile of y
#include "kernels/vulkan/gemm/tokens.h"
#include "kernels/vulkan/gemm/plain.h"

void main() {
  if (!begin_tile()) return;
  clear_sums();
  multiply_tile(0, p.depth);
  store_sums();
}
