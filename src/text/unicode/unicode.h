// Classes of code points by the tables of Unicode, and texts read code point by code point.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "platform/platform.h"

namespace greta {

// The general categories of Unicode, as far as pre-tokenizers tell them apart. White space (the property
// White_Space) is a class of its own. unicode_tables.inc names the version of Unicode.
enum class CharClass : uint8_t {
  Unassigned,
  Control,  // also format, surrogate and private use: \p{C}
  Space,
  Upper,
  Lower,
  Title,
  Modifier,
  OtherLetter,
  Mark,  // spacing and enclosing
  NonspacingMark,
  Decimal,       // \p{Nd}
  LetterNumber,  // \p{Nl}
  OtherNumber,
  Connector,  // \p{Pc}
  Punctuation,
  Symbol
};

extern const CharClass ascii_classes[128];
CharClass char_class_beyond_ascii(uint32_t code);
inline CharClass char_class(uint32_t code) {
  return code < 128 ? ascii_classes[code] : char_class_beyond_ascii(code);
}
inline bool is_space(uint32_t code) { return char_class(code) == CharClass::Space; }
// What Python's str.isspace accepts: white space, and the four separators of ASCII.
inline bool is_blank(uint32_t code) { return is_space(code) || (code >= 0x1C && code <= 0x1F); }
inline bool is_letter(CharClass c) { return c >= CharClass::Upper && c <= CharClass::OtherLetter; }
inline bool is_mark(CharClass c) { return c == CharClass::Mark || c == CharClass::NonspacingMark; }
inline bool is_number(CharClass c) { return c >= CharClass::Decimal && c <= CharClass::OtherNumber; }
inline bool is_punctuation(CharClass c) { return c == CharClass::Connector || c == CharClass::Punctuation; }
bool is_han(uint32_t code);  // of the script Han

// Unlike isalnum, this does not depend on the locale that the program has set.
inline bool is_ascii_alnum(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

// The value of a hexadecimal digit; -1 for any other character.
inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

uint32_t lower_case(uint32_t code);

// Code points from `first` to `last`, `stride` apart, which change case by adding `delta`.
struct CaseRun {
  uint32_t first, last, stride;
  int32_t delta;
};
bool change_case(std::span<const CaseRun> runs, uint32_t code, uint32_t* to);  // false if it is in no run

// Writes the canonical decomposition without nonspacing marks, and returns its length: 0 to kMaxDecomposed
// code points.
constexpr uint32_t kMaxDecomposed = 4;
uint32_t decompose(uint32_t code, uint32_t* to);

// The code points of a text, for loops: for (const auto& [code, bytes, at] : CodePoints(text)).
class CodePoints {
 public:
  struct Point {
    uint32_t code, bytes;
    size_t at;  // the byte that it starts at
  };
  struct End {};
  class Iterator {
   public:
    explicit Iterator(std::string_view text) : text_(text) { decode(); }
    const Point& operator*() const { return point_; }
    bool operator!=(End) const { return point_.at < text_.size(); }
    void operator++() {
      point_.at += point_.bytes;
      decode();
    }

   private:
    void decode() {
      if (point_.at >= text_.size()) return;
      const CodePoint next = decode_utf8(text_, point_.at);
      point_.code = next.code;
      point_.bytes = next.bytes;
    }
    std::string_view text_;
    Point point_ = {};
  };
  explicit CodePoints(std::string_view text) : text_(text) {}
  Iterator begin() const { return Iterator(text_); }
  End end() const { return {}; }

 private:
  std::string_view text_;
};

// The length in bytes of the code points at the front of `text` for which `accepts(code)` holds.
template <class Accepts>
size_t span_of(std::string_view text, Accepts&& accepts) {
  for (const auto& [code, bytes, at] : CodePoints(text))
    if (!accepts(code)) return at;
  return text.size();
}

}  // namespace greta
