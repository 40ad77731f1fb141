#include <algorithm>

#include "graph/graph.h"

namespace greta {

KernelSet::~KernelSet() {
  for (Entry& entry : entries_) device_.unload(entry.kernel);
}

Status KernelSet::load(const KernelRow& row, std::span<const uint8_t> block, const Kernel** out) {
  uint32_t constants[kMaxConstants + 1];
  const std::span<const uint32_t> wanted(constants, kernel_constants(row, block, constants));
  for (Entry& entry : entries_)
    if (entry.code == row.code.name && std::ranges::equal(entry.constants, wanted))
      return *out = &entry.kernel, Status{};
  KernelCode code = row.code;
  code.constants = wanted;
  Kernel kernel;
  GRETA_TRY(within(device_.load(code, &kernel), "kernel %s", row.name));
  kernel.name = row.name;
  entries_.push_back({row.code.name, {wanted.begin(), wanted.end()}, kernel});
  *out = &entries_.back().kernel;
  return {};
}

}  // namespace greta
