// Finds stop strings in text that passes through. Text that may begin one is held back until that is known.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"

namespace greta {

constexpr uint32_t kMaxStopStrings = 64;
constexpr uint32_t kMaxStopBytes = 4096;  // of one stop string

// Gives the text before the match that ends first, or the first of those to begin, however the text is cut.
// Its time is linear for each stop string (Knuth, Morris, Pratt 1977). A byte 0xFF hides the next one, of a
// control token: that is not given out, and a string may match with what is hidden, or without all of it.
class StopMatcher {
 public:
  Status open(std::span<const std::string_view> texts);  // each must be valid UTF-8 and not empty

  // Appends to `out` what can no longer be part of a stop string. Returns true if one is complete; then
  // nothing more may be pushed.
  bool push(std::string_view text, std::string* out);
  void flush(std::string* out);             // the text has ended: appends what was held back
  void begin_anew();                        // with another text, after a flush
  int32_t found() const { return found_; }  // index of the stop string, or -1

 private:
  struct Pattern {
    std::string text;
    std::vector<uint32_t> shorter;  // [n]: the longest proper prefix that the first n bytes also end with
    uint32_t matched = 0;
  };
  std::vector<Pattern> patterns_;
  std::string held_;
  int32_t found_ = -1;
};

}  // namespace greta
