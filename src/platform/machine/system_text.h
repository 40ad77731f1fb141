// Small text files of the system, such as those in /proc and /sys.
#pragma once
#include <cstdint>
#include <string>

namespace greta {

struct SystemText {
  static constexpr uint64_t kNone = ~uint64_t(0);
  char data[16384] = "";

  bool read(const char* path);  // false if there is nothing to read; what does not fit is cut
  // The number after `key` at the start of a line, or kNone if there is no number ("max" is not one).
  uint64_t number_after(const char* key) const;
  // What stands behind `key` in the line that begins with it; "" if there is none.
  std::string line_after(const char* key) const;

 private:
  const char* after(const char* key) const;  // null if no line begins with it
};

}  // namespace greta
