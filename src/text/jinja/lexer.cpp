#include "text/jinja/lexer.h"

#include <algorithm>
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
  size_t read_digits(size_t at, int base, std::string* digits) const;
  void add_number(Value number, size_t end) {
    add(TokenType::Number, text_.substr(at_, end - at_));
    out_.back().number = std::move(number);
    advance(end);
  }
  Status read_string();
  Status read_operator();
  Status unescape(std::string_view raw, std::string* out) const;
  size_t blanks(size_t at) const { return at + span_of(text_.substr(at), is_blank); }  // where they end
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
  std::string open_;           // the closing brackets that the tag still needs, the next one last
};

// Returns true if the tag at `at` is {% raw %}, or {% endraw %} with `closing`, and sets where it ends.
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

// The text before a tag. The sign "-" removes all white space at its end; lstrip_blocks removes blanks before
// a tag that begins its line.
void Lexer::add_data(std::string_view data, char sign, bool strip_line) {
  if (sign == '-') {
    size_t end = 0;
    for (const auto& [code, bytes, at] : CodePoints(data))
      if (!is_blank(code)) end = at + bytes;
    data = data.substr(0, end);
  } else if (sign != '+' && strip_line) {
    const size_t newline = data.rfind('\n');
    const size_t start = newline == data.npos ? 0 : newline + 1;
    const bool blank = start + span_of(data.substr(start), is_blank) == data.size();
    if (blank && (start > 0 || line_starting_)) data = data.substr(0, start);
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
  const size_t end = at_ + span_of(text_.substr(at_), is_name_part);
  add(TokenType::Name, text_.substr(at_, end - at_));
  advance(end);
  return {};
}

// Appends the digits from `at` on, between which single underscores may stand; returns where they end.
size_t Lexer::read_digits(size_t at, int base, std::string* digits) const {
  size_t end = at;
  for (;;) {
    const size_t digit = end + (end > at && text_.substr(end, 1) == "_");
    const char c = digit < text_.size() ? text_[digit] : 0, lower = char(c | 32);
    const int value = is_digit(c) ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 16;
    if (value >= base) return end;
    *digits += c;
    end = digit + 1;
  }
}

// An integer follows 0b, 0o or 0x, or is decimal. A float has a fraction, an exponent or both.
Status Lexer::read_number() {
  std::string whole, fraction, power;
  const char mark = text_[at_] == '0' && at_ + 1 < text_.size() ? text_[at_ + 1] | 32 : 0;
  int base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
  size_t end = base == 10 ? at_ : read_digits(at_ + 2, base, &whole);
  if (whole.empty()) {
    base = 10;
    end = read_digits(at_, base, &whole);
  }
  std::string real = whole;
  const bool is_index = at_ > 0 && text_[at_ - 1] == '.';  // as in x.0.1
  if (base == 10 && !is_index && text_.substr(end, 1) == ".") {
    const size_t stop = read_digits(end + 1, 10, &fraction);
    if (!fraction.empty()) real += "." + fraction, end = stop;
  }
  if (base == 10 && !is_index && end < text_.size() && (text_[end] | 32) == 'e') {
    const std::string_view sign = text_.substr(end + 1, 1);
    const size_t stop = read_digits(end + 1 + (sign == "-" || sign == "+"), 10, &power);
    if (!power.empty()) real += (sign == "-" ? "e-" : "e") + power, end = stop;
  }
  if (fraction.empty() && power.empty()) {
    if (base == 10 && whole[0] == '0' && whole.find_first_not_of('0') != whole.npos)
      return wrong("a number begins with 0");
    int64_t number = 0;
    if (std::from_chars(whole.data(), whole.data() + whole.size(), number, base).ec != std::errc())
      return wrong("a number does not fit 64 bits");
    return add_number(number, end), Status{};
  }
  double number = 0;
  if (std::from_chars(real.data(), real.data() + real.size(), number).ec != std::errc())
    number = real.find("e-") != real.npos ? 0.0 : __builtin_inf();
  return add_number(number, end), Status{};
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

// Resolves Python's escapes.
Status Lexer::unescape(std::string_view raw, std::string* out) const {
  constexpr std::string_view kFrom = "abfnrtv\\'\"", kTo = "\a\b\f\n\r\t\v\\'\"";
  for (size_t at = 0; at < raw.size(); ++at) {
    if (raw[at] != '\\') {
      *out += raw[at];
      continue;
    }
    const char c = raw[++at];  // always there, since the closing quote is not escaped
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
  if (std::find(std::begin(kTwo), std::end(kTwo), next) != std::end(kTwo)) bytes = 2;
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
