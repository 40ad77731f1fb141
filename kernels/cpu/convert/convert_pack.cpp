// convert_pack: a weight from GGUF order to the packed layout. One group is one tile's rows.
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
