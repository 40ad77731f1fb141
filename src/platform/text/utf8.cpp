#include "platform/text/utf8.h"

#include <algorithm>
#include <cstring>

#include "platform/text/format_text.h"

namespace greta {
namespace {

bool continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Returns the length of the sequence that `first` begins, and the range of its second byte. This is table 3-7
// of the Unicode standard, which excludes overlong forms, surrogates and codes above U+10FFFF.
uint32_t sequence(uint8_t first, uint8_t* low, uint8_t* high) {
  *low = 0x80;
  *high = 0xBF;
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  if (first < 0xE0) return 2;
  if (first == 0xE0) *low = 0xA0;
  if (first == 0xED) *high = 0x9F;
  if (first < 0xF0) return 3;
  if (first == 0xF0) *low = 0x90;
  if (first == 0xF4) *high = 0x8F;
  return 4;
}

// Returns how many bytes at text[at] are a valid beginning of a sequence, whose full length goes to `length`.
uint32_t well_formed(std::string_view text, size_t at, uint32_t* length) {
  uint8_t low, high;
  *length = sequence(uint8_t(text[at]), &low, &high);
  if (*length < 2) return *length;
  uint32_t good = 1;
  for (; good < *length && at + good < text.size(); ++good) {
    const uint8_t byte = uint8_t(text[at + good]);
    if (good == 1 ? byte < low || byte > high : !continues(byte)) break;
  }
  return good;
}

}  // namespace

CodePoint decode_utf8_beyond_ascii(std::string_view text, size_t at) {
  uint32_t length;
  const uint32_t good = well_formed(text, at, &length);
  if (length == 1) return {uint8_t(text[at]), 1};
  if (length == 0 || good < length) return {kReplacement, std::max(good, 1u)};
  uint32_t code = uint8_t(text[at]) & (0x7F >> length);
  for (uint32_t i = 1; i < length; ++i) code = code << 6 | (uint8_t(text[at + i]) & 0x3F);
  return {code, length};
}

uint32_t encode_utf8(uint32_t code, char* to) {
  if (code > kLastCode || (code >= 0xD800 && code < 0xE000)) code = kReplacement;
  if (code < 0x80) return to[0] = char(code), 1;
  const uint32_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (uint32_t i = length - 1; i > 0; --i, code >>= 6) to[i] = char(0x80 | (code & 0x3F));
  to[0] = char((0xF00 >> length & 0xFF) | code);
  return length;
}

void append_utf8(uint32_t code, std::string* to) {
  char bytes[4];
  to->append(bytes, encode_utf8(code, bytes));
}

bool is_valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    for (uint64_t eight; at + 8 <= text.size(); at += 8) {  // eight bytes of ASCII at a time
      memcpy(&eight, text.data() + at, 8);
      if (eight & 0x8080808080808080) break;
    }
    if (at == text.size()) break;
    uint32_t length;
    const uint32_t good = well_formed(text, at, &length);
    if (length == 0 || good < length) return false;
    at += length;
  }
  return true;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    append_utf8(point.code, &out);
    at += point.bytes;
  }
  return out;
}

void Utf8Stream::push(std::string_view bytes, std::string* out) {
  held_.append(bytes);
  size_t at = 0;
  while (at < held_.size()) {
    uint32_t length;
    const uint32_t good = well_formed(held_, at, &length);
    if (good && good < length && at + good == held_.size()) break;  // the next piece may complete it
    const CodePoint point = decode_utf8(held_, at);
    append_utf8(point.code, out);
    at += point.bytes;
  }
  held_.erase(0, at);
}

void Utf8Stream::flush(std::string* out) {
  if (!held_.empty()) append_utf8(kReplacement, out);
  held_.clear();
}

Quoted::Quoted(std::string_view name) {
  size_t used = 0;
  text_[used++] = '"';
  for (size_t at = 0; at < name.size();) {
    const CodePoint point = decode_utf8(name, at);
    if (used + 20 > sizeof text_) {
      memcpy(text_ + used, "...", 3);
      used += 3;
      break;
    }
    const bool plain = point.code >= 0x20 && point.code != 0x7f && point.code != '"' && point.code != '\\' &&
                       (point.code < 0x80 || point.bytes > 1) && !(point.code >= 0x80 && point.code < 0xA0);
    for (uint32_t i = 0; i < point.bytes; ++i, ++at) {
      if (plain && point.code != kReplacement)
        text_[used++] = name[at];
      else
        used += size_t(format_text(text_ + used, 5, "\\x%02X", uint8_t(name[at])));
    }
  }
  text_[used++] = '"';
  text_[used] = 0;
}

}  // namespace greta
