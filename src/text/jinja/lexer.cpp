#include "text/jinja/lexer.h"

#include <charconv>

#include "text/unicode/unicode.h"

namespace greta::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(uint32_t code) {
  return code == '_' ||
         (code < 128 ? ((code | 32) >= 'a' && (code | 32) <= 'z') : is_letter(char_class(code)));
}
bool is_name_part(uint32_t code) {
  if (is_name_start(code)) return true;
  const CharClass c = char_class(code);
  return is_number(c) || is_mark(c);
}

std::string normal_newlines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r') {
      out += '\n';
      if (text.substr(at + 1, 1) == "\n") ++at;
    } else {
      out += text[at];
    }
  }
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view text, std::vector<Token>* out) : text_(text), out_(*out) {}
  Status run();

 private:
  struct Tag {  // an opening one
    size_t at;
    char kind;  // '{', '%', '#', or 'r' for raw
    char sign;  // '-', '+' or 0
    size_t end;
  };
  bool find_tag(Tag* tag) const;
  bool match_raw(size_t at, const char* word, char* sign, size_t* end, bool closing) const;
  void add_data(std::string_view data, char sign, bool strip_line);
  Status skip_comment(size_t start);
  Status read_raw(const Tag& tag);
  Status read_tag(bool block);
  bool close_tag(bool block, size_t* end) const;
  Status read_token();
  Status read_name();
  Status read_number();
  Status read_string();
  Status read_operator();
  Status unescape(std::string_view raw, std::string* out) const;
  size_t blanks(size_t at) const;
  void add(TokenType type, std::string_view text = {}) {
    out_.push_back({type, line_, std::string(text), {}});
  }
  void advance(size_t to) {
    for (; at_ < to; ++at_) line_ += text_[at_] == '\n';
    if (to > 0) line_starting_ = text_[to - 1] == '\n';
  }
  Status wrong(const char* what) const { return fail(Code::Argument, "line %u: %s", line_, what); }

  std::string_view text_;
  std::vector<Token>& out_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;  // what was read last ended a line
  std::string open_;           // brackets that are to be closed, in a tag
};

size_t Lexer::blanks(size_t at) const {
  while (at < text_.size()) {
    const CodePoint point = decode_utf8(text_, at);
    if (!is_blank(point.code)) break;
    at += point.bytes;
  }
  return at;
}

// "raw" after an opening {%, or "endraw"; with what closes the tag.
bool Lexer::match_raw(size_t at, const char* word, char* sign, size_t* end, bool closing) const {
  if (text_.substr(at, 2) != "{%") return false;
  at += 2;
  *sign = at < text_.size() && (text_[at] == '-' || text_[at] == '+') ? text_[at++] : 0;
  at = blanks(at);
  const std::string_view name(word);
  if (text_.substr(at, name.size()) != name) return false;
  at = blanks(at + name.size());
  if (text_.substr(at, 3) == "-%}") return *end = blanks(at + 3), true;
  if (closing && text_.substr(at, 3) == "+%}") return *end = at + 3, true;
  if (text_.substr(at, 2) != "%}") return false;
  *end = at + 2;
  if (closing && text_.substr(*end, 1) == "\n") ++*end;
  return true;
}

bool Lexer::find_tag(Tag* tag) const {
  for (size_t at = text_.find('{', at_); at != text_.npos; at = text_.find('{', at + 1)) {
    const char kind = at + 1 < text_.size() ? text_[at + 1] : 0;
    if (kind != '{' && kind != '%' && kind != '#') continue;
    tag->at = at;
    if (match_raw(at, "raw", &tag->sign, &tag->end, false)) return tag->kind = 'r', true;
    tag->kind = kind;
    const char sign = at + 2 < text_.size() ? text_[at + 2] : 0;
    tag->sign = sign == '-' || sign == '+' ? sign : 0;
    tag->end = at + 2 + (tag->sign ? 1 : 0);
    return true;
  }
  return false;
}

// Text before a tag: "-" takes all white space at its end, lstrip_blocks the blanks before a tag that
// begins its line.
void Lexer::add_data(std::string_view data, char sign, bool strip_line) {
  if (sign == '-') {
    size_t end = 0;
    for (size_t at = 0; at < data.size();) {
      const CodePoint point = decode_utf8(data, at);
      at += point.bytes;
      if (!is_blank(point.code)) end = at;
    }
    data = data.substr(0, end);
  } else if (sign != '+' && strip_line) {
    const size_t newline = data.rfind('\n');
    const size_t start = newline == data.npos ? 0 : newline + 1;
    if (start > 0 || line_starting_) {
      size_t at = start;
      while (at < data.size()) {
        const CodePoint point = decode_utf8(data, at);
        if (!is_blank(point.code)) break;
        at += point.bytes;
      }
      if (at == data.size()) data = data.substr(0, start);
    }
  }
  if (!data.empty()) add(TokenType::Data, data);
}

