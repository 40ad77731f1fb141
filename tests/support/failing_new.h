// Host memory that runs out: operator new of this program counts what lives, and fails once where a test says
// so.
#pragma once
#include <cstdint>

namespace greta::test {

// While it lives, the allocation number `fail_at` of this thread, from 1, fails with std::bad_alloc; 0: none.
class FailingNew {
 public:
  explicit FailingNew(uint64_t fail_at);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  uint64_t count() const;  // allocations so far
  bool failed() const { return fail_at_ && count() >= fail_at_; }

 private:
  uint64_t fail_at_;
};

uint64_t live_allocations();  // of all threads

}  // namespace greta::test
