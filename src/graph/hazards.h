// Which launches must not overlap: both touch the same bytes, and one of them writes.
#pragma once
#include <span>
#include <vector>

#include "tune/tune.h"

namespace greta {

inline bool overlaps(const Slice& a, const Slice& b) {
  return a.buffer && a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

inline bool conflicts(const Access& a, const Access& b) {
  return ((a.mode | b.mode) & Access::kWrite) && overlaps(a.slice, b.slice);
}

// What was recorded on a stream since its last barrier, for streams whose barriers are not planned.
class Hazards {
 public:
  // Notes work with these accesses, and returns true if a barrier must stand before it.
  bool note(std::span<const Access> accesses) {
    const bool barrier = all_ || since_.size() + accesses.size() > kMost || conflict(accesses);
    if (barrier) since_.clear();
    all_ = false;
    since_.insert(since_.end(), accesses.begin(), accesses.end());
    return barrier;
  }
  // A barrier must stand before whatever comes next: at the beginning, and where other streams or the host
  // may have written.
  void all() { all_ = true; }

 private:
  static constexpr size_t kMost = 64;  // remembered; a barrier costs less than comparing more
  bool conflict(std::span<const Access> accesses) const {
    for (const Access& a : accesses)
      for (const Access& b : since_)
        if (conflicts(a, b)) return true;
    return false;
  }

  std::vector<Access> since_;
  bool all_ = true;
};

}  // namespace greta
