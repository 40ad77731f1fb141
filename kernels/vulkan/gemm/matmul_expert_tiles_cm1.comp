// matmul_expert for many tokens on the cooperative matrices of subgroups (KHR): tiles of the slots that chose an expert, as
// in matmul_tiles_cm1. x is in the form f16.
//   grid   (tiles of slots, tiles of rows of all experts)
//   group  a tile of y, and then others of the same expert and rows (gemm/slots.h)
#define STEP (kLanes < 64 ? 64 : 32)  // gemm/cm1.h
#define BUFFERS (kLanes < 64 ? 1 : 2)
#include "kernels/vulkan/gemm/slots.h"
#include "kernels/vulkan/gemm/cm1.h"

void main() {
  if (!begin_expert()) return;
  quant_begin();
  for (; first_slot < slot_count; first_slot += gl_NumWorkGroups.x * kTokens) {
    begin_tile();
    clear_sums();
    multiply_tile(0, p.depth);
    store_clipped();
  }
}
