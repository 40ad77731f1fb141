// Texts, as Python has them: by code points, with Unicode's cases.
#include <algorithm>
#include <cstring>

#include "text/jinja/library/library.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {
namespace {

struct CaseRow {  // every stride-th code point from first to last
  uint32_t first, last, stride;
  int32_t delta;
};
struct CaseText {
  uint32_t code;
  const char* text;
};
#include "text/jinja/library/case_tables.inc"

struct CaseMap {
  std::span<const CaseRow> rows;
  std::span<const CaseText> texts;
};
constexpr CaseMap kLower = {kLowerRows, kLowerTexts}, kUpper = {kUpperRows, kUpperTexts},
                  kTitle = {kTitleRows, kTitleTexts}, kFold = {kFoldRows, kFoldTexts};

bool map_code(const CaseMap& map, uint32_t code, std::string* out) {
  const auto text = std::lower_bound(map.texts.begin(), map.texts.end(), code,
                                     [](const CaseText& t, uint32_t c) { return t.code < c; });
  if (text != map.texts.end() && text->code == code) return *out += text->text, true;
  auto row = std::upper_bound(map.rows.begin(), map.rows.end(), code,
                              [](uint32_t c, const CaseRow& r) { return c < r.first; });
  if (row == map.rows.begin()) return false;
  --row;
  if (code > row->last || (code - row->first) % row->stride) return false;
  append_utf8(uint32_t(int64_t(code) + row->delta), out);
  return true;
}

void append_lower(uint32_t code, std::string* out) {
  if (code < 128)
    *out += char(code >= 'A' && code <= 'Z' ? code + 32 : code);
  else if (!map_code(kLower, code, out))
    append_utf8(code, out);
}

void append_upper(uint32_t code, std::string* out) {
  if (code < 128)
    *out += char(code >= 'a' && code <= 'z' ? code - 32 : code);
  else if (!map_code(kUpper, code, out))
    append_utf8(code, out);
}

void append_title(uint32_t code, std::string* out) {
  if (code < 128 || !map_code(kTitle, code, out)) append_upper(code, out);
}

template <class Change>
std::string mapped(std::string_view text, Change&& change) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    change(point.code, at, &out);
    at += point.bytes;
  }
  return out;
}

bool is_cased(uint32_t code) {
  const CharClass c = char_class(code);
  return c == CharClass::Upper || c == CharClass::Lower || c == CharClass::Title;
}

// A capital sigma at the end of a word has a small form of its own.
bool is_final_sigma(std::string_view text, size_t at) {
  bool before = false, after = false;
  for (size_t i = 0; i < at;) {
    const CodePoint point = decode_utf8(text, i);
    const CharClass c = char_class(point.code);
    if (!is_mark(c)) before = is_cased(point.code);
    i += point.bytes;
  }
  for (size_t i = at + 2; i < text.size();) {
    const CodePoint point = decode_utf8(text, i);
    i += point.bytes;
    if (is_mark(char_class(point.code))) continue;
    after = is_cased(point.code);
    break;
  }
  return before && !after;
}

void lower_at(std::string_view text, uint32_t code, size_t at, std::string* out) {
  constexpr uint32_t kSigma = 0x3A3;
  // Looked at within its surroundings, so that a text of sigmas takes no quadratic time.
  constexpr size_t kNear = 64;
  if (code == kSigma) {
    size_t from = at > kNear ? at - kNear : 0;
    while (from < at && (text[from] & 0xC0) == 0x80) ++from;
    return append_utf8(is_final_sigma(text.substr(from, at - from + kNear), at - from) ? 0x3C2 : 0x3C3, out);
  }
  append_lower(code, out);
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
    if (within)
      lower_at(text, code, at, out);
    else
      append_title(code, out);
    within = is_cased(code);
  });
}