Status Lexer::skip_comment(size_t start) {
  size_t end = text_.find("#}", start);
  if (end == text_.npos) return wrong("a comment is not closed");
  const char sign = end > start ? text_[end - 1] : 0;
  end += 2;
  if (sign == '-')
    end = blanks(end);
  else if (sign != '+' && text_.substr(end, 1) == "\n")
    ++end;
  advance(end);
  return {};
}

Status Lexer::read_raw(const Tag& tag) {
  advance(tag.end);
  for (size_t at = text_.find("{%", at_); at != text_.npos; at = text_.find("{%", at + 1)) {
    char sign;
    size_t end;
    if (!match_raw(at, "endraw", &sign, &end, true)) continue;
    add_data(text_.substr(at_, at - at_), sign, true);
    advance(end);
    return {};
  }
  return wrong("a raw block is not closed");
}

bool Lexer::close_tag(bool block, size_t* end) const {
  const std::string_view mark = block ? "%}" : "}}";
  const std::string_view rest = text_.substr(at_, 3);
  if (rest.substr(0, 1) == "-" && rest.substr(1) == mark) return *end = blanks(at_ + 3), true;
  if (block && rest.substr(0, 1) == "+" && rest.substr(1) == mark) return *end = at_ + 3, true;
  if (rest.substr(0, 2) != mark) return false;
  *end = at_ + 2;
  if (block && text_.substr(*end, 1) == "\n") ++*end;
  return true;
}

Status Lexer::read_tag(bool block) {
  const uint32_t start = line_;
  for (;;) {
    size_t end;
    if (open_.empty() && close_tag(block, &end)) {
      add(block ? TokenType::BlockEnd : TokenType::VariableEnd);
      advance(end);
      return {};
    }
    advance(blanks(at_));
    if (at_ == text_.size())
      return fail(Code::Argument, "line %u: a tag that opens here is not closed", start);
    if (open_.empty() && close_tag(block, &end)) continue;
    GRETA_TRY(read_token());
  }
}

Status Lexer::read_token() {
  const CodePoint point = decode_utf8(text_, at_);
  if (is_name_start(point.code)) return read_name();
  if (is_digit(text_[at_])) return read_number();
  if (text_[at_] == '"' || text_[at_] == '\'') return read_string();
  return read_operator();
}

Status Lexer::read_name() {
  size_t end = at_;
  while (end < text_.size()) {
    const CodePoint point = decode_utf8(text_, end);
    if (!is_name_part(point.code)) break;
    end += point.bytes;
  }
  add(TokenType::Name, text_.substr(at_, end - at_));
  advance(end);
  return {};
}

// 0b, 0o and 0x, or decimal digits with single underscores between them; a float has a fraction, an
// exponent or both.
Status Lexer::read_number() {
  const auto digits = [&](size_t at, auto&& valid, std::string* out) {
    size_t end = at;
    while (end < text_.size()) {
      const bool under = text_[end] == '_';
      const size_t digit = end + under;
      if (digit >= text_.size() || !valid(text_[digit]) || (under && end == at && out->empty())) break;
      *out += text_[digit];
      end = digit + 1;
    }
    return end;
  };
  const auto value_of = [&](const std::string& text, int base, size_t end) -> Status {
    int64_t number = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), number, base).ec != std::errc())
      return wrong("a number does not fit 64 bits");
    add(TokenType::Number, text_.substr(at_, end - at_));
    out_.back().number = number;
    advance(end);
    return {};
  };
  std::string whole;
  const char second = at_ + 1 < text_.size() ? text_[at_ + 1] | 32 : 0;
  const int base = text_[at_] != '0' ? 10 : second == 'x' ? 16 : second == 'o' ? 8 : second == 'b' ? 2 : 10;
  if (base != 10) {
    const auto valid = [&](char c) {
      const int digit = is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
      return digit < base;
    };
    const size_t end = digits(at_ + 2, valid, &whole);
    if (!whole.empty()) return value_of(whole, base, end);
  }
  whole.clear();
  size_t end = digits(at_, is_digit, &whole);
  // After a dot, digits are an index: x.0.1
  const bool index = at_ > 0 && text_[at_ - 1] == '.';
  std::string real = whole, part;
  size_t real_end = end;
  bool is_real = false;
  if (!index) {
    if (text_.substr(end, 1) == ".") {
      const size_t stop = digits(end + 1, is_digit, &part);
      if (!part.empty()) real += "." + part, real_end = stop, is_real = true;
    }
    if (real_end < text_.size() && (text_[real_end] | 32) == 'e') {
      size_t from = real_end + 1;
      std::string exponent = "e";
      if (from < text_.size() && (text_[from] == '+' || text_[from] == '-')) exponent += text_[from++];
      std::string power;
      const size_t stop = digits(from, is_digit, &power);
      if (!power.empty()) real += exponent + power, real_end = stop, is_real = true;
    }
  }
  if (!is_real) {
    if (whole.size() > 1 && whole[0] == '0' && whole.find_first_not_of('0') != whole.npos)
      return wrong("a number begins with 0");
    return value_of(whole, 10, end);
  }
  double number = 0;
  if (const size_t plus = real.find('+'); plus != real.npos) real.erase(plus, 1);
  if (std::from_chars(real.data(), real.data() + real.size(), number).ec != std::errc()) {
    const size_t exponent = real.find('e');
    const bool tiny = exponent != real.npos && real[exponent + 1] == '-';
    number = tiny ? 0.0 : __builtin_inf();
  }
  add(TokenType::Number, text_.substr(at_, real_end - at_));
  out_.back().number = number;
  advance(real_end);
  return {};
}

