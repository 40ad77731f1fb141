#include <cstring>

#include "compute/kernel_table.h"

namespace greta {

uint32_t kernel_constants(const KernelRow& row, std::span<const uint8_t> block,
                          uint32_t (&out)[kMaxConstants + 1]) {
  out[0] = row.code.group_size[0];
  if (row.threads_field) std::memcpy(&out[0], block.data() + row.threads_field, sizeof(uint32_t));
  uint32_t count = 1;
  for (uint32_t i = 0; i < row.constant_count && row.constant_fields[i] + sizeof(uint32_t) <= block.size();
       ++i)
    std::memcpy(&out[count++], block.data() + row.constant_fields[i], sizeof(uint32_t));
  return count;
}

}  // namespace greta
