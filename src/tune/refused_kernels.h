// Remembers kernels that a driver has refused to compile. Their rows are not chosen again.
#pragma once
#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "compute/compute.h"

namespace greta {

// It is thread-safe. If a kernel's code is refused, so are all rows with that code.
class RefusedKernels {
 public:
  bool any() const { return any_; }
  bool has(const KernelRow& row) const {
    if (!any_) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    return find(row);
  }
  void add(const KernelRow& row) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!find(row)) rows_.push_back(&row);
    any_ = true;
  }

 private:
  bool find(const KernelRow& row) const {
    return std::ranges::any_of(rows_, [&](const KernelRow* refused) { return same_code(*refused, row); });
  }
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::vector<const KernelRow*> rows_;  // of the kernel table
};

}  // namespace greta
