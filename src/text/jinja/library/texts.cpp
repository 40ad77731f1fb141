// Texts as Python has them: made of code points, with Unicode's cases.
#include <algorithm>
#include <cstring>

#include "text/jinja/library/library.h"

namespace greta::jinja {
namespace {

struct CaseText {
  uint32_t code;
  const char* text;
};
#include "text/jinja/library/case_tables.inc"

struct CaseMap {
  std::span<const CaseRun> runs;
  std::span<const CaseText> texts;
};
constexpr CaseMap kLower = {kLowerRuns, kLowerTexts}, kUpper = {kUpperRuns, kUpperTexts},
                  kTitle = {kTitleRuns, kTitleTexts}, kFold = {kFoldRuns, kFoldTexts};

// Appends what the map makes of `code`. Returns false if the map has no entry for it.
bool map_code(const CaseMap& map, uint32_t code, std::string* out) {
  const auto text = std::lower_bound(map.texts.begin(), map.texts.end(), code,
                                     [](const CaseText& t, uint32_t c) { return t.code < c; });
  if (text != map.texts.end() && text->code == code) return *out += text->text, true;
  if (!change_case(map.runs, code, &code)) return false;
  append_utf8(code, out);
  return true;
}

// Changes ASCII letters of one case. `first` is 'A' or 'a', the first of the letters that change.
void append_mapped(const CaseMap& map, uint32_t first, uint32_t code, std::string* out) {
  if (code < 128)
    *out += char(code - first < 26 ? code ^ 32 : code);
  else if (!map_code(map, code, out))
    append_utf8(code, out);
}

void append_lower(uint32_t code, std::string* out) { append_mapped(kLower, 'A', code, out); }
void append_upper(uint32_t code, std::string* out) { append_mapped(kUpper, 'a', code, out); }
void append_title(uint32_t code, std::string* out) {
  if (code < 128 || !map_code(kTitle, code, out)) append_upper(code, out);
}

template <class Change>
std::string mapped(std::string_view text, Change&& change) {
  std::string out;
  out.reserve(text.size());
  for (const auto& [code, bytes, at] : CodePoints(text)) change(code, at, &out);
  return out;
}

bool is_cased(uint32_t code) {
  const CharClass c = char_class(code);
  return c == CharClass::Upper || c == CharClass::Lower || c == CharClass::Title;
}

// Tells whether a capital sigma ends a word, since it then has a small form of its own.
bool is_final_sigma(std::string_view text, size_t sigma) {
  bool before = false;
  for (const auto& [code, bytes, at] : CodePoints(text)) {
    const bool mark = is_mark(char_class(code));
    if (at < sigma && !mark) before = is_cased(code);
    if (at > sigma && !mark) return before && !is_cased(code);
  }
  return before;
}

void lower_at(std::string_view text, uint32_t code, size_t at, std::string* out) {
  constexpr uint32_t kSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;
  constexpr size_t kNear = 64;  // bytes that are looked at, so that a text of sigmas takes no quadratic time
  if (code != kSigma) return append_lower(code, out);
  size_t from = at > kNear ? at - kNear : 0;
  while (from < at && (text[from] & 0xC0) == 0x80) ++from;
  const bool final = is_final_sigma(text.substr(from, at - from + kNear), at - from);
  append_utf8(final ? kFinalSigma : kSmallSigma, out);
}

}  // namespace

std::string to_upper(std::string_view text) {
  return mapped(text, [](uint32_t code, size_t, std::string* out) { append_upper(code, out); });
}

std::string to_lower(std::string_view text) {
  return mapped(text, [&](uint32_t code, size_t at, std::string* out) { lower_at(text, code, at, out); });
}

std::string to_folded(std::string_view text) {
  return mapped(text, [](uint32_t code, size_t, std::string* out) {
    if (!map_code(kFold, code, out)) append_lower(code, out);
  });
}

std::string to_title(std::string_view text) {
  bool within = false;
  return mapped(text, [&](uint32_t code, size_t at, std::string* out) {
    within ? lower_at(text, code, at, out) : append_title(code, out);
    within = is_cased(code);
  });
}

std::string to_title_words(std::string_view text) {
  const auto splits = [](uint32_t code) {
    return is_blank(code) ||
           (code < 128 && std::string_view("-({[<").find(char(code)) != std::string_view::npos);
  };
  std::string out;
  while (!text.empty()) {
    const CodePoint first = decode_utf8(text, 0);
    const bool between = splits(first.code);
    const size_t end = span_of(text, [&](uint32_t code) { return splits(code) == between; });
    out += to_upper(text.substr(0, first.bytes));
    out += to_lower(text.substr(first.bytes, end - first.bytes));
    text.remove_prefix(end);
  }
  return out;
}

std::string to_swapped(std::string_view text) {
  std::string out;
  for (const auto& [code, bytes, at] : CodePoints(text)) {
    const std::string_view one = text.substr(at, bytes);
    out += char_class(code) == CharClass::Upper ? to_lower(one) : to_upper(one);
  }
  return out;
}

std::string to_capitalized(std::string_view text) {
  return mapped(text, [&](uint32_t code, size_t at, std::string* out) {
    at ? lower_at(text, code, at, out) : append_title(code, out);
  });
}

bool is_in_case(std::string_view text, CharClass wanted, CharClass other) {
  bool some = false;
  for (const auto& [code, bytes, at] : CodePoints(text)) {
    const CharClass c = char_class(code);
    if (c == other || c == CharClass::Title) return false;
    some |= c == wanted;
  }
  return some;
}

uint64_t code_points(std::string_view text) {
  uint64_t count = 0;
  for (const char c : text) count += (c & 0xC0) != 0x80;
  return count;
}

size_t byte_of(std::string_view text, uint64_t code_point) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if ((text[at] & 0xC0) != 0x80 && code_point-- == 0) break;
  return at;
}

