// Stop strings: text passes through, and where one of them may have begun it waits until it is known.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"

namespace greta {

constexpr uint32_t kMaxStopStrings = 64;
constexpr uint32_t kMaxStopBytes = 4096;  // of one

// However the text is cut into pieces, the same comes out: all that stands before the match that ends first,
// and of matches that end together, before the longest. Linear in the text for each string (Knuth, Morris,
// Pratt 1977).
class StopMatcher {
 public:
  Status open(std::span<const std::string_view> texts);  // valid UTF-8, not empty

  // Appends what is certain to `out`; true if a stop string is complete. Then nothing more is taken.
  bool push(std::string_view text, std::string* out);
  void flush(std::string* out);             // what was held back was no stop string
  int32_t found() const { return found_; }  // index of the stop string, or -1

 private:
  struct Pattern {
    std::string text;
    std::vector<uint32_t> shorter;  // after so many bytes: the longest beginning that also ends there
    uint32_t matched = 0;
  };
  std::vector<Pattern> patterns_;
  std::string held_;
  int32_t found_ = -1;
};

}  // namespace greta
