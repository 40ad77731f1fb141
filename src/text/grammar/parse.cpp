// Reads a grammar out of GBNF text.
//
//   rule:      name ::= alternatives, to the end of the line; within ( ) and after | it goes on
//   element:   "text"  [a-z]  [^a-z]  .  name  ( alternatives )
//   token:     <text of a token>  <[id of a token]>  !<token>
//   repeat:    element * + ? {m} {m,} {m,n}
//   escapes:   \n \r \t \\ \" \[ \] \- \^ \xXX \uXXXX \UXXXXXXXX
#include "text/grammar/build.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/unicode.h"

namespace greta {
namespace {

// The parser calls itself for what is nested. Functions that do not call back are not inlined, since they
// would make the stack frames of all levels larger.
class Parser {
 public:
  Parser(std::string_view text, const Tokenizer* tokenizer) : text_(text), tokenizer_(tokenizer) {}

  Status parse(std::string_view root, std::shared_ptr<const Grammar>* out) {
    for (skip(true); at_ < text_.size(); skip(true)) {
      const Status status = rule();
      if (!status.ok()) return within(status, "grammar, line %u", line());  // lines are counted once
    }
    uint32_t start = 0;
    GRETA_TRY(builder_.rule_of(root, &start));
    return builder_.finish(start, out);
  }

 private:
  using Sequence = GrammarBuilder::Sequence;

