#include "text/jinja/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/objects.h"
#include "text/jinja/print.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {
namespace {

// ---- reading ----------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  Status document(Value* out) {
    GRETA_TRY(value(0, out));
    skip();
    return at_ == text_.size() ? Status{} : wrong("expected the end");
  }

 private:
  Status value(uint32_t depth, Value* out);
  Status list(uint32_t depth, Value* out);
  Status dict(uint32_t depth, Value* out);
  [[gnu::noinline]] Status scalar(Value* out);  // out of line: value() is called within itself
  Status string(std::string* out);
  Status escape(std::string* out);
  Status number(Value* out);
  bool hex4(uint32_t* out);
  bool word(std::string_view name) {
    if (text_.substr(at_, name.size()) != name) return false;
    at_ += name.size();
    return true;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : 0; }
  bool take(char c) { return peek() == c && at_ < text_.size() ? (++at_, true) : false; }
  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  [[gnu::noinline]] Status wrong(const char* what) const {
    const size_t end = std::min(at_, text_.size());
    uint32_t line = 1, column = 1;
    for (size_t i = 0; i < end; ++i) {
      const bool starts = (text_[i] & 0xC0) != 0x80;
      if (text_[i] == '\n')
        ++line, column = 1;
      else
        column += starts;
    }
    const std::string_view rest = text_.substr(end, 16);
    if (rest.empty())
      return fail(Code::Argument, "line %u, column %u: %s, but the text ends", line, column, what);
    return fail(Code::Argument, "line %u, column %u: %s, at %s", line, column, what, Quoted(rest).c_str());
  }

  std::string_view text_;
  size_t at_ = 0;
};

Status Reader::value(uint32_t depth, Value* out) {
  skip();
  if (peek() == '{') return dict(depth + 1, out);
  if (peek() == '[') return list(depth + 1, out);
  return scalar(out);
}

Status Reader::scalar(Value* out) {
  if (peek() == '"') {
    std::string text;
    GRETA_TRY(string(&text));
    return *out = Value(text), Status{};
  }
  if (word("true")) return *out = true, Status{};
  if (word("false")) return *out = false, Status{};
  if (word("null")) return *out = nullptr, Status{};
  return number(out);
}

Status Reader::list(uint32_t depth, Value* out) {
  if (depth > kMaxJsonDepth) return wrong("too many brackets within each other");
  ++at_;
  Value items = Value::list();
  skip();
  if (!take(']')) {
    do {
      Value item;
      GRETA_TRY(value(depth, &item));
      items.push(std::move(item));
      skip();
    } while (take(','));
    if (!take(']')) return wrong("expected ',' or ']'");
  }
  *out = std::move(items);
  return {};
}

Status Reader::dict(uint32_t depth, Value* out) {
  if (depth > kMaxJsonDepth) return wrong("too many brackets within each other");
  ++at_;
  Value pairs = Value::dict();
  skip();
  if (!take('}')) {
    do {
      skip();
      if (peek() != '"') return wrong("expected a key in quotes");
      Value key, item;
      GRETA_TRY(scalar(&key));
      skip();
      if (!take(':')) return wrong("expected ':'");
      GRETA_TRY(value(depth, &item));
      pairs.set(std::move(key), std::move(item));
      skip();
    } while (take(','));
    if (!take('}')) return wrong("expected ',' or '}'");
  }
  *out = std::move(pairs);
  return {};
}

bool Reader::hex4(uint32_t* out) {
  const std::string_view digits = text_.substr(at_, 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *out, 16);
  if (digits.size() != 4 || error != std::errc() || end != digits.data() + 4) return false;
  at_ += 4;
  return true;
}

// After the backslash. Halves of a surrogate pair that stand alone become U+FFFD.
Status Reader::escape(std::string* out) {
  constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  if (const size_t simple = kFrom.find(peek()); at_ < text_.size() && simple != kFrom.npos) {
    *out += kTo[simple];
    ++at_;
    return {};
  }
  uint32_t code, low;
  if (!take('u') || !hex4(&code)) return wrong("expected an escape");
  if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
    const size_t before = at_;
    at_ += 2;
    if (!hex4(&low)) return wrong("expected four hexadecimal digits");
    if (low >= 0xDC00 && low < 0xE000)
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    else
      at_ = before;
  }
  append_utf8(code, out);
  return {};
}

