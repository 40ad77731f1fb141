// scaled_add_spike: the test kernel of kernels/abi/scaled_add.h on the CPU.
//   grid   ceil(count / GROUP)
//   group  GROUP values, in order
#include "kernels/abi/scaled_add.h"
#include "kernels/cpu/scratch.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const ScaledAddBlock& p = *static_cast<const ScaledAddBlock*>(block);
  const float* a = reinterpret_cast<const float*>(p.a);
  const float* pages = reinterpret_cast<const float*>(p.pages);
  const uint* page_table = reinterpret_cast<const uint*>(p.page_table);
  float* y = reinterpret_cast<float*>(p.y);

  const uint64_t first = uint64_t(first_group) * GROUP;
  uint64_t end = first + uint64_t(group_count) * GROUP;
  if (end > p.count) end = p.count;
  for (uint64_t i = first; i < end; ++i) {
    const uint64_t page = page_table[i / p.page_values];
    y[i] = a[i] + p.scale * pages[page * p.page_values + i % p.page_values];
  }
}
