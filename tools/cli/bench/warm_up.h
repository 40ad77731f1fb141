// When a measurement may begin.
#pragma once
#include <algorithm>
#include <string>

#include "bench/report.h"
#include "console.h"

namespace greta::cli {

// Whether runs that are not counted have been enough: two after the other took equally long. A GPU that idled
// begins at low clocks, and kernels may still have to be compiled.
class WarmUp {
 public:
  bool goes_on() const { return !agree_ && runs_ < kMost && (runs_ < 2 || spent_ns_ < kLongestNs); }
  void add(uint64_t ns) {
    const uint64_t apart = ns > last_ns_ ? ns - last_ns_ : last_ns_ - ns;
    agree_ = runs_ > 0 && apart * 100 <= kPercent * std::min(ns, last_ns_);
    last_ns_ = ns;
    spent_ns_ += ns;
    ++runs_;
  }
  void tell(const std::string& test, BenchRow* row) const {
    row->warm_up_runs = runs_;
    row->warm = agree_;
    if (!agree_)
      note(format("%s: no two of %u runs before the first that counts took equally long, within %u %%",
                  test.c_str(), runs_, kPercent));
  }

 private:
  static constexpr uint32_t kMost = 8, kPercent = 5;
  static constexpr uint64_t kLongestNs = 10'000'000'000;
  uint64_t last_ns_ = 0, spent_ns_ = 0;
  uint32_t runs_ = 0;
  bool agree_ = false;
};

}  // namespace greta::cli