Status Reader::string(std::string* out) {
  ++at_;
  for (;;) {
    size_t end = at_;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\\' && uint8_t(text_[end]) >= 0x20)
      ++end;
    out->append(text_, at_, end - at_);
    at_ = end;
    if (take('"')) return {};
    if (!take('\\')) return wrong("expected '\"' at the end of a string");
    GRETA_TRY(escape(out));
  }
}

Status Reader::number(Value* out) {
  const size_t start = at_;
  size_t end = start + (peek() == '-');
  const auto digits = [&] {
    const size_t first = end;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    return end - first;
  };
  const size_t first = end, whole = digits();
  if (!whole || (whole > 1 && text_[first] == '0')) return wrong("expected a value");
  bool real = false;
  if (text_.substr(end, 1) == ".") {
    ++end;
    real = true;
    if (!digits()) return wrong("expected digits after the point of a number");
  }
  if (end < text_.size() && (text_[end] | 32) == 'e') {
    ++end;
    real = true;
    if (end < text_.size() && (text_[end] == '+' || text_[end] == '-')) ++end;
    if (!digits()) return wrong("expected digits in the exponent of a number");
  }
  const char* const from = text_.data() + start;
  const char* const to = text_.data() + end;
  int64_t integer;
  if (!real && std::from_chars(from, to, integer).ec == std::errc()) {
    *out = Value(integer);
  } else {
    double number = 0;
    if (std::from_chars(from, to, number).ec != std::errc()) return wrong("a number beyond all floats");
    *out = Value(number);
  }
  at_ = end;
  return {};
}

// ---- writing ----------------------------------------------------------------------------------

class Writer {
 public:
  Writer(const JsonStyle& style, bool lenient, std::string* out)
      : style_(style), lenient_(lenient), out_(*out) {
    if (!style.indent_text.empty())
      step_ = style.indent_text;
    else if (style.indent > 0)
      step_ = std::string(size_t(std::min(style.indent, 1000)), ' ');
    lines_ = style.indent >= 0 || !style.indent_text.empty();
    item_ = style.item_separator.value_or(lines_ ? "," : ", ");
    stop_ = out->size() + style.max_bytes;
  }
  Status value(const Value& v, uint32_t depth);

 private:
  Status list(std::span<const Value> items, uint32_t depth);
  Status dict(const Value& v, uint32_t depth);
  Status key(const Value& v);
  [[gnu::noinline]] void number(const Value& v) {  // out of line: value() is called within itself
    const double real = v.as_double();
    if (v.is_int())
      out_ += std::to_string(v.as_int());
    else if (std::isfinite(real))
      out_ += float_text(real);
    else
      out_ += lenient_ ? "null" : std::isnan(real) ? "NaN" : real < 0 ? "-Infinity" : "Infinity";
  }
  void line(uint32_t depth) {
    if (!lines_) return;
    out_ += '\n';
    for (uint32_t i = 0; i < depth && out_.size() <= stop_; ++i) out_ += step_;
  }
  Status check(uint32_t depth) const {
    if (depth > kMaxJsonDepth)
      return fail(Code::Full, "more than %u brackets of JSON within each other", kMaxJsonDepth);
    if (out_.size() > stop_)
      return fail(Code::Full, "the JSON text is longer than %llu bytes",
                  (unsigned long long)style_.max_bytes);
    return {};
  }

  const JsonStyle& style_;
  const bool lenient_;
  std::string& out_;
  std::string step_, item_;
  bool lines_;
  uint64_t stop_;
};

