#include "text/jinja/print.h"

#include <charconv>
#include <cmath>

#include "text/jinja/callables.h"
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

void append_escaped(uint32_t code, std::string* out) {
  const int digits = code < 0x100 ? 2 : code < 0x10000 ? 4 : 8;
  (*out += '\\') += digits == 2 ? 'x' : digits == 4 ? 'u' : 'U';
  for (int shift = 4 * digits - 4; shift >= 0; shift -= 4) *out += "0123456789abcdef"[code >> shift & 15];
}

namespace {

bool is_printable(uint32_t code) {
  if (code < 0x7F) return code >= 0x20;
  if (code < 0xA1 || code == 0xAD) return false;
  const CharClass c = char_class(code);
  return c != CharClass::Unassigned && c != CharClass::Control && c != CharClass::Space;
}

// In single quotes, or in double ones if only single ones are in the text.
void append_quoted(std::string_view text, std::string* out) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  *out += quote;
  for (const auto& [code, bytes, at] : CodePoints(text)) {
    const char c = text[at];
    if (c == quote || c == '\\')
      (*out += '\\') += c;
    else if (c == '\n' || c == '\r' || c == '\t')
      (*out += '\\') += c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
    else if (is_printable(code))
      out->append(text, at, bytes);
    else
      append_escaped(code, out);
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
  struct Brackets {
    const char *open, *close;
  };
  constexpr Brackets kBrackets[] = {{"[", "]"},
                                    {"(", ")"},
                                    {"(", ")"},
                                    {"", ""},
                                    {"", ""},
                                    {"dict_keys([", "])"},
                                    {"dict_values([", "])"},
                                    {"dict_items([", "])"}};  // by flavor
  if (s.flavor == Flavor::Range) return range(s), Status{};
  if (s.flavor == Flavor::Generator) return *out += "<generator object>", Status{};
  const auto& [open, close] = kBrackets[size_t(s.flavor)];
  return items(s.items, open, *open == '(' && s.items.size() == 1 ? ",)" : close, depth);
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
  if (v.is_undefined()) return *out += "Undefined", Status{};
  if (v.is_none()) return *out += "None", Status{};
  if (v.is_bool()) return *out += v.as_bool() ? "True" : "False", Status{};
  if (v.is_number()) return number(v), Status{};
  if (v.kind() == Kind::Object) return append_callable(v, max_bytes, depth, out);
  if (const Sequence* list = sequence_of(v)) return sequence(*list, depth);
  if (v.is_string()) {
    if (v.is_markup()) *out += "Markup(";
    append_quoted(v.as_string(), out);
    if (v.is_markup()) *out += ")";
    return {};
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
