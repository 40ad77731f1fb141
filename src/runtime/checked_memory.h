// What the checked device knows of memory: written bytes, living buffers, and pages that a launch may touch.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "runtime/device.h"

namespace greta {

// The bytes of a buffer that were written, as disjoint ranges.
class WrittenBytes {
 public:
  void add(uint64_t first, uint64_t last);  // [first, last)
  // Returns the first byte of [first, last) that was not written, or `last`.
  uint64_t missing(uint64_t first, uint64_t last) const;

 private:
  std::map<uint64_t, uint64_t> end_of_;  // begin -> end; ranges neither touch nor overlap
};

// What Buffer::handle of a checked device points to. It stays after the release, so that a late use is found.
struct TrackedBuffer {
  Buffer inner;
  uint64_t number = 0;  // allocations of the device are counted from 1
  Memory memory = Memory::Device;
  bool imported = false, alive = true;
  struct Page {
    Protection now = Protection::ReadWrite, next = Protection::None;
  };
  std::vector<Page> pages;  // if they can be protected
  WrittenBytes written;
};

// An access with the buffer that it meant when it was recorded.
struct BufferUse {
  TrackedBuffer* buffer = nullptr;
  uint64_t offset = 0, bytes = 0;
  Access::Mode mode = Access::kRead;
  bool sparse = false;
  bool reads() const { return mode & Access::kRead; }
  bool writes() const { return mode & Access::kWrite; }
};

// A recorded launch, copy or fill, as error texts name it.
struct Work {
  const char* name = "";
  uint64_t number = 0;    // counted from 1 in its stream or captured plan
  bool captured = false;  // it is part of a captured plan
};

struct WorkText {
  char text[160];
};
WorkText describe(const Work& work);

// Fails if the use does not lie inside a living buffer.
Status check_lifetime(const Work& work, const BufferUse& use);
// Fails if the use reads bytes that were never written.
Status check_written(const Work& work, const BufferUse& use);

// Protects the pages of buffers. Those that the last call of `allow` did not name fault, and those that it
// only reads fault on a write. Each call changes what differs from the one before, since a change costs as
// much as a small launch.
class PageGuard {
 public:
  void guard(TrackedBuffer& buffer);  // From here on its pages fault.
  void allow(std::span<const BufferUse> uses);
  void forget(TrackedBuffer& buffer);  // Its pages are as they were before `guard`.

 private:
  struct Range {
    TrackedBuffer* buffer;
    size_t first, last;  // pages [first, last)
  };
  static void protect(const Range& range);

  std::vector<Range> allowed_;
};

}  // namespace greta
