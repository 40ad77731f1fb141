// Functions that take texts apart from the front, for the readers of answers.
#pragma once
#include <algorithm>
#include <string_view>

#include "text/unicode/unicode.h"

namespace greta {

inline constexpr std::string_view kBlanks = " \t\r\n";

inline bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 256 && std::all_of(text.begin(), text.end(), [](char c) {
    return uint8_t(c) >= 0x80 || is_ascii_alnum(c) || std::string_view("_-.:/").find(c) != kBlanks.npos;
  });
}

// Takes `start` off the front of `*text`.
inline bool take(std::string_view* text, std::string_view start) {
  if (!text->starts_with(start)) return false;
  text->remove_prefix(start.size());
  return true;
}

inline void skip_blanks(std::string_view* text) {
  text->remove_prefix(std::min(text->size(), text->find_first_not_of(kBlanks)));
}

// Takes the text up to `end`, and `end` too.
inline bool take_until(std::string_view* text, std::string_view end, std::string_view* out) {
  const size_t at = text->find(end);
  if (at == text->npos) return false;
  *out = text->substr(0, at);
  text->remove_prefix(at + end.size());
  return true;
}

inline std::string_view trim_blanks(std::string_view text) {
  skip_blanks(&text);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

}  // namespace greta
