// Replaces pread in this program, for tests of reading files. It works as the system's, with the faults that
// are set here.
#pragma once
#include <atomic>
#include <cstdint>

namespace greta::test {

struct ReadFaults {
  std::atomic<uint64_t> most{~uint64_t(0)};  // the most bytes of one read
  std::atomic<uint32_t> interrupts{0};       // how many of the next reads a signal interrupts
  std::atomic<int> error{0};                 // the errno of every read that covers byte error_at of a file
  std::atomic<uint64_t> error_at{0};
  void clear() { most = ~uint64_t(0), interrupts = 0, error = 0; }
};
extern ReadFaults read_faults;

}  // namespace greta::test
