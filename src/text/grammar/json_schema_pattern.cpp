// Turns regular expressions (of ECMA-262, as JSON schemas have them) into GBNF.
#include <algorithm>
#include <vector>

#include "text/grammar/build.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/json_schema_parts.h"
#include "text/unicode/unicode.h"

namespace greta {
namespace {

using Range = CharRange;
using Ranges = std::vector<Range>;

struct ShortClass {
  char letter;
  Ranges ranges;
};
const ShortClass kShortClasses[] = {
    {'d', {{'0', '9'}}},
    {'w', {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
    {'s',
     {{9, 13},
      {32, 32},
      {0xA0, 0xA0},
      {0x1680, 0x1680},
      {0x2000, 0x200A},
      {0x2028, 0x2029},  //
      {0x202F, 0x202F},
      {0x205F, 0x205F},
      {0x3000, 0x3000},
      {0xFEFF, 0xFEFF}}},
};

Ranges all_but(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  Ranges out;
  uint32_t next = 0;
  for (const Range& r : ranges) {
    if (r.first > next) out.push_back({next, r.first - 1});
    next = std::max(next, r.last + 1);
  }
  if (next <= kLastCode) out.push_back({next, kLastCode});
  return out;
}

// How JSON writes the quote, the backslash and characters below a space; all others stand for themselves.
struct Spelling {
  uint32_t code;
  const char* text;
};
constexpr Spelling kSpellings[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"},
                                   {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}};

// GBNF for one character of the ranges, as JSON spells it; "" if none of them has a spelling here.
std::string json_character(const Ranges& ranges) {
  std::string plain, out;
  for (const Range& r : ranges)
    for (const Range& part : {Range{' ', '!'}, {'#', '['}, {']', 0xD7FF}, {0xE000, kLastCode}}) {
      const uint32_t first = std::max(r.first, part.first), last = std::min(r.last, part.last);
      char text[32];
      if (first > last) continue;
      format_text(text, sizeof text, "\\U%08X-\\U%08X", unsigned(first), unsigned(last));
      plain += text;
    }
  if (!plain.empty()) out = "[" + plain + "]";
  for (const Spelling& s : kSpellings)
    if (std::any_of(ranges.begin(), ranges.end(),
                    [&](const Range& r) { return r.first <= s.code && s.code <= r.last; }))
      out += (out.empty() ? "" : " | ") + gbnf_literal(s.text);
  return out.find(" | ") == out.npos ? out : "(" + out + ")";
}

class Pattern {
 public:
  explicit Pattern(std::string_view text) : text_(text) {}

  Status convert(std::string* out) {
    if (text_.size() < 2 || text_.front() != '^' || text_.back() != '$' || text_.size() > kMaxPatternBytes)
      return refuse("it must begin with ^ and end with $");
    text_ = text_.substr(1, text_.size() - 2);
    bool several = false;
    GRETA_TRY(alternatives(0, &several, out));
    if (at_ < text_.size()) return refuse("a ) without its (");
    if (several) return refuse("| must be in parentheses, as the ^ and $ would belong to one side");
    return {};
  }

 private:
  static constexpr size_t kMaxPatternBytes = 4096;

  [[gnu::noinline]] Status refuse(const char* what) const {
    return fail(Code::Unsupported, "JSON schema: the pattern %s: %s", Quoted(text_).c_str(), what);
  }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Status alternatives(uint32_t depth, bool* several, std::string* out) {
    if (depth > kMaxSchemaDepth) return refuse("its groups are too deep");
    for (*several = false;; *several = true) {
      std::string all;
      while (at_ < text_.size() && peek() != '|' && peek() != ')') {
        std::string one;
        GRETA_TRY(atom(depth, &one));
        GRETA_TRY(repetition(&one));
        all += (all.empty() ? "" : " ") + one;
      }
      *out += all.empty() ? "\"\"" : all;
      if (!take('|')) return {};
      *out += " | ";
    }
  }

  Status atom(uint32_t depth, std::string* out) {
    const char c = peek();
    if (c == '(') return ++at_, group(depth, out);
    if (c == '*' || c == '+' || c == '?' || c == '{') return refuse("a repeat of nothing");
    if (c == '^' || c == '$') return refuse("^ and $ are only at its ends");
    if (c == ']' || c == '}') return refuse("a ] or } by itself is written with a backslash");
    return one_character(out);
  }

  // The parser calls itself for groups, so functions that do not call back are not inlined.
  [[gnu::noinline]] Status one_character(std::string* out) {
    const char c = peek();
    Ranges ranges;
    if (c == '.') {
      ++at_;
      ranges = all_but({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
    } else if (c == '[') {
      ++at_;
      GRETA_TRY(character_class(&ranges));
    } else {
      GRETA_TRY(character(&ranges));
    }
    *out = json_character(ranges);
    return out->empty() ? refuse("a character that JSON has no short spelling for") : Status{};
  }

  Status group(uint32_t depth, std::string* out) {
    if (take('?') && !take(':')) return refuse("of groups only ( ) and (?: )");
    bool several = false;
    std::string body;
    GRETA_TRY(alternatives(depth + 1, &several, &body));
    if (!take(')')) return refuse("a ( without its )");
    *out = "(" + body + ")";
    return {};
  }

  [[gnu::noinline]] Status repetition(std::string* out) {
    const char c = peek();
    if (c == '*' || c == '+' || c == '?') {
      *out += text_[at_++];
    } else if (take('{')) {
      uint32_t least = 0;
      GRETA_TRY(number(&least));
      uint32_t most = least;
      const bool open = take(',') && peek() == '}';
      if (!open && text_[at_ - 1] == ',') GRETA_TRY(number(&most));
      if (!take('}') || most < least) return refuse("a repeat is {m}, {m,} or {m,n}");
      *out += "{" + std::to_string(least) + "," + (open ? "" : std::to_string(most)) + "}";
    } else {
      return {};
    }
    take('?');  // it changes nothing, since the whole text must match
    return {};
  }

  Status number(uint32_t* out) {
    const size_t begin = at_;
    *out = 0;
    for (; peek() >= '0' && peek() <= '9' && *out <= kMaxGrammarRepeats; ++at_)
      *out = *out * 10 + uint32_t(peek() - '0');
    return at_ == begin || *out > kMaxGrammarRepeats ? refuse("a repeat of at most 10000") : Status{};
  }

  // Behind the [.
  [[gnu::noinline]] Status character_class(Ranges* out) {
    const bool negated = take('^');
    while (!take(']')) {
      if (at_ >= text_.size()) return refuse("a [ without its ]");
      Ranges first, last;
      GRETA_TRY(character(&first));
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        if (at_ >= text_.size()) return refuse("a [ without its ]");
        GRETA_TRY(character(&last));
        if (!is_one(first) || !is_one(last) || last[0].last < first[0].first)
          return refuse("a range that is none");
        first[0].last = last[0].last;
      }
      out->insert(out->end(), first.begin(), first.end());
    }
    if (out->empty()) return refuse("a class without characters");
    if (negated) *out = all_but(std::move(*out));
    return {};
  }
  static bool is_one(const Ranges& r) { return r.size() == 1 && r[0].first == r[0].last; }

  // Reads one character, or what \d and its like stand for.
  Status character(Ranges* out) {
    if (!take('\\')) {
      const CodePoint next = decode_utf8(text_, at_);
      at_ += next.bytes;
      return out->push_back({next.code, next.code}), Status{};
    }
    const char letter = peek();
    if (at_ >= text_.size()) return refuse("a \\ at its end");
    ++at_;
    for (const ShortClass& each : kShortClasses) {
      if (letter == each.letter) return *out = each.ranges, Status{};
      if (letter == each.letter - 'a' + 'A') return *out = all_but(each.ranges), Status{};
    }
    uint32_t code = uint8_t(letter);
    static constexpr std::string_view kLetters = "fnrtv", kMeant = "\f\n\r\t\v",
                                      kMarks = "^$\\.*+?()[]{}|/-\"'#&,:;<=>@_`~! %";
    if (letter == 'x' || letter == 'u')
      GRETA_TRY(hexadecimal(letter == 'x' ? 2 : 4, &code));
    else if (const size_t known = kLetters.find(letter); known != kLetters.npos)
      code = uint8_t(kMeant[known]);
    else if (kMarks.find(letter) == kMarks.npos)
      return refuse("an escape that is not known");
    return out->push_back({code, code}), Status{};
  }

  Status hexadecimal(size_t digits, uint32_t* code) {
    *code = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const int digit = hex_digit(peek());
      if (digit < 0) return refuse("\\x wants two hexadecimal digits, \\u four");
      *code = *code << 4 | uint32_t(digit);
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Status json_pattern_rule(std::string_view pattern, std::string* out) { return Pattern(pattern).convert(out); }

}  // namespace greta
