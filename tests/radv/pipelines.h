// Every pipeline that the Vulkan rows of the kernel table become for models of some usual shapes.
#pragma once
#include <string>
#include <vector>

#include "compute/kernel_table.h"

namespace greta::test {

struct Pipeline {
  const KernelRow* row;             // the first of those that share the code and the constants
  std::vector<uint32_t> constants;  // threads of a group, then what the row is specialised by
  std::string name() const;         // "matmul_rows_q4_k 512,4096"
};

std::vector<Pipeline> pipelines_of_table();

}  // namespace greta::test
