// Text as UTF-8: decoding that survives anything, classes of code points for the pre-tokenizers,
// and a stream that only lets whole characters out.
//
// Invalid UTF-8 becomes U+FFFD, one for each maximal part of a sequence that broke off, as the
// Unicode standard recommends and Python's "replace" does.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace greta {

constexpr uint32_t kReplacement = 0xFFFD;
constexpr uint32_t kLastCode = 0x10FFFF;

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

struct CodePoint {
  uint32_t code;
  uint32_t bytes;  // consumed, at least 1
};

// The code point at text[at]; at < text.size().
CodePoint decode_utf8_beyond_ascii(std::string_view text, size_t at);
inline CodePoint decode_utf8(std::string_view text, size_t at) {
  const uint8_t first = uint8_t(text[at]);
  return first < 0x80 ? CodePoint{first, 1} : decode_utf8_beyond_ascii(text, at);
}

// Bytes written to `to`, 1 to 4. A code that is no code point is written as U+FFFD.
uint32_t encode_utf8(uint32_t code, char* to);
void append_utf8(uint32_t code, std::string* to);

bool is_valid_utf8(std::string_view text);
std::string valid_utf8(std::string_view text);  // with U+FFFD where it is not

// Bytes of tokens in, text out: bytes that may yet become a character are held back.
class Utf8Stream {
 public:
  void push(std::string_view bytes, std::string* out);  // appends what is complete to out
  void flush(std::string* out);                         // what is held back ends as U+FFFD

 private:
  std::string held_;  // a sequence that has begun well, at most 3 bytes
};

// A name from a file, in quotes and safe to print: other bytes as \xNN, cut if long.
struct Quoted {
  explicit Quoted(std::string_view name);
  const char* c_str() const { return text_; }

 private:
  char text_[120];
};

}  // namespace greta
