// UTF-8: decoding of any bytes, a stream that lets only whole characters out, and quoting of names.
//
// Invalid UTF-8 becomes U+FFFD, one for each maximal part of a broken sequence, as the Unicode standard
// recommends and Python's "replace" does.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace greta {

constexpr uint32_t kReplacement = 0xFFFD;
constexpr uint32_t kLastCode = 0x10FFFF;

struct CodePoint {
  uint32_t code;
  uint32_t bytes;  // that were read, at least 1
};

// Decodes the code point at text[at], where at < text.size().
CodePoint decode_utf8_beyond_ascii(std::string_view text, size_t at);
inline CodePoint decode_utf8(std::string_view text, size_t at) {
  const uint8_t first = uint8_t(text[at]);
  return first < 0x80 ? CodePoint{first, 1} : decode_utf8_beyond_ascii(text, at);
}

// Writes 1 to 4 bytes to `to` and returns how many. A code that is no code point is written as U+FFFD.
uint32_t encode_utf8(uint32_t code, char* to);
void append_utf8(uint32_t code, std::string* to);

bool is_valid_utf8(std::string_view text);
std::string valid_utf8(std::string_view text);  // the text with U+FFFD in place of invalid bytes

// Turns the bytes of tokens into text. Bytes that may still become a character are held back.
class Utf8Stream {
 public:
  void push(std::string_view bytes, std::string* out);  // appends the complete characters to `out`
  void flush(std::string* out);                         // writes what is held back as U+FFFD

 private:
  std::string held_;  // the valid beginning of a character, at most 3 bytes
};

// A name from a file in quotes, safe to print: unprintable bytes become \xNN, and a long name is cut.
struct Quoted {
  explicit Quoted(std::string_view name);
  const char* c_str() const { return text_; }

 private:
  char text_[120];
};

}  // namespace greta
