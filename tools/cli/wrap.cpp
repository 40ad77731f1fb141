#include "wrap.h"

#include <algorithm>
#include <utility>

namespace greta::cli {
namespace {

constexpr uint32_t kFewestColumns = 8, kTab = 8;

struct Range {
  char32_t first, last;
};
// Marks that are shown on top of the character before them, or not at all.
constexpr Range kNarrow[] = {{0x300, 0x36f},   {0x483, 0x489},    {0x591, 0x5bd},   {0x610, 0x61a},
                             {0x64b, 0x65f},   {0x93c, 0x93c},    {0x941, 0x948},   {0x94d, 0x94d},
                             {0xe31, 0xe31},   {0xe34, 0xe3a},    {0xe47, 0xe4e},   {0x1ab0, 0x1aff},
                             {0x1dc0, 0x1dff}, {0x200b, 0x200f},  {0x20d0, 0x20ff}, {0xfe00, 0xfe0f},
                             {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef}};
// East Asian characters and pictures.
constexpr Range kWide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97f},
                           {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                           {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
                           {0x1fa70, 0x1faff}, {0x20000, 0x3fffd}};

template <size_t count>
bool is_in(const Range (&ranges)[count], char32_t character) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](Range each) { return character >= each.first && character <= each.last; });
}

// Takes one character off the front of valid UTF-8.
std::string_view take_character(std::string_view* text, char32_t* character) {
  const auto first = static_cast<unsigned char>((*text)[0]);
  const size_t length = std::min<size_t>(first < 0x80   ? 1
                                         : first < 0xe0 ? 2
                                         : first < 0xf0 ? 3
                                                        : 4,
                                         text->size());
  *character = length == 1 ? first : first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i)
    *character = *character << 6 | (static_cast<unsigned char>((*text)[i]) & 0x3f);
  const std::string_view taken = text->substr(0, length);
  text->remove_prefix(length);
  return taken;
}

// Moves the column behind the character. True if the character begins or ends a line.
bool step_right(wchar_t character, uint32_t columns, uint32_t* column) {
  if (character == L'\n') {
    *column = 0;
    return true;
  }
  const bool tab = character == L'\t';
  const uint32_t width = tab ? kTab - *column % kTab : character_width(static_cast<char32_t>(character));
  const bool breaks = *column + width > columns;
  *column = breaks ? width : *column + width;
  return breaks;
}

}  // namespace

uint32_t character_width(char32_t character) {
  if (character < kNarrow[0].first) return 1;
  return is_in(kNarrow, character) ? 0 : is_in(kWide, character) ? 2 : 1;
}

// Writes the word that waits, at the beginning of a line if it would cross the edge.
void WordWrap::put_word() {
  if (word_.empty()) return;
  if (!code_ && !cut_ && column_ > 0 && column_ + blanks_width_ + word_width_ > columns_) {
    out_ += '\n';
    column_ = 0;
  } else {
    out_ += blanks_;
    column_ += blanks_width_;
  }
  out_ += word_;
  column_ += word_width_;
  if (column_ > columns_) column_ %= columns_;  // the terminal breaks what is wider than a line
  blanks_.clear();
  word_.clear();
  blanks_width_ = word_width_ = 0;
  cut_ = false;
}

void WordWrap::end_line() {
  put_word();
  out_ += blanks_ + "\n";
  blanks_.clear();
  blanks_width_ = column_ = 0;
  cut_ = false;
  if (line_start_ == "```") code_ = !code_;
  line_start_.clear();
}

std::string WordWrap::push(std::string_view text, uint32_t columns) {
  if (columns < kFewestColumns) {
    std::string all = flush() + std::string(text);
    column_ = 0;
    return all;
  }
  columns_ = columns;
  while (!text.empty()) {
    char32_t character = 0;
    const std::string_view bytes = take_character(&text, &character);
    if (character == '\n') {
      end_line();
      continue;
    }
    if (character == ' ' || character == '\t') {
      put_word();
      cut_ = false;
      blanks_ += bytes;
      blanks_width_ += character == ' ' ? 1 : kTab - (column_ + blanks_width_) % kTab;
      continue;
    }
    if (line_start_.size() < 3) line_start_ += bytes;
    const uint32_t width = character_width(character);
    if (width == 2) put_word();  // a line may end before and behind such a character
    word_ += bytes;
    word_width_ += width;
    if (width == 2) put_word();
    if (word_width_ < columns_) continue;
    put_word();
    cut_ = true;
  }
  return std::exchange(out_, {});
}

std::string WordWrap::flush() {
  put_word();
  out_ += blanks_;
  column_ += blanks_width_;
  blanks_.clear();
  blanks_width_ = 0;
  return std::exchange(out_, {});
}

std::string wrapped(std::string_view text, uint32_t columns, uint32_t indent) {
  if (columns < kFewestColumns + indent) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const size_t kept = std::min<size_t>(indent, end);
    WordWrap words;
    std::string line = words.push(text.substr(kept, end - kept), columns - indent);
    line += words.flush();
    for (size_t at = 0; (at = line.find('\n', at)) != line.npos; at += 1 + indent)
      line.insert(at + 1, indent, ' ');
    out += text.substr(0, kept);
    out += line + (end < text.size() ? "\n" : "");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

uint32_t lines_above_end(std::wstring_view text, uint32_t columns) {
  uint32_t lines = 0, column = 0;
  for (const wchar_t character : text) lines += step_right(character, columns, &column);
  return lines + (column == columns ? 1 : 0);
}

std::wstring drawn_lines(std::wstring_view text, uint32_t columns) {
  std::wstring lines;
  uint32_t column = 0;
  for (const wchar_t character : text) {
    const bool filled = column == columns && !lines.empty() && lines.back() != L' ';
    if (step_right(character, columns, &column) && character != L'\n' && !filled) {
      lines.erase(lines.find_last_not_of(L' ') + 1);
      lines += L'\n';
    }
    lines += character;
  }
  return lines;
}

}  // namespace greta::cli
