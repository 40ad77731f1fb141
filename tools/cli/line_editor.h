// Lines from a terminal: with editing and history where libedit was there to build with, else plain.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace greta::cli {

// What was typed before, kept in $XDG_STATE_HOME/greta/history (~/.local/state/greta/history), readable by
// its owner alone. A file that cannot be read or written is no history, and no failure.
class History {
 public:
  static constexpr size_t kMaxLines = 1000;
  static constexpr size_t kMaxLineBytes = 64 * 1024;

  History();
  const std::vector<std::string>& lines() const { return lines_; }
  bool add(const std::string& line);  // false if it is empty, too long, or the same as the last one

 private:
  std::string path_;
  std::vector<std::string> lines_;
};

class LineEditor {
 public:
  enum class Outcome { kLine, kEnd, kInterrupted };

  // plain: no editing, no escape sequences.
  LineEditor(bool plain, bool colour);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // A line without its end. What was pasted may have line ends within. `prompt` is ASCII.
  Outcome read(const std::string& prompt, std::string* line);
  void remember(const std::string& line);

 private:
  struct Editing;  // libedit's side
  Outcome read_plain(const std::string& prompt, std::string* line);

  bool colour_;
  History history_;
  std::unique_ptr<Editing> editing_;
};

}  // namespace greta::cli