std::string_view strip(std::string_view text, const Value* chars, bool left, bool right) {
  std::vector<uint32_t> set;
  if (chars)
    for (const auto& [code, bytes, at] : CodePoints(chars->as_string())) set.push_back(code);
  std::sort(set.begin(), set.end());
  const auto goes = [&](uint32_t code) {
    return chars ? std::binary_search(set.begin(), set.end(), code) : is_blank(code);
  };
  if (left) text.remove_prefix(span_of(text, goes));
  while (right && !text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && (text[at] & 0xC0) == 0x80) --at;
    if (!goes(decode_utf8(text, at).code)) break;
    text.remove_suffix(text.size() - at);
  }
  return text;
}

std::string escape_html(std::string_view text) {
  constexpr std::string_view kFrom = "&<>\"'";
  constexpr const char* kTo[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const size_t which = kFrom.find(c);
    if (which == kFrom.npos)
      out += c;
    else
      out += kTo[which];
  }
  return out;
}

// The lines end where Python's splitlines ends them.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  const auto within = [](uint32_t c) {
    return !((c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029);
  };
  while (!text.empty()) {
    const size_t end = span_of(text, within);
    size_t next = end;
    if (end < text.size()) next += text.substr(end, 2) == "\r\n" ? 2 : decode_utf8(text, end).bytes;
    lines.push_back(text.substr(0, keep_ends ? next : end));
    text.remove_prefix(next);
  }
  return lines;
}

size_t find_bytes(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return text.npos;
  if (part.empty()) return from;
  if (text.size() - from < part.size()) return text.npos;  // also an empty text, which may be null
  // memmem takes linear time, string_view::find does not.
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found ? size_t(static_cast<const char*>(found) - text.data()) : text.npos;
}

size_t rfind_bytes(std::string_view text, std::string_view part) {
  const std::string back(text.rbegin(), text.rend()), back_part(part.rbegin(), part.rend());
  const size_t found = find_bytes(back, back_part, 0);
  return found == text.npos ? found : text.size() - found - part.size();
}

}  // namespace greta::jinja
