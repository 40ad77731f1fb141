// UTF-8: decoding that survives any bytes, a stream that lets only whole characters out, names from files in
// quotes.
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
