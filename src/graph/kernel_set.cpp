#include "graph/graph.h"

namespace greta {

KernelSet::~KernelSet() {
  for (Entry& entry : entries_) device_.unload(entry.kernel);
}

Status KernelSet::load(const KernelRow& row, const Kernel** out) {
  // Rows of one code (a kernel that covers several sequences) are loaded once.
  for (Entry& entry : entries_)
    if (entry.row->code.name == row.code.name) return *out = &entry.kernel, Status{};
  Kernel kernel;
  GRETA_TRY(within(device_.load(row.code, &kernel), "kernel %s", row.name));
  kernel.name = row.name;
  entries_.push_back({&row, kernel});
  *out = &entries_.back().kernel;
  return {};
}

}  // namespace greta
