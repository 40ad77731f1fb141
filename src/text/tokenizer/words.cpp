// The pre-tokenizers that cut text into words. Each scanner is written by hand for the regular expression
// above it, which the model's authors published in their tokenizer.json.
#include <algorithm>
#include <iterator>

#include "text/tokenizer/split.h"

namespace greta {
namespace {

// The letter of an English contraction in lower case. With `fold`, capitals count too, and so does the long
// s, which (?i:s) matches.
uint32_t contraction_letter(uint32_t code, bool fold) {
  if (fold && code >= 'A' && code <= 'Z') return code + 32;
  return fold && code == 0x17F ? 's' : code;
}

// The end of 's|'t|'re|'ve|'m|'ll|'d at `from`, or `from` if none is there.
size_t contraction(std::string_view text, size_t from, bool fold) {
  if (from >= text.size() || text[from] != '\'') return from;
  Scan scan(text, from + 1);
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

// What an expression has for white space, before its last part \s+(?!\S)|\s+.
enum class White {
  Plain,       // nothing
  Newlines,    // \s*[\r\n]+
  OneNewline,  // [\r\n]
  Cascade      // \s*[\r\n]+, and jais2_white_space instead of the two
};

// The end of the white space at `from`, or `from` if none is there.
size_t white_space(std::string_view text, size_t from, White how) {
  size_t after_newline = from, last = from;
  Scan scan(text, from);
  if (how == White::OneNewline && scan.newline()) return from + scan.bytes;
  for (; scan.space(); scan.next()) {
    last = scan.at;
    if (scan.newline()) after_newline = scan.at + scan.bytes;
  }
  if (how != White::Plain && how != White::OneNewline && after_newline > from) return after_newline;
  return scan.end() || last == from ? scan.at : last;  // the last one is left for the word that follows
}

// What may follow ` ?[^\s\p{L}\p{N}]+`.
enum class Tail {
  None,
  Newlines,        // [\r\n]*
  NewlinesSlashes  // [\r\n/]*
};

size_t tail_end(Scan scan, Tail tail) {
  if (tail == Tail::None) return scan.at;
  while (scan.newline() || (tail == Tail::NewlinesSlashes && scan.code == '/')) scan.next();
  return scan.at;
}

// The end of  ?[^\s\p{L}\p{N}]+ and its tail, or `from`. With `marks`, the class is [^\s\p{L}\p{M}\p{N}].
size_t other_run(std::string_view text, size_t from, Tail tail, bool marks) {
  const auto other = [&](const Scan& s) { return s.other() && !(marks && s.mark()); };
  Scan scan(text, from);
  if (scan.code == ' ') scan.next();
  if (!other(scan)) return from;
  while (other(scan)) scan.next();
  return tail_end(scan, tail);
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2_word(std::string_view text, size_t from) {
  const size_t contracted = contraction(text, from, false);
  if (contracted > from) return contracted;
  Scan scan(text, from);
  if (scan.code == ' ') scan.next();
  const bool letter = scan.letter(), number = scan.number();
  if (!letter && !number && !scan.other()) return white_space(text, from, White::Plain);
  while (!scan.end() && scan.letter() == letter && scan.number() == number && !scan.space()) scan.next();
  return scan.at;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+
// (Bailing's \s*[\r\n] and possessive quantifiers match the same, and so does \p{N}{1}.)
struct Llama3 {
  bool contractions;
  bool marks;       // [\p{L}\p{M}]+ for \p{L}+ and [^\s\p{L}\p{M}\p{N}] for [^\s\p{L}\p{N}]
  uint32_t digits;  // D
  Tail tail;
  White white;
};

template <Llama3 kHow>
size_t llama3_word(std::string_view text, size_t from) {
  if constexpr (kHow.contractions) {
    const size_t contracted = contraction(text, from, true);
    if (contracted > from) return contracted;
  }
  const auto in_word = [](const Scan& s) { return s.letter() || (kHow.marks && s.mark()); };
  Scan scan(text, from);
  if (scan.number()) {
    for (uint32_t i = 0; i < kHow.digits && scan.number(); ++i) scan.next();
    return scan.at;
  }
  Scan second(text, from + scan.bytes);
  if (in_word(scan) || (!scan.newline() && in_word(second))) {
    for (scan = second; in_word(scan);) scan.next();
    return scan.at;
  }
  const size_t others = other_run(text, from, kHow.tail, kHow.marks);
  if (others > from) return others;
  if (kHow.white == White::Cascade && scan.space()) return from;
  return white_space(text, from, kHow.white);
}

// ...|\s{512}(?!\S)|\s{256}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1} for a whole run of white space, which
// begins at `from`: appends its pieces and returns their end.
size_t jais2_white_space(std::string_view text, size_t from, Pieces out) {
  const size_t newlines = white_space(text, from, White::Newlines);
  if (text[newlines - 1] == '\n' || text[newlines - 1] == '\r') return out.end(newlines), newlines;
  uint64_t left = 0;
  Scan run(text, from);
  for (; run.space(); run.next()) ++left;
  const uint64_t kept = run.end() ? 0 : 1;  // a character that \S follows matches only as a last resort
  Scan scan(text, from);
  while (left > kept) {
    uint64_t take = 512;
    while (take > left - kept && take > 1) take /= 2;
    left -= take;
    while (take--) scan.next();
    out.end(scan.at);
  }
  if (left && scan.at == from) {
    scan.next();
    out.end(scan.at);
  }
  return scan.at;
}

// ---- words by their case ----

struct Cased {
  bool contractions;  // (?i:'s|'t|'re|'ve|'m|'ll|'d)? after the letters
  bool han;           // [\p{Han}]+ first, and letters without Han
  uint32_t digits;    // \p{N}{1,D}
  Tail tail;
};

template <Cased kHow>
bool caseless(const Scan& s) {  // [\p{Lm}\p{Lo}\p{M}]
  return (s.kind == CharClass::Modifier || s.kind == CharClass::OtherLetter || s.mark()) &&
         !(kHow.han && is_han(s.code));
}
template <Cased kHow>
bool upper(const Scan& s) {  // U: [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  return s.kind == CharClass::Upper || s.kind == CharClass::Title || caseless<kHow>(s);
}
template <Cased kHow>
bool lower(const Scan& s) {  // L: [\p{Ll}\p{Lm}\p{Lo}\p{M}]
  return s.kind == CharClass::Lower || caseless<kHow>(s);
}

// Sets *with_lower to the end of U*L+ at `from`, and returns the end of U+L*. Either end is `from` if there
// is no match.
template <Cased kHow>
size_t cased_letters(std::string_view text, size_t from, size_t* with_lower) {
  size_t after_caseless = from;
  Scan scan(text, from);
  for (; upper<kHow>(scan); scan.next())
    if (caseless<kHow>(scan)) after_caseless = scan.at + scan.bytes;
  const bool has_upper = scan.at > from;
  if (!lower<kHow>(scan)) return *with_lower = after_caseless, scan.at;  // U* gives back to L+
  while (lower<kHow>(scan)) scan.next();
  *with_lower = scan.at;
  return has_upper ? scan.at : from;
}

// [^\r\n\p{L}\p{N}]?U*L+(contraction)?|[^\r\n\p{L}\p{N}]?U+L*(contraction)?|\p{N}{1,D}|
//  ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <Cased kHow>
size_t cased_word(std::string_view text, size_t from) {
  Scan scan(text, from);
  if (kHow.han && is_han(scan.code)) {
    while (!scan.end() && is_han(scan.code)) scan.next();
    return scan.at;
  }
  if (scan.number()) {
    for (uint32_t i = 0; i < kHow.digits && scan.number(); ++i) scan.next();
    return scan.at;
  }
  if (!scan.newline()) {
    const size_t start = scan.letter() ? from : from + scan.bytes;
    size_t with_lower;
    size_t end = cased_letters<kHow>(text, start, &with_lower);
    if (with_lower > start) {
      end = with_lower;
    } else if (scan.mark()) {  // no letter before: the mark is one of L itself
      cased_letters<kHow>(text, from, &end);
    }
    if (end > start || scan.mark()) return kHow.contractions ? contraction(text, end, true) : end;
  }
  const size_t others = other_run(text, from, kHow.tail, false);
  return others > from ? others : white_space(text, from, White::Newlines);
}

// ---- words beside punctuation and symbols ----

bool ascii_letter(uint32_t code) { return (code | 32) >= 'a' && (code | 32) <= 'z'; }
bool sign(const Scan& s) { return is_punctuation(s.kind) || s.kind == CharClass::Symbol; }

// [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
//  ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <Tail kTail, White kWhite>
size_t deepseek3_word(std::string_view text, size_t from) {
  Scan scan(text, from), second(text, from + scan.bytes);
  const auto in_word = [](const Scan& s) { return s.letter() || s.mark(); };
  if (scan.code < 128 && sign(scan) && ascii_letter(second.code)) {
    while (ascii_letter(second.code)) second.next();
    return second.at;
  }
  if (in_word(scan) || (!scan.newline() && !sign(scan) && in_word(second))) {
    for (scan = second; in_word(scan);) scan.next();
    return scan.at;
  }
  if (scan.code == ' ' && sign(second)) scan = second;
  if (sign(scan)) {
    while (sign(scan)) scan.next();
    return tail_end(scan, kTail);
  }
  return white_space(text, from, kWhite);  // `from` at a number, a control or an unassigned character
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|
//  ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+
size_t exaone_moe_word(std::string_view text, size_t from) {
  const size_t contracted = contraction(text, from, true);
  if (contracted > from) return contracted;
  Scan scan(text, from);
  if (scan.number()) return from + scan.bytes;
  const Scan second(text, from + scan.bytes);
  if (scan.letter() || (!scan.newline() && second.letter())) {
    for (scan = second; scan.letter() || scan.mark() || scan.code == ' ';) {
      const bool joins = scan.code == ' ';
      const Scan here = scan;
      scan.next();
      if (joins && !scan.letter()) return here.at;
    }
    return scan.at;
  }
  const size_t others = other_run(text, from, Tail::None, false);
  if (others == from) return white_space(text, from, White::Newlines);
  const Scan after(text, others);
  return after.newline() || after.code == '/' ? others + after.bytes : others;
}

//  ?[^(\s|.,!?…。，、।۔،)]+
bool bloom_letter(const Scan& s) {
  constexpr uint32_t kMarks[] = {'(',    ')',    '|',    '.',    ',',    '!',    '?',
                                 0x2026, 0x3002, 0xFF0C, 0x3001, 0x0964, 0x06D4, 0x060C};
  return !s.space() && std::find(std::begin(kMarks), std::end(kMarks), s.code) == std::end(kMarks);
}
size_t bloom_word(std::string_view text, size_t from) {
  const size_t start = from + (text[from] == ' ');
  const size_t end = run_of<bloom_letter>(text, start);
  return end > start ? end : from;
}

constexpr uint32_t kAny = UINT32_MAX;

}  // namespace

void cut_gpt2(std::string_view text, Pieces out) { cut_matches<gpt2_word>(text, out); }
void cut_llama3(std::string_view text, Pieces out) {
  cut_matches<llama3_word<Llama3{true, false, 3, Tail::Newlines, White::Newlines}>>(text, out);
}
void cut_qwen2(std::string_view text, Pieces out) {
  cut_matches<llama3_word<Llama3{true, false, 1, Tail::Newlines, White::Newlines}>>(text, out);
}
void cut_qwen35(std::string_view text, Pieces out) {
  cut_matches<llama3_word<Llama3{true, true, 1, Tail::Newlines, White::Newlines}>>(text, out);
}
void cut_minicpm5(std::string_view text, Pieces out) {
  cut_matches<llama3_word<Llama3{true, false, kAny, Tail::Newlines, White::Newlines}>>(text, out);
}
// [^\s\p{L}\p{N}\r\n]+ takes no newlines after it.
void cut_seed_coder(std::string_view text, Pieces out) {
  cut_matches<llama3_word<Llama3{true, false, 1, Tail::None, White::Newlines}>>(text, out);
}
// No contractions: Turkish writes suffixes after an apostrophe.
void cut_ufakzeka(std::string_view text, Pieces out) {
  cut_matches<llama3_word<Llama3{false, false, 1, Tail::Newlines, White::Newlines}>>(text, out);
}
void cut_exaone_moe(std::string_view text, Pieces out) { cut_matches<exaone_moe_word>(text, out); }

void cut_jais2(std::string_view text, Pieces out) {
  constexpr auto word = llama3_word<Llama3{true, false, 3, Tail::Newlines, White::Cascade}>;
  for (size_t at = 0; at < text.size();) {
    const size_t end = word(text, at);
    if (end > at)
      out.end(at = end);
    else
      at = jais2_white_space(text, at, out);
  }
}

void cut_gpt4o(std::string_view text, Pieces out) {
  cut_matches<cased_word<Cased{true, false, 3, Tail::NewlinesSlashes}>>(text, out);
}
void cut_tekken(std::string_view text, Pieces out) {
  cut_matches<cased_word<Cased{false, false, 1, Tail::NewlinesSlashes}>>(text, out);
}
void cut_kimi(std::string_view text, Pieces out) {
  cut_matches<cased_word<Cased{true, true, 3, Tail::Newlines}>>(text, out);
}
void cut_youtu(std::string_view text, Pieces out) {
  cut_matches<cased_word<Cased{true, false, 1, Tail::NewlinesSlashes}>>(text, out);
}
void cut_deepseek3(std::string_view text, Pieces out) {
  cut_matches<deepseek3_word<Tail::Newlines, White::Newlines>>(text, out);
}
void cut_spark(std::string_view text, Pieces out) {
  cut_matches<deepseek3_word<Tail::None, White::OneNewline>>(text, out);
}
void cut_bloom(std::string_view text, Pieces out) { cut_matches<bloom_word>(text, out); }

}  // namespace greta
