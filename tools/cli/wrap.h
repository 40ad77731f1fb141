// Breaks a text that comes in pieces between its words, so that the edge of a terminal cuts none.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace greta::cli {

class WordWrap {
 public:
  // Takes printable UTF-8, and gives what can be written of it: a word waits for its end. `columns` is the
  // width of the terminal now. Lines are left as they are where it is below 8, which stands for unknown, too,
  // and between two lines that begin with ``` (code).
  std::string push(std::string_view text, uint32_t columns);
  std::string flush();  // what still waits
  uint32_t column() const { return column_; }

 private:
  void put_word();
  void end_line();

  std::string out_, blanks_, word_;  // blanks_ and word_ wait
  uint32_t columns_ = 0, column_ = 0, blanks_width_ = 0, word_width_ = 0;
  std::string line_start_;           // its first characters but blanks, at most three
  bool code_ = false, cut_ = false;  // cut_: the word that waits goes on behind what is written of it
};

// How many columns a terminal shows the character in: 0, 1 or 2.
uint32_t character_width(char32_t character);

// A text of whole lines, broken between its words. Of each line the first `indent` characters are ASCII that
// is kept, and what follows them stays to the right of them.
std::string wrapped(std::string_view text, uint32_t columns, uint32_t indent = 0);

// How many lines lie above the cursor where it stands behind `text`, which began at the left edge and was
// broken at the width alone.
uint32_t lines_above_end(std::wstring_view text, uint32_t columns);

// The text with a line end wherever it was broken at `columns` behind a blank. An editor that draws several
// lines at once leaves such blanks out and moves down, so that the terminal takes these lines for separate.
std::wstring drawn_lines(std::wstring_view text, uint32_t columns);

}  // namespace greta::cli