Status Lexer::read_string() {
  const char quote = text_[at_];
  size_t end = at_ + 1;
  while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
  if (end >= text_.size()) return wrong("a string is not closed");
  std::string meant;
  GRETA_TRY(unescape(text_.substr(at_ + 1, end - at_ - 1), &meant));
  add(TokenType::String, meant);
  advance(end + 1);
  return {};
}

// Python's escapes.
Status Lexer::unescape(std::string_view raw, std::string* out) const {
  constexpr std::string_view kFrom = "abfnrtv\\'\"", kTo = "\a\b\f\n\r\t\v\\'\"";
  for (size_t at = 0; at < raw.size(); ++at) {
    if (raw[at] != '\\') {
      *out += raw[at];
      continue;
    }
    const char c = raw[++at];  // there is one: the quote that closes is not escaped
    const size_t hex = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (const size_t simple = kFrom.find(c); simple != kFrom.npos) {
      *out += kTo[simple];
    } else if (c == '\n') {
      continue;
    } else if (hex || (c >= '0' && c <= '7')) {
      size_t from = hex ? at + 1 : at, stop = from;
      const auto valid = [&](char d) {
        return hex ? is_digit(d) || ((d | 32) >= 'a' && (d | 32) <= 'f') : d >= '0' && d <= '7';
      };
      while (stop < raw.size() && stop - from < (hex ? hex : 3) && valid(raw[stop])) ++stop;
      if (hex && stop - from != hex) return wrong("a string has a broken \\x, \\u or \\U");
      uint32_t code = 0;
      std::from_chars(raw.data() + from, raw.data() + stop, code, hex ? 16 : 8);
      if (code > kLastCode) return wrong("a string has a \\U beyond Unicode");
      append_utf8(code, out);
      at = stop - 1;
    } else if (c == 'N') {
      return fail(Code::Unsupported, "line %u: \\N{...} in a string is not supported", line_);
    } else {
      (*out += '\\') += c;
    }
  }
  return {};
}

Status Lexer::read_operator() {
  constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
  const std::string_view next = text_.substr(at_, 2);
  size_t bytes = 0;
  for (const std::string_view two : kTwo)
    if (next == two) bytes = 2;
  if (!bytes && std::string_view("+-/*%~[](){}><=.:|,;").find(next[0]) != std::string_view::npos) bytes = 1;
  if (!bytes) return fail(Code::Argument, "line %u: unexpected %s", line_, Quoted(next.substr(0, 1)).c_str());
  const std::string_view op = text_.substr(at_, bytes);
  constexpr std::string_view kOpen = "([{", kClose = ")]}";
  if (const size_t open = kOpen.find(op); open != kOpen.npos) open_ += kClose[open];
  if (kClose.find(op) != kClose.npos) {
    if (open_.empty() || open_.back() != op[0])
      return fail(Code::Argument, "line %u: unexpected '%c'", line_, op[0]);
    open_.pop_back();
  }
  add(TokenType::Operator, op);
  advance(at_ + bytes);
  return {};
}

Status Lexer::run() {
  for (Tag tag; find_tag(&tag);) {
    add_data(text_.substr(at_, tag.at - at_), tag.sign, tag.kind != '{');
    if (tag.kind == 'r') {
      GRETA_TRY(read_raw(tag));
      continue;
    }
    advance(tag.end);
    if (tag.kind == '#') {
      GRETA_TRY(skip_comment(tag.end));
      continue;
    }
    add(tag.kind == '%' ? TokenType::BlockBegin : TokenType::VariableBegin);
    GRETA_TRY(read_tag(tag.kind == '%'));
  }
  if (at_ < text_.size()) add(TokenType::Data, text_.substr(at_));
  advance(text_.size());
  add(TokenType::End);
  return {};
}

}  // namespace

Status tokenize(std::string_view text, std::vector<Token>* out) {
  const std::string valid = is_valid_utf8(text) ? std::string() : valid_utf8(text);
  std::string source = normal_newlines(valid.empty() ? text : valid);
  if (!source.empty() && source.back() == '\n') source.pop_back();  // one line end at the end is dropped
  return Lexer(source, out).run();
}

}  // namespace greta::jinja
