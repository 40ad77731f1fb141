// Small text files of the system, such as those in /proc and /sys.
#pragma once
#include <cstdint>

namespace greta {

struct SystemText {
  static constexpr uint64_t kNone = ~uint64_t(0);
  char data[16384] = "";

  bool read(const char* path);  // false if there is nothing to read; what does not fit is cut
  // The number after `key` at the start of a line, or kNone if there is no number ("max" is not one).
  uint64_t number_after(const char* key) const;
};

}  // namespace greta
