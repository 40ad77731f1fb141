// What pread does in this program, for tests of reading files: as the system's, but for what is asked here.
#pragma once
#include <atomic>
#include <cstdint>

namespace greta::test {

struct ReadFaults {
  std::atomic<uint64_t> most{~uint64_t(0)};  // bytes of one read
  std::atomic<uint32_t> interrupts{0};       // of the next reads, that a signal ends
  std::atomic<int> error{0};                 // of every read that covers byte error_at of a file
  std::atomic<uint64_t> error_at{0};
  void clear() { most = ~uint64_t(0), interrupts = 0, error = 0; }
};
extern ReadFaults read_faults;

}  // namespace greta::test
