// Hand-written scanners for the published regular expressions of the pre-tokenizers.
//
// Each looks at most two code points ahead or walks runs that it then consumes, so they are linear.
#include "engine/tokenizer_split.h"

#include "engine/unicode.h"

namespace greta {
namespace {

// A place in the text and what stands there. Beyond the end nothing matches.
struct Scan {
  std::string_view text;
  size_t at = 0;
  uint32_t code = 0, bytes = 0;
  CharClass kind = CharClass::Other;

  Scan(std::string_view all, size_t from) : text(all) { go(from); }
  void go(size_t to) {
    at = to;
    const CodePoint point = at < text.size() ? decode_utf8(text, at) : CodePoint{0, 0};
    code = point.code;
    bytes = point.bytes;
    kind = bytes ? char_class(code) : CharClass::Other;
  }
  void next() { go(at + bytes); }
  bool end() const { return bytes == 0; }
  bool letter() const { return is_letter(kind); }
  bool number() const { return kind == CharClass::Number; }
  bool space() const { return bytes && is_space(code); }
  bool newline() const { return bytes && (code == '\r' || code == '\n'); }
  bool other() const { return bytes && !letter() && !number() && !is_space(code); }  // [^\s\p{L}\p{N}]
};

// The letter of an English contraction in lower case; with `fold` also from upper case, and the
// long s, which (?i:s) matches too.
uint32_t contraction_letter(uint32_t code, bool fold) {
  if (fold && code >= 'A' && code <= 'Z') return code + 32;
  return fold && code == 0x17F ? 's' : code;
}

// 's|'t|'re|'ve|'m|'ll|'d at `from`: its end, or `from`.
size_t contraction(std::string_view text, size_t from, bool fold) {
  Scan scan(text, from);
  if (scan.code != '\'') return from;
  scan.next();
  if (scan.end()) return from;
  const uint32_t first = contraction_letter(scan.code, fold);
  scan.next();
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return scan.at;
  if (scan.end()) return from;
  const uint32_t second = contraction_letter(scan.code, fold);
  scan.next();
  const bool pair = (second == 'e' && (first == 'r' || first == 'v')) || (first == 'l' && second == 'l');
  return pair ? scan.at : from;
}

// The last three alternatives at a run of white space:
//   \s*[\r\n]+ | \s+(?!\S) | \s+     (the first of them only with `newlines`)
size_t white_space(std::string_view text, size_t from, bool newlines) {
  size_t after_newline = from, last = from;
  Scan scan(text, from);
  for (; scan.space(); scan.next()) {
    last = scan.at;
    if (scan.newline()) after_newline = scan.at + scan.bytes;
  }
  if (newlines && after_newline > from) return after_newline;
  return scan.end() || last == from ? scan.at : last;  // leaves one for the word that follows
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+
template <uint32_t kDigits>
size_t llama3_word(std::string_view text, size_t from) {
  const size_t contracted = contraction(text, from, true);
  if (contracted > from) return contracted;
  Scan scan(text, from);
  if (scan.number()) {
    for (uint32_t i = 0; i < kDigits && scan.number(); ++i) scan.next();
    return scan.at;
  }
  Scan second(text, from + scan.bytes);
  if (scan.letter() || (!scan.newline() && second.letter())) {
    for (scan = second; scan.letter();) scan.next();
    return scan.at;
  }
  if (scan.other() || (scan.code == ' ' && second.other())) {
    for (scan = second; scan.other();) scan.next();
    while (scan.newline()) scan.next();
    return scan.at;
  }
  return white_space(text, from, true);
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2_word(std::string_view text, size_t from) {
  const size_t contracted = contraction(text, from, false);
  if (contracted > from) return contracted;
  Scan scan(text, from);
  if (scan.code == ' ') scan.next();
  const bool letter = scan.letter(), number = scan.number();
  if (!letter && !number && !scan.other()) return white_space(text, from, false);
  while (!scan.end() && scan.letter() == letter && scan.number() == number && !scan.space()) scan.next();
  return scan.at;
}

template <size_t (*kWord)(std::string_view, size_t)>
void split_by(std::string_view text, std::vector<uint32_t>* ends) {
  for (size_t at = 0; at < text.size();) ends->push_back(uint32_t(at = kWord(text, at)));
}

constexpr SplitRule kRules[] = {
    {"gpt-2", split_by<gpt2_word>, false, false},  // the default
    {"llama-bpe", split_by<llama3_word<3>>, true, true},
    {"llama3", split_by<llama3_word<3>>, true, true},
    {"llama-v3", split_by<llama3_word<3>>, true, true},
    {"qwen2", split_by<llama3_word<1>>, false, false},
};

}  // namespace

const SplitRule* find_split_rule(std::string_view name) {
  for (const SplitRule& rule : kRules)
    if (name == rule.name) return &rule;
  return nullptr;
}

const SplitRule& default_split_rule() { return kRules[0]; }

}  // namespace greta