std::string to_capitalized(std::string_view text) {
  return mapped(text, [&](uint32_t code, size_t at, std::string* out) {
    if (at)
      lower_at(text, code, at, out);
    else
      append_title(code, out);
  });
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

// What stands at either end and is white space, or one of `chars`.
std::string_view strip(std::string_view text, const Value* chars, bool left, bool right) {
  const bool given = chars && chars->is_string();
  std::vector<uint32_t> set;
  for (size_t at = 0; given && at < chars->as_string().size();) {
    const CodePoint point = decode_utf8(chars->as_string(), at);
    set.push_back(point.code);
    at += point.bytes;
  }
  std::sort(set.begin(), set.end());
  const auto goes = [&](uint32_t code) {
    return given ? std::binary_search(set.begin(), set.end(), code) : is_blank(code);
  };
  while (left && !text.empty()) {
    const CodePoint first = decode_utf8(text, 0);
    if (!goes(first.code)) break;
    text.remove_prefix(first.bytes);
  }
  while (right && !text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && (text[at] & 0xC0) == 0x80) --at;
    if (!goes(decode_utf8(text, at).code)) break;
    text.remove_suffix(text.size() - at);
  }
  return text;
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string ascii_only(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    at += point.bytes;
    if (point.code < 0x80) {
      out += char(point.code);
      continue;
    }
    const int digits = point.code < 0x100 ? 2 : point.code < 0x10000 ? 4 : 8;
    (out += '\\') += digits == 2 ? 'x' : digits == 4 ? 'u' : 'U';
    for (int shift = 4 * digits - 4; shift >= 0; shift -= 4) out += kHex[point.code >> shift & 15];
  }
  return out;
}

// At what Python's splitlines takes for the end of a line.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  const auto ends = [](uint32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const size_t from = at;
    at += point.bytes;
    if (!ends(point.code)) continue;
    if (point.code == '\r' && text.substr(at, 1) == "\n") ++at;
    lines.push_back(text.substr(start, (keep_ends ? at : from) - start));
    start = at;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

// align: -1 text to the left, 1 to the right, 0 to the middle as Python's center().
Status pad(Run& run, std::string_view text, int64_t width, std::string_view fill, int align, Value* out) {
  const int64_t length = int64_t(code_points(text));
  const uint64_t more = width > length ? uint64_t(width) - uint64_t(length) : 0;
  uint64_t bytes;
  if (!checked_multiply(more, fill.size(), &bytes)) bytes = UINT64_MAX;
  GRETA_TRY(run.room(bytes));
  const uint64_t left = align > 0 ? more : align < 0 ? 0 : more / 2 + (more & uint64_t(width) & 1);
  std::string made;
  made.reserve(bytes + text.size());
  for (uint64_t i = 0; i < left; ++i) made += fill;
  made += text;
  for (uint64_t i = left; i < more; ++i) made += fill;
  *out = run.text(std::move(made));
  return {};
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

// The first `count` of them; all if that is negative. An empty `from` stands before every character
// and at the end.
Status replace(Run& run, std::string_view text, std::string_view from, std::string_view to, int64_t count,
               std::string* out) {
  uint64_t left = count < 0 ? UINT64_MAX : uint64_t(count);
  size_t at = 0;
  while (left > 0) {
    const size_t found = find_bytes(text, from, at);
    if (found == text.npos) break;
    const size_t next =
        from.empty() && found < text.size() ? found + decode_utf8(text, found).bytes : found + from.size();
    out->append(text, at, found - at);
    GRETA_TRY(run.step(1 + to.size() / 64));
    if (out->size() + to.size() > run.budget.limit) return run.room(UINT64_MAX);
    out->append(to);
    if (from.empty()) out->append(text, found, next - found);
    at = next;
    --left;
    if (from.empty() && found == text.size()) break;
  }
  if (at < text.size()) out->append(text, at);
  return run.room(out->size());
}

Status join(Run& run, std::string_view separator, std::span<const Value> items, bool any, std::string* out) {
  for (size_t i = 0; i < items.size(); ++i) {
    GRETA_TRY(run.step(1 + separator.size() / 64));
    if (i) out->append(separator);
    if (!any && !items[i].is_string())
      return fail(Code::Argument, "sequence item %zu: expected str instance, %s found", i,
                  items[i].type_name());
    GRETA_TRY(to_text(run, items[i], out));
    if (out->size() > run.budget.limit) return run.room(UINT64_MAX);
  }
  return run.room(out->size());
}

}  // namespace greta::jinja
