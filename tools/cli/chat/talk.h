// A conversation on the terminal. What the model says, thinks and calls goes to the streams; messages and
// commands come from the line editor.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "chat/line_editor.h"
#include "console.h"
#include "json.h"
#include "model.h"
#include "prompt_cache.h"
#include "wrap.h"

namespace greta::cli {

enum class ShowReasoning {
  kAuto,
  kShow,
  kHide,
  kRaw
};  // kAuto: shown in a conversation on a terminal, else hidden

struct ChatOptions {
  EngineOptions engine;
  TextOptions text;
  SamplingOptions sampling;
  PromptCacheOptions cache;
  ShiftOptions shift{.shift = true};
  std::string system, system_file;
  std::string chat_template, template_file, template_arguments, tools_file;
  std::vector<std::string> reasoning;
  std::string reasoning_format = "auto";
  int64_t reasoning_budget = -1;
  int64_t predict = -1;
  bool ignore_end = false, single_turn = false, interactive = false, simple_io = false, show_timings = false;
  bool verbose_prompt = false, parse_content = false;

  ShowReasoning show_reasoning() const;
  std::string arguments_json() const;  // variables for the template
};

class Talk {
 public:
  Talk(const Engine& engine, ChatOptions& options, bool conversation);

  // Adds a message of the user and answers it. False if the library refused: that was said then, and the
  // conversation is as before.
  bool ask(const std::string& text);
  int loop();  // until the user leaves

  // ---- what the commands do ----
  Json messages() const;
  // Replaces the conversation, or throws Failed and leaves it as it was.
  void set_messages(const Json& messages);
  void clear();  // keeps the system message
  bool regenerate();
  // Asks `text` in place of the last question. Without a text the last one is edited at the prompt.
  void retry(const std::string& text);
  void attach(const std::string& path);         // puts the text of the file before the next message
  void attach_all(const std::string& pattern);  // those of all files that the shell's pattern fits
  void toggle_timings();
  bool undo();  // removes the last question and all messages after it
  void set_system(const std::string& text);
  void set_sampling_option(const std::string& name, const std::string& value);
  std::string sampling_text() const;
  std::string stats() const;
  std::string tools_text() const { return tools_; }

 private:
  void greet() const;
  bool answer();
  bool answer_calls();  // asks the user for the results; false: the user gave up
  bool read_message(std::string* text, bool* leave);
  void add(const Json& message);
  void truncate(uint32_t count);
  uint32_t count() const { return greta_chat_count(chat_.get()); }
  uint32_t last_question() const;  // its index; count() if there is none
  static int on_event(void* user, const greta_chat_event* event);
  void show(greta_chat_part part, std::string_view text);
  void end_part();
  void tell_of_context(const greta_chat_result& result);

  const Engine& engine_;
  ChatOptions& options_;
  tools::Chat chat_;
  std::string tools_;
  ShowReasoning shows_;
  std::unique_ptr<LineEditor> editor_;
  Progress progress_{"prompt"};
  WordWrap thoughts_;        // reasoning on the terminal of stderr
  std::string attached_;     // what goes before the next message
  std::vector<Json> calls_;  // the calls of the last answer that have no result yet
  greta_chat_result last_ = {};
  bool in_reasoning_ = false;    // what was written last is reasoning
  bool line_open_ = false;       // what was written last did not end its line
  bool wrote_ = false;           // something of this answer was written
  bool told_forgotten_ = false;  // that the oldest turns have left
};

// Runs "/name argument". False: the user leaves.
bool run_chat_command(Talk& talk, const std::string& line);
bool is_chat_command(const std::string& line);
// What may be typed for the last word of a line: the name of a command, or a file that a command takes.
Completions chat_completions(const std::string& line);

}  // namespace greta::cli
