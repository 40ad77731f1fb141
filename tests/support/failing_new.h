// Makes host memory run out. This program's operator new counts living allocations, and fails once if a test
// asks for it.
#pragma once
#include <cstdint>

namespace greta::test {

// While it lives, this thread's allocation number `fail_at`, counted from 1, fails with std::bad_alloc. 0:
// none does.
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
