// What the checked device knows of memory: which bytes were written, which buffers live, and which
// pages a launch may touch.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "runtime/device.h"

namespace greta {

// Bytes that were written, as disjoint ranges.
class WrittenBytes {
 public:
  void add(uint64_t first, uint64_t last);  // [first, last)
  // The first byte of [first, last) that was not written, or `last`.
  uint64_t missing(uint64_t first, uint64_t last) const;

 private:
  std::map<uint64_t, uint64_t> end_of_;  // begin -> end; ranges neither touch nor overlap
};

// Behind Buffer::handle of a checked device. Stays after the release, so that a late use is found.
struct TrackedBuffer {
  Buffer inner;
  uint64_t number = 0;  // allocations of the device are counted from 1
  Memory memory = Memory::Device;
  bool imported = false, alive = true, guarded = false;  // guarded: its pages can be protected
  WrittenBytes written;
};

// An access, with the buffer that it meant when it was recorded.
struct BufferUse {
  TrackedBuffer* buffer = nullptr;
  uint64_t offset = 0, bytes = 0;
  Access::Mode mode = Access::kRead;
  bool sparse = false;
  bool reads() const { return mode & Access::kRead; }
  bool writes() const { return mode & Access::kWrite; }
};

// One recorded launch, copy or fill, as error texts name it.
struct Work {
  const char* name = "";
  uint64_t number = 0;    // in its stream or captured plan, from 1
  bool captured = false;  // of a plan
};

struct WorkText {
  char text[160];
};
WorkText describe(const Work& work);

// The use lies inside a living buffer; what it reads was written before.
Status check_lifetime(const Work& work, const BufferUse& use);
Status check_written(const Work& work, const BufferUse& use);

// While it lives, pages of guarded buffers that `uses` does not cover fault, and pages that it only
// reads are read-only.
class PageGuard {
 public:
  PageGuard(std::span<const std::unique_ptr<TrackedBuffer>> buffers, std::span<const BufferUse> uses);
  ~PageGuard();
  PageGuard(const PageGuard&) = delete;
  PageGuard& operator=(const PageGuard&) = delete;

 private:
  std::span<const std::unique_ptr<TrackedBuffer>> buffers_;
};

}  // namespace greta