Status Writer::value(const Value& v, uint32_t depth) {
  if (const Status status = check(depth); !status.ok()) {
    if (lenient_) out_ += "null";
    return lenient_ ? Status{} : status;
  }
  if (v.is_string()) {
    append_json_string(v.as_string(), style_.ascii, &out_);
  } else if (v.is_list() || v.kind() == Kind::Tuple) {
    return list(v.items(), depth);
  } else if (v.is_dict()) {
    return dict(v, depth);
  } else if (v.is_number()) {
    number(v);
  } else if (v.is_bool()) {
    out_ += v.as_bool() ? "true" : "false";
  } else {
    if (!v.is_none() && !lenient_)
      return fail(Code::Argument, "%s is nothing that JSON can express", v.type_name());
    out_ += "null";
  }
  return {};
}

Status Writer::list(std::span<const Value> items, uint32_t depth) {
  out_ += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out_ += item_;
    line(depth + 1);
    GRETA_TRY(value(items[i], depth + 1));
  }
  if (!items.empty()) line(depth);
  out_ += ']';
  return {};
}

Status Writer::key(const Value& v) {
  if (v.is_string()) return value(v, 0);
  if (!v.is_none() && !is_numeric(v))
    return fail(Code::Argument, "a key of JSON must be a text or a number, not %s", v.type_name());
  out_ += '"';
  GRETA_TRY(value(v, 0));
  out_ += '"';
  return {};
}

Status Writer::dict(const Value& v, uint32_t depth) {
  std::vector<const Value::Entry*> entries;
  for (const Value::Entry& entry : v.entries()) entries.push_back(&entry);
  if (style_.sort_keys) {
    for (const Value::Entry* entry : entries)
      if (entry->key.kind() != entries[0]->key.kind())
        return fail(Code::Argument, "keys of different types cannot be sorted");
    std::sort(entries.begin(), entries.end(),
              [](const Value::Entry* a, const Value::Entry* b) { return compare_keys(a->key, b->key) < 0; });
  }
  out_ += '{';
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i) out_ += item_;
    line(depth + 1);
    if (lenient_ && !entries[i]->key.is_string())
      append_json_string(entries[i]->key.type_name(), false, &out_);
    else
      GRETA_TRY(key(entries[i]->key));
    out_ += style_.key_separator;
    GRETA_TRY(value(entries[i]->value, depth + 1));
  }
  if (!entries.empty()) line(depth);
  out_ += '}';
  return {};
}

}  // namespace

Status parse_json(std::string_view text, Value* out) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark says nothing in UTF-8
  if (!is_valid_utf8(text)) {
    // The message names the line alone, since columns count characters.
    uint32_t line = 1;
    for (const auto& [code, bytes, at] : CodePoints(text)) {
      if (code == kReplacement && text.substr(at, 3) != "\xEF\xBF\xBD") break;
      line += code == '\n';
    }
    return fail(Code::Argument, "line %u: the text is not UTF-8", line);
  }
  Value value;
  GRETA_TRY(Reader(text).document(&value));
  *out = std::move(value);
  return {};
}

Status to_json(const Value& value, const JsonStyle& style, std::string* out) {
  return Writer(style, false, out).value(value, 0);
}

std::string to_json(const Value& value) {
  std::string out;
  const JsonStyle style;
  const Status status = Writer(style, true, &out).value(value, 0);
  return status.ok() ? out : "null";  // a lenient writer does not fail
}

void append_json_string(std::string_view text, bool ascii, std::string* out) {
  constexpr char kHex[] = "0123456789abcdef";
  constexpr std::string_view kFrom = "\"\\\b\f\n\r\t", kTo = "\"\\bfnrt";
  const auto unit = [&](uint32_t code) {
    *out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) *out += kHex[code >> shift & 15];
  };
  *out += '"';
  for (const auto& [code, bytes, at] : CodePoints(text)) {
    if (const size_t simple = kFrom.find(text[at]); simple != kFrom.npos) {
      (*out += '\\') += kTo[simple];
    } else if (code >= 0x20 && (!ascii || code < 0x7F)) {
      out->append(text, at, bytes);
    } else if (code < 0x10000) {
      unit(code);
    } else {
      unit(0xD800 + ((code - 0x10000) >> 10));
      unit(0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }
  *out += '"';
}

}  // namespace greta::jinja
