// matmul_expert for many tokens on a device without cooperative matrices: tiles of the slots that chose an expert, as
// in matmul_tiles_plain. x is in the form f16.
//   grid   (tiles of slots, tiles of rows of all experts)
//   group  a tile of y, and then others of the same expert and rows (gemm/slots.h)
#include "kernels/vulkan/gemm/slots.h"
#include "kernels/vulkan/gemm/plain.h"

void main() {
  if (!begin_expert()) return;
  quant_begin();
  for (; first_slot < slot_count; first_slot += gl_NumWorkGroups.x * kTokens) {
    begin_tile();
    clear_sums();
    multiply_tile(0, p.depth);
    store_sums();
  }
}