  uint32_t line() const {
    uint32_t lines = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) lines += text_[i] == '\n';
    return lines;
  }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool ends() const { return at_ >= text_.size(); }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip(bool lines) {
    for (; !ends(); ++at_) {
      if (peek() == '#')
        while (!ends() && peek() != '\n' && peek() != '\r') ++at_;
      if (ends() || !(peek() == ' ' || peek() == '\t' || (lines && (peek() == '\n' || peek() == '\r'))))
        return;
    }
  }
  [[gnu::noinline]] Status wrong(const char* expected) const {
    if (ends()) return fail(Code::Argument, "expected %s, the grammar ends", expected);
    return fail(Code::Argument, "expected %s at %s", expected, Quoted(text_.substr(at_, 20)).c_str());
  }
  static bool in_name(char c) { return is_ascii_alnum(c) || c == '-' || c == '_'; }
  std::string_view name() {
    const size_t begin = at_;
    while (in_name(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Status rule() {
    const std::string_view word = name();
    if (word.empty()) return wrong("the name of a rule");
    uint32_t rule = 0;
    GRETA_TRY(builder_.rule_of(word, &rule));
    if (builder_.is_defined(rule))
      return fail(Code::Argument, "the rule %s is defined twice", Quoted(word).c_str());
    skip(false);
    if (!take("::=")) return wrong("::=");
    skip(true);
    std::vector<Sequence> all;
    GRETA_TRY(alternatives(&all));
    builder_.define(rule, std::move(all));
    if (!ends() && peek() != '\n' && peek() != '\r') return wrong("the end of the rule");
    return {};
  }

  Status alternatives(std::vector<Sequence>* out) {
    do {
      if (!out->empty()) skip(true);
      out->emplace_back();
      GRETA_TRY(sequence(&out->back()));
    } while (take("|"));
    return {};
  }

  Status sequence(Sequence* out) {
    for (;;) {
      skip(nesting_ > 0);
      Sequence item;
      bool any = false;
      GRETA_TRY(element(&item, &any));
      if (!any) return {};
      GRETA_TRY(repetitions(&item));
      out->insert(out->end(), item.begin(), item.end());
    }
  }

  Status element(Sequence* out, bool* any) {
    *any = true;
    const char c = peek();
    if (c == '"') return ++at_, literal(out);
    if (c == '[') return ++at_, character_class(out);
    if (c == '.') return ++at_, builder_.append_class({}, true, out);
    if (c == '(') return ++at_, group(out);
    if (c == '<' || (c == '!' && peek(1) == '<')) return token(out);
    if (in_name(c)) {
      uint32_t rule = 0;
      GRETA_TRY(builder_.rule_of(name(), &rule));
      out->push_back({GrammarElement::Rule, rule});
      return {};
    }
    *any = false;
    return {};
  }

  Status group(Sequence* out) {
    if (++nesting_ > kMaxGrammarNesting)
      return fail(Code::Argument, "parentheses nest deeper than %u", kMaxGrammarNesting);
    skip(true);
    uint32_t rule = 0;
    std::vector<Sequence> all;
    GRETA_TRY(builder_.add_rule(&rule));
    GRETA_TRY(alternatives(&all));
    builder_.define(rule, std::move(all));
    skip(true);
    if (!take(")")) return wrong(")");
    --nesting_;
    out->push_back({GrammarElement::Rule, rule});
    return {};
  }

  // A repetition may be repeated again, as in "a"??.
  [[gnu::noinline]] Status repetitions(Sequence* item) {
    for (uint32_t count = 0;; ++count) {
      const size_t before = at_;
      skip(nesting_ > 0);
      uint32_t low = 0, high = GrammarBuilder::kNoLimit;
      if (take("+"))
        low = 1;
      else if (take("?"))
        high = 1;
      else if (take("{"))
        GRETA_TRY(bounds(&low, &high));
      else if (!take("*"))
        return at_ = before, Status{};
      if (count >= kMaxGrammarNesting)
        return fail(Code::Argument, "more than %u repetitions of one another", count);
      if (low == 1 && high == 1) continue;
      Sequence repeated;
      GRETA_TRY(builder_.repeat(*item, low, high, &repeated));
      *item = std::move(repeated);
    }
  }

  Status bounds(uint32_t* low, uint32_t* high) {
    skip(false);
    GRETA_TRY(number(low));
    *high = *low;
    skip(false);
    if (take(",")) {
      skip(false);
      *high = GrammarBuilder::kNoLimit;
      if (peek() != '}') GRETA_TRY(number(high));
      skip(false);
    }
    return take("}") ? Status{} : wrong("}");
  }

  Status number(uint32_t* out) {
    uint64_t value = 0;
    const size_t begin = at_;
    for (; peek() >= '0' && peek() <= '9' && value < 1000000000; ++at_)
      value = value * 10 + uint64_t(peek() - '0');
    if (at_ == begin) return wrong("a number");
    *out = uint32_t(value);
    return {};
  }

  // Reads one character, which may be escaped.
  Status character(uint32_t* code) {
    if (ends()) return wrong("a character");
    if (peek() != '\\') {
      const CodePoint next = decode_utf8(text_, at_);
      at_ += next.bytes;
      *code = next.code;
      return {};
    }
    const char letter = peek(1);
    at_ += 2;
    const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    if (digits) return hexadecimal(digits, code);
    static constexpr std::string_view kLetters = "nrt\\\"[]-^", kMeant = "\n\r\t\\\"[]-^";
    const size_t known = kLetters.find(letter);
    if (known == kLetters.npos || letter == '\0') return at_ -= 2, wrong("a known escape");
    *code = uint8_t(kMeant[known]);
    return {};
  }

  Status hexadecimal(size_t digits, uint32_t* code) {
    uint64_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const int digit = hex_digit(peek());
      if (digit < 0) return wrong("a hexadecimal digit");
      value = value << 4 | uint64_t(digit);
    }
    if (value > kLastCode || (value >= 0xD800 && value < 0xE000))
      return fail(Code::Argument, "U+%llX is no character", (unsigned long long)value);
    *code = uint32_t(value);
    return {};
  }

  [[gnu::noinline]] Status literal(Sequence* out) {
    std::string bytes;
    while (!take("\"")) {
      uint32_t code = 0;
      GRETA_TRY(character(&code));
      append_utf8(code, &bytes);
    }
    return builder_.append_text(bytes, out);
  }

  [[gnu::noinline]] Status character_class(Sequence* out) {
    const bool negated = take("^");
    std::vector<CharRange> ranges;
    while (!take("]")) {
      CharRange range = {};
      GRETA_TRY(character(&range.first));
      range.last = range.first;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        GRETA_TRY(character(&range.last));
        if (range.last < range.first) return fail(Code::Argument, "a range of characters runs backwards");
      }
      ranges.push_back(range);
    }
    return builder_.append_class(std::move(ranges), negated, out);
  }

  [[gnu::noinline]] Status token(Sequence* out) {
    const GrammarElement::Kind kind = take("!") ? GrammarElement::NotToken : GrammarElement::Token;
    if (!tokenizer_) return fail(Code::Argument, "a token in a grammar that has no vocabulary");
    uint32_t id = 0;
    if (take("<[")) {
      GRETA_TRY(number(&id));
      if (!take("]>")) return wrong("]>");
      if (id >= tokenizer_->size()) return fail(Code::Argument, "there is no token %u", id);
    } else {
      const size_t end = text_.find('>', at_);
      if (end == text_.npos) return wrong("a token's text and >");
      const std::string_view text = text_.substr(at_, end + 1 - at_);
      const int32_t found = tokenizer_->find(text);
      if (found == kNoToken) return fail(Code::Argument, "no token has the text %s", Quoted(text).c_str());
      at_ = end + 1;
      id = uint32_t(found);
    }
    out->push_back({kind, id});
    return {};
  }

  std::string_view text_;
  const Tokenizer* tokenizer_;
  size_t at_ = 0;
  uint32_t nesting_ = 0;
  GrammarBuilder builder_;
};

}  // namespace

Status parse_grammar(std::string_view text, std::string_view root, const Tokenizer* tokenizer,
                     std::shared_ptr<const Grammar>* out) {
  if (text.size() > kMaxGrammarBytes)
    return fail(Code::Argument, "a grammar of %zu bytes, at most %llu", text.size(),
                (unsigned long long)kMaxGrammarBytes);
  return Parser(text, tokenizer).parse(root, out);
}

}  // namespace greta
