#include "text/jinja/print.h"

#include <charconv>
#include <cmath>

#include "text/jinja/callables.h"
#include "text/jinja/objects.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {

// The shortest digits that read back as the same number, with an exponent below 1e-4 and from 1e16 on.
std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto done = std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific);
  const std::string_view text(buffer, size_t(done.ptr - buffer));
  const size_t mark = text.find('e');
  int exponent = 0;
  const char* const from = buffer + mark + 1 + (text[mark + 1] == '+');
  std::from_chars(from, done.ptr, exponent);
  std::string digits, out;
  for (const char c : text.substr(0, mark))
    if (c >= '0' && c <= '9') digits += c;
  if (number < 0 || std::signbit(number)) out = "-";
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    const std::string power = std::to_string(std::abs(exponent));
    return out + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
  }
  if (exponent < 0) return out + "0." + std::string(size_t(-exponent - 1), '0') + digits;
  const size_t whole = size_t(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

namespace {

bool is_printable(uint32_t code) {
  if (code < 0x7F) return code >= 0x20;
  if (code < 0xA1 || code == 0xAD) return false;
  const CharClass c = char_class(code);
  return c != CharClass::Unassigned && c != CharClass::Control && c != CharClass::Space;
}

// In single quotes, unless it holds some and no double ones.
void append_quoted(std::string_view text, std::string* out) {
  constexpr char kHex[] = "0123456789abcdef";
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  const auto hex = [&](char mark, uint32_t code, int digits) {
    (*out += '\\') += mark;
    for (int shift = 4 * digits - 4; shift >= 0; shift -= 4) *out += kHex[code >> shift & 15];
  };
  *out += quote;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const char c = text[at];
    if (c == quote || c == '\\')
      (*out += '\\') += c;
    else if (c == '\n' || c == '\r' || c == '\t')
      (*out += '\\') += c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
    else if (is_printable(point.code))
      out->append(text, at, point.bytes);
    else if (point.code < 0x100)
      hex('x', point.code, 2);
    else if (point.code < 0x10000)
      hex('u', point.code, 4);
    else
      hex('U', point.code, 8);
    at += point.bytes;
  }
  *out += quote;
}

struct Printer {
  uint64_t max_bytes;
  std::string* out;

  Status value(const Value& v, uint32_t depth);
  Status items(std::span<const Value> list, const char* open, const char* close, uint32_t depth);
  Status sequence(const Sequence& s, uint32_t depth);
  // Out of line, so that the walk through nested values takes little of the stack.
  [[gnu::noinline]] void range(const Sequence& s);
  [[gnu::noinline]] void number(const Value& v) {
    *out += v.is_int() ? std::to_string(v.as_int()) : float_text(v.as_double());
  }
};

Status Printer::items(std::span<const Value> list, const char* open, const char* close, uint32_t depth) {
  *out += open;
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) *out += ", ";
    GRETA_TRY(value(list[i], depth + 1));
  }
  *out += close;
  return {};
}

Status Printer::sequence(const Sequence& s, uint32_t depth) {
  switch (s.flavor) {
    case Flavor::List:
      return items(s.items, "[", "]", depth);
    case Flavor::Tuple:
    case Flavor::Group:
      return items(s.items, "(", s.items.size() == 1 ? ",)" : ")", depth);
    case Flavor::Keys:
      return items(s.items, "dict_keys([", "])", depth);
    case Flavor::Values:
      return items(s.items, "dict_values([", "])", depth);
    case Flavor::Items:
      return items(s.items, "dict_items([", "])", depth);
    case Flavor::Generator:
      *out += "<generator object>";
      return {};
    case Flavor::Range:
      range(s);
      return {};
  }
  return {};
}

void Printer::range(const Sequence& s) {
  *out += "range(" + std::to_string(s.range[0]) + ", " + std::to_string(s.range[1]);
  if (s.range[2] != 1) *out += ", " + std::to_string(s.range[2]);
  *out += ")";
}

Status Printer::value(const Value& v, uint32_t depth) {
  if (depth > kMaxNesting) return fail(Code::Full, "a value of more than %u levels", kMaxNesting);
  if (out->size() > max_bytes)
    return fail(Code::Full, "a text of more than %llu bytes", (unsigned long long)max_bytes);
  switch (v.kind()) {
    case Kind::Undefined:
      *out += "Undefined";
      return {};
    case Kind::None:
      *out += "None";
      return {};
    case Kind::Bool:
      *out += v.as_bool() ? "True" : "False";
      return {};
    case Kind::Int:
    case Kind::Float:
      number(v);
      return {};
    case Kind::String:
      if (v.is_markup()) *out += "Markup(";
      append_quoted(v.as_string(), out);
      if (v.is_markup()) *out += ")";
      return {};
    case Kind::List:
    case Kind::Tuple:
    case Kind::Iterable:
      return sequence(*sequence_of(v), depth);
    case Kind::Object:
      return append_callable(v, max_bytes, depth, out);
    case Kind::Dict:
      break;
  }
  *out += "{";
  for (const Value::Entry& entry : v.entries()) {
    if (&entry != v.entries().data()) *out += ", ";
    GRETA_TRY(value(entry.key, depth + 1));
    *out += ": ";
    GRETA_TRY(value(entry.value, depth + 1));
  }
  *out += "}";
  return {};
}

}  // namespace

Status append_repr(const Value& value, uint64_t max_bytes, std::string* out, uint32_t depth) {
  return Printer{max_bytes, out}.value(value, depth);
}

Status append_str(const Value& value, uint64_t max_bytes, std::string* out) {
  if (value.is_undefined()) return {};
  if (!value.is_string()) return append_repr(value, max_bytes, out);
  if (value.as_string().size() > max_bytes || out->size() > max_bytes - value.as_string().size())
    return fail(Code::Full, "a text of more than %llu bytes", (unsigned long long)max_bytes);
  out->append(value.as_string());
  return {};
}

}  // namespace greta::jinja
