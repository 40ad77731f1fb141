// Classes of code points for the pre-tokenizers, by the tables of Unicode.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "platform/platform.h"

namespace greta {

// General categories as the pre-tokenizers see them; white space (the property White_Space) is a class
// of its own. Of the Unicode version that unicode_tables.inc names.
enum class CharClass : uint8_t {
  Unassigned,
  Control,  // and format, surrogate, private use: \p{C}
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
// Python's str.isspace: White_Space and the separators of ASCII.
inline bool is_blank(uint32_t code) { return is_space(code) || (code >= 0x1C && code <= 0x1F); }
inline bool is_letter(CharClass c) { return c >= CharClass::Upper && c <= CharClass::OtherLetter; }
inline bool is_mark(CharClass c) { return c == CharClass::Mark || c == CharClass::NonspacingMark; }
inline bool is_number(CharClass c) { return c >= CharClass::Decimal && c <= CharClass::OtherNumber; }
inline bool is_punctuation(CharClass c) { return c == CharClass::Connector || c == CharClass::Punctuation; }
bool is_han(uint32_t code);  // the script

// Unlike isalnum, the same whatever locale the program has set.
inline bool is_ascii_alnum(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

uint32_t lower_case(uint32_t code);

// The canonical decomposition without nonspacing marks: writes 0 to kMaxDecomposed code points.
constexpr uint32_t kMaxDecomposed = 4;
uint32_t decompose(uint32_t code, uint32_t* to);

}  // namespace greta
