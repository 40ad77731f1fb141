// convert_pack: y = the weight x [rows][depth], from GGUF order to the packed layout (quant/<type>_packed.h)
//   grid    (rows / Weight::kRows)
//   group   the rows of one tile
//   scratch none
//   moves   the weight once in each order
// The argument block is ConvertBlock in kernels/abi/ops.h.
#include "kernels/abi/ops.h"
#include "kernels/cpu/scratch.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  using Weight = WEIGHT;
  const ConvertBlock& b = *(const ConvertBlock*)block;
  for (uint32_t group = first_group; group < first_group + group_count; ++group)
    for (uint32_t k = 0; k < b.depth; k += Weight::kBlock)
      Weight::pack((const uint8_t*)b.x, group * Weight::kRows, b.rows, b.depth, k / Weight::kBlock,
                   (uint8_t*)b.y);
}
