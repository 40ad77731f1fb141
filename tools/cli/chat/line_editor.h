// Reads lines from a terminal, with editing and a history if the program was built with libedit.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace greta::cli {

// The lines that were typed before. They are kept in $XDG_STATE_HOME/greta/history
// (~/.local/state/greta/history), which only its owner may read. If the file cannot be read or written, there
// is no history and no failure.
class History {
 public:
  static constexpr size_t kMaxLines = 1000;
  static constexpr size_t kMaxLineBytes = 64 * 1024;

  History();
  const std::vector<std::string>& lines() const { return lines_; }
  bool add(const std::string& line);  // false if the line is empty, too long, or the same as the last one

 private:
  std::string path_;
  std::vector<std::string> lines_;
};

// Words that may stand in place of the last one of a line, which begins at `start`.
struct Completions {
  size_t start = 0;
  std::vector<std::string> words;
};

class LineEditor {
 public:
  using Completer = Completions (*)(const std::string& line);
  enum class Outcome { kLine, kEnd, kInterrupted };

  // plain: lines are read without editing and without escape sequences. `complete` is asked where the tab key
  // is pressed, with what stands before the cursor.
  LineEditor(bool plain, bool colour, Completer complete);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Reads a line, without its line end. A pasted text may have line ends within. `prompt` is ASCII. If lines
  // are edited, the line begins as `text`.
  Outcome read(const std::string& prompt, std::string* line, const std::string& text = "");
  bool edits() const { return editing_ != nullptr; }
  void remember(const std::string& line);

 private:
  struct Editing;  // what libedit needs
  Outcome read_plain(const std::string& prompt, std::string* line);

  bool colour_;
  History history_;
  std::unique_ptr<Editing> editing_;
};

}  // namespace greta::cli
