// The smaller cuts of pre-tokenizers, each for one kind of characters. Above each stands the regular
// expression that it stands for, as published in the models' tokenizer.json.
#include <algorithm>
#include <iterator>

#include "text/tokenizer/split.h"

namespace greta {
namespace {

struct Range {
  uint32_t first, last;
};

template <size_t kCount>
bool within(uint32_t code, const Range (&ranges)[kCount]) {  // sorted
  const Range* after =
      std::upper_bound(ranges, ranges + kCount, code, [](uint32_t c, const Range& r) { return c < r.first; });
  return after != ranges && code <= after[-1].last;
}

bool is_newline(const Scan& s) { return s.newline(); }
bool line_feed(const Scan& s) { return s.code == '\n'; }
bool not_line_feed(const Scan& s) { return s.code != '\n'; }
bool is_digit(const Scan& s) { return s.kind == CharClass::Decimal; }  // \d
bool is_number_char(const Scan& s) { return s.number(); }
bool is_letter_char(const Scan& s) { return s.letter(); }
bool punctuation(const Scan& s) { return is_punctuation(s.kind); }
bool ascii_symbol(const Scan& s) { return s.code < 128 && s.kind == CharClass::Symbol; }  // [$+<=>^`|~]

// \w, as the library Oniguruma reads it; these expressions are written for it.
bool word_char(const Scan& s) {
  return s.letter() || s.mark() || s.number() || s.kind == CharClass::Connector;
}

// The letters of DeepSeek LLM's first expression are those that have case in an older Unicode.
constexpr Range kDeepseekLetters[] = {
    {0x41, 0x5A},       {0x61, 0x7A},       {0xB5, 0xB5},       {0xC0, 0xD6},       {0xD8, 0xF6},
    {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},     {0x295, 0x2AF},     {0x370, 0x373},
    {0x376, 0x376},     {0x377, 0x377},     {0x37B, 0x37D},     {0x37F, 0x37F},     {0x386, 0x386},
    {0x388, 0x38A},     {0x38C, 0x38C},     {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},
    {0x48A, 0x52F},     {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},
    {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},
    {0x1E00, 0x1F15},   {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},   {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},
    {0x1F59, 0x1F59},   {0x1F5B, 0x1F5B},   {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},
    {0x1FB6, 0x1FBC},   {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},
    {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},   {0x2102, 0x2102},
    {0x2107, 0x2107},   {0x210A, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},
    {0x2126, 0x2126},   {0x2128, 0x2128},   {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},
    {0x213C, 0x213F},   {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2183},   {0x2184, 0x2184},
    {0x2C00, 0x2C7B},   {0x2C7E, 0x2CE4},   {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF2},   {0x2CF3, 0x2CF3},
    {0xA640, 0xA66D},   {0xA680, 0xA69B},   {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},
    {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},
    {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB}, {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2},
    {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
};
constexpr Range kDeepseekMarks[] = {{0x21, 0x2F},     {0x3A, 0x7E},     {0x2018, 0x201F},
                                    {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}};
constexpr Range kDeepseekHan[] = {{0x0800, 0x9FA5}, {0xAC00, 0xD7FF}};
constexpr Range kDeepseek3Han[] = {{0x3040, 0x309F}, {0x30A0, 0x30FF}, {0x4E00, 0x9FA5}};

// The classes of Youtu's expression, with Han: a run is of one of them.
constexpr Range kYoutuHangul[] = {{0x3131, 0x318E}, {0xAC00, 0xD7A3}};
constexpr Range kYoutuMarks[] = {{0x2014, 0x2014}, {0x2018, 0x2019}, {0x201C, 0x201D},
                                 {0x2026, 0x2026}, {0x3001, 0x303F}, {0xFE30, 0xFE4F},
                                 {0xFF01, 0xFF01}, {0xFF0C, 0xFF0C}, {0xFF1A, 0xFF1B}};
constexpr Range kYoutuBopomofo[] = {{0x3105, 0x312F}};

// The classes of AFMoE's expression: Chinese and Japanese, Thai, Lao, Khmer, Burmese, Korean.
constexpr Range kAfmoeHan[] = {{0x2F00, 0x2FDF}, {0x3040, 0x309F}, {0x30A0, 0x30FF}, {0x3400, 0x4DBF},
                               {0x4E00, 0x9FFF}, {0xF900, 0xFAFF}, {0xFF65, 0xFF9F}};
constexpr Range kAfmoeThai[] = {{0x0E00, 0x0E7F}};
constexpr Range kAfmoeLao[] = {{0x0E80, 0x0EFF}};
constexpr Range kAfmoeKhmer[] = {{0x1780, 0x17FF}};
constexpr Range kAfmoeBurmese[] = {{0x1000, 0x109F}, {0xA9E0, 0xA9FF}, {0xAA60, 0xAA7F}};
constexpr Range kAfmoeKorean[] = {{0x1100, 0x11FF}, {0xAC00, 0xD7AF}};

template <const auto& kRanges>
bool in(const Scan& s) {
  return within(s.code, kRanges);
}

template <const auto&... kRanges>
size_t run_of_one(std::string_view text, size_t from) {
  size_t end = from;
  ((end = end > from ? end : run_of<in<kRanges>>(text, from)), ...);
  return end;
}

template <bool (*kIn)(const Scan&)>
size_t one_of(std::string_view text, size_t from) {
  const Scan scan(text, from);
  return kIn(scan) ? from + scan.bytes : from;
}

// [\p{P}$+<=>^~|`]+, and without the `
bool falcon_mark(const Scan& s) { return punctuation(s) || ascii_symbol(s); }
bool default_mark(const Scan& s) { return falcon_mark(s) && s.code != '`'; }

size_t line_or_newlines(std::string_view text, size_t from) {
  const size_t end = run_of<line_feed>(text, from);
  return end > from ? end : run_of<not_line_feed>(text, from);
}

size_t up_to_three_numbers(std::string_view text, size_t from) {
  Scan scan(text, from);
  for (uint32_t i = 0; i < 3 && scan.number(); ++i) scan.next();
  return scan.at;
}

bool ascii_digit(char c) { return c >= '0' && c <= '9'; }

// Bytes whose letters in the alphabet of byte-level BPE are numbers: 0 to 9, and ²³¹¼½¾, which are also bytes
// of other characters.
bool number_byte(char c) {
  constexpr std::string_view kSigns = "\xB2\xB3\xB9\xBC\xBD\xBE";
  return ascii_digit(c) || kSigns.find(c) != kSigns.npos;
}

size_t three_digits(std::string_view text, size_t from) {
  const std::string_view next = text.substr(from, 3);
  return next.size() == 3 && std::all_of(next.begin(), next.end(), ascii_digit) ? from + 3 : from;
}

// The place where a run of characters in kIn ends; counts them.
template <bool (*kIn)(const Scan&)>
Scan run_end(Scan scan, uint64_t* count) {
  for (*count = 0; !scan.end() && kIn(scan); scan.next()) ++*count;
  return scan;
}

// Ends pieces from `scan` on so that what is left of `count` characters is always a multiple of three.
Scan end_thousands(Scan scan, uint64_t count, Pieces out) {
  for (; count; --count) {
    scan.next();
    if ((count - 1) % 3 == 0) out.end(scan.at);
  }
  return scan;
}

// <sentinel:[0-9]+>
size_t sentinel(std::string_view text, size_t from) {
  constexpr std::string_view kStart = "<sentinel:";
  if (text.substr(from, kStart.size()) != kStart) return from;
  size_t at = from + kStart.size();
  while (at < text.size() && ascii_digit(text[at])) ++at;
  return at > from + kStart.size() && at < text.size() && text[at] == '>' ? at + 1 : from;
}

// IMGIMG[A-I]{1,4}Z
size_t image(std::string_view text, size_t from) {
  constexpr std::string_view kStart = "IMGIMG";
  if (text.substr(from, kStart.size()) != kStart) return from;
  const size_t first = from + kStart.size();
  size_t at = first;
  while (at < text.size() && at < first + 4 && text[at] >= 'A' && text[at] <= 'I') ++at;
  return at > first && at < text.size() && text[at] == 'Z' ? at + 1 : from;
}

// [\t\n]|    |  (four spaces, two spaces)
size_t tab(std::string_view text, size_t from) {
  if (text[from] == '\t' || text[from] == '\n') return from + 1;
  if (text.substr(from, 4) == "    ") return from + 4;
  return text.substr(from, 2) == "  " ? from + 2 : from;
}

}  // namespace

// [^\n]+|[\n]+
void cut_lines(std::string_view text, Pieces out) { cut_matches<line_or_newlines>(text, out); }
// [\r\n]
void cut_newlines(std::string_view text, Pieces out) { cut_matches<one_of<is_newline>>(text, out); }
// \p{N}
void cut_digits(std::string_view text, Pieces out) { cut_matches<one_of<is_number_char>>(text, out); }
// \p{N}+
void cut_numbers(std::string_view text, Pieces out) { cut_matches<run_of<is_number_char>>(text, out); }
// \p{N}+ where each byte is already a letter of its own: parts of characters are pieces, too.
void cut_number_bytes(std::string_view text, Pieces out) {
  for (size_t at = 1; at < text.size(); ++at)
    if (number_byte(text[at]) != number_byte(text[at - 1])) out.end(at);
  if (!text.empty()) out.end(text.size());
}
// \p{N}{1,3}
void cut_up_to_three(std::string_view text, Pieces out) { cut_matches<up_to_three_numbers>(text, out); }
// [0-9][0-9][0-9]
void cut_three_digits(std::string_view text, Pieces out) { cut_matches<three_digits>(text, out); }

// Cuts out numbers in threes, counted from their end. With kApart, numbers before a letter stay whole.
template <auto kIn, bool kApart>
static void cut_threes(std::string_view text, Pieces out) {
  uint64_t count;
  size_t done = 0;
  for (Scan scan(text, 0); !scan.end();) {
    const Scan after = run_end<kIn>(scan, &count);
    if (count == 0 || (kApart && word_char(after))) {
      scan = after;
      if (count == 0) scan.next();
      continue;
    }
    if (scan.at > done) out.end(scan.at);
    scan = end_thousands(scan, count, out);
    done = scan.at;
  }
  if (text.size() > done) out.end(text.size());
}

// \p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))
void cut_thousands(std::string_view text, Pieces out) { cut_threes<is_number_char, false>(text, out); }

// \d{1,3}(?=(?:\d{3})*\b)
void cut_thousands_before_words(std::string_view text, Pieces out) { cut_threes<is_digit, true>(text, out); }

// (?=(\d{3})+(?!\d)): cuts before each group of three, takes nothing out.
void cut_before_thousands(std::string_view text, Pieces out) {
  uint64_t count;
  for (Scan scan(text, 0); !scan.end();) {
    const Scan after = run_end<is_digit>(scan, &count);
    for (; count; scan.next(), --count)
      if (count % 3 == 0 && scan.at) out.end(scan.at);
    scan = after;
    if (!scan.end()) scan.next();
  }
  if (!text.empty()) out.end(text.size());
}

void cut_punctuation(std::string_view text, Pieces out) { cut_matches<run_of<falcon_mark>>(text, out); }
void cut_default_punctuation(std::string_view text, Pieces out) {
  cut_matches<run_of<default_mark>>(text, out);
}
// [\p{P}!-/:-@\[-`{-~]
void cut_each_punctuation(std::string_view text, Pieces out) { cut_matches<one_of<falcon_mark>>(text, out); }

// \s+$
void cut_trailing_space(std::string_view text, Pieces out) {
  size_t start = 0;
  for (Scan scan(text, 0); !scan.end(); scan.next())
    if (!scan.space()) start = scan.at + scan.bytes;
  if (start) out.end(start);
  if (start < text.size()) out.end(text.size());
}

// \s?[A-Za-z...]+
void cut_deepseek_letters(std::string_view text, Pieces out) {
  cut_matches<spaced_run_of<in<kDeepseekLetters>>>(text, out);
}
// \s?[!-/:-~！-／：-～‘-‟　-。]+
void cut_deepseek_marks(std::string_view text, Pieces out) {
  cut_matches<spaced_run_of<in<kDeepseekMarks>>>(text, out);
}
// \s?\p{L}+
void cut_coder_letters(std::string_view text, Pieces out) {
  cut_matches<spaced_run_of<is_letter_char>>(text, out);
}
// \s?\p{P}+
void cut_coder_punctuation(std::string_view text, Pieces out) {
  cut_matches<spaced_run_of<punctuation>>(text, out);
}
// [一-龥ࠀ-一가-퟿]+
void cut_deepseek_han(std::string_view text, Pieces out) { cut_matches<run_of<in<kDeepseekHan>>>(text, out); }
// [一-龥぀-ゟ゠-ヿ]+
void cut_deepseek3_han(std::string_view text, Pieces out) {
  cut_matches<run_of<in<kDeepseek3Han>>>(text, out);
}
// [가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+
void cut_youtu_han(std::string_view text, Pieces out) {
  cut_matches<run_of_one<kYoutuHangul, kYoutuMarks, kYoutuBopomofo, kDeepseek3Han>>(text, out);
}
// [一-鿿぀-ゟ゠-ヿ㐀-䶿豈-﫿･-ﾟ⼀-⿟]+|[\u0E00-\u0E7F]+|[\u0E80-\u0EFF]+|[\u1780-\u17FF]+|
// [\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF]+|[\uAC00-\uD7AF\u1100-\u11FF]+
void cut_afmoe_scripts(std::string_view text, Pieces out) {
  cut_matches<run_of_one<kAfmoeHan, kAfmoeThai, kAfmoeLao, kAfmoeKhmer, kAfmoeBurmese, kAfmoeKorean>>(text,
                                                                                                      out);
}

void cut_sentinels(std::string_view text, Pieces out) { cut_matches<sentinel>(text, out); }
void cut_images(std::string_view text, Pieces out) { cut_matches<image>(text, out); }
void cut_tabs(std::string_view text, Pieces out) { cut_matches<tab>(text, out); }

}  // namespace greta
