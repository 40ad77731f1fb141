// Looking for marks in text that comes in pieces.
#pragma once
#include <algorithm>
#include <iterator>
#include <string_view>

namespace greta {

// The most bytes at the end of `text` that may be the beginning of `mark`.
inline size_t begun(std::string_view text, std::string_view mark) {
  for (size_t bytes = std::min(text.size(), mark.size() - 1); bytes > 0; --bytes)
    if (text.substr(text.size() - bytes) == mark.substr(0, bytes)) return bytes;
  return 0;
}

// Returns true if `text` begins with `mark`, or may do so once more has come.
inline bool may_become(std::string_view text, std::string_view mark) {
  return text.size() < mark.size() && mark.starts_with(text);
}

// Returns the number of bytes before the first mark, and sets *which to its index. Without a mark, *which is
// -1 and the bytes are those that cannot belong to one.
template <class Marks>
size_t before_mark(std::string_view text, const Marks& marks, int* which) {
  size_t first = text.npos, held = 0;
  *which = -1;
  int index = 0;
  for (const std::string_view mark : marks) {
    const size_t at = text.find(mark);
    // Of marks at one place, the longest counts.
    if (at < first || (at == first && at != text.npos && mark.size() > std::begin(marks)[*which].size())) {
      first = at;
      *which = index;
    }
    held = std::max(held, begun(text, mark));
    ++index;
  }
  return *which >= 0 ? first : text.size() - held;
}

}  // namespace greta
