// Makes host memory run out. In this program the allocations of the library and of the tests are counted, and
// one of them fails if a test asks for it: operator new, malloc and its like, mmap, and, except under
// sanitizers, the start of a thread.
#pragma once
#include <cstdint>

namespace greta::test {

// Refusing a bad file may take this many bytes of memory.
constexpr uint64_t kMostOfRefusal = 50'000'000;

// While it lives, this thread's allocation number `fail_at`, counted from 1, fails as the system would let it
// fail. 0: none does.
class FailingMemory {
 public:
  explicit FailingMemory(uint64_t fail_at);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
  uint64_t count() const;  // allocations so far
  bool failed() const { return fail_at_ && count() >= fail_at_; }
  // The most bytes that this thread has held at once of what it has allocated since then.
  uint64_t peak_bytes() const;

 private:
  uint64_t fail_at_;
};

uint64_t live_allocations();   // blocks and mappings of all threads
bool next_allocation_fails();  // counts one of this thread; for what stands in front of the system's
                               // functions

}  // namespace greta::test
