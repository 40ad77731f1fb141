// Takes the answer of a model apart while it comes: into what is said, what is thought, and calls of tools.
//
// A table says how each family of models marks these. A row counts if the model's chat template has its
// marks. The parser is fed text in pieces of any size, and its result does not depend on how the text was
// cut. Text that only looks like a call stays text. So only marks, and white space around them, are dropped.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/call_pieces.h"

namespace greta {

// A stretch of an answer between two marks.
struct ChatSection {
  enum class Kind : uint8_t {
    Reasoning,  // at the start of the answer, or after other reasoning
    Calls,      // one or more calls of tools
    Answer,     // what is said, in families that mark it
  };
  Kind kind;
  std::string_view in_template;  // the row counts if the template has this
  std::string_view open;
  std::string_view close;  // if "", the next `open` or the end of the answer closes it
  bool keep_open = false;  // the mark is a part of the call
  bool or_text = false;    // what is no call between the marks is said, and a bare call may follow
};

// How a model marks the parts of its answers, by what its template says.
struct ChatForm {
  std::vector<const ChatSection*> sections;
  bool channels = false;     // <|channel|>NAME<|message|>...<|end|>
  bool addressed = false;    // with channels: these are <|start|>assistant to=WHOM<|message|>...<|eom|>
  bool bare_calls = false;   // a call may be JSON without marks around it
  bool named_calls = false;  // a call may be a line with a tool's name, and JSON below it
  bool any_calls = false;    // the template names no calls, so those of every family count, of known tools
  CallStyle style;

  // Returns true if a control token with this text means something to the parser.
  bool is_mark(std::string_view text) const;
  // The section of reasoning with whose opening mark `prompt` ends; null if there is none.
  const ChatSection* opened_by(std::string_view prompt) const;
  bool closed_by(std::string_view prompt) const;  // `prompt` ends with the closing mark of reasoning
  bool reasons() const;                           // a section is reasoning
};
ChatForm chat_form(std::string_view chat_template);
std::vector<std::string_view> answer_marks();  // of all families

// Where the parts go. Each function returns false to stop the parser.
struct ChatSink {
  std::function<bool(std::string_view)> text, reasoning;
  std::function<bool(ChatCall)> call;
  // Where it is set, calls whose arguments are JSON come while they are written: they begin, then the pieces
  // of their arguments come, then the whole call as above. A call that begins and is none after all has no
  // end.
  CallPieces::Sink pieces = {};
};

class ChatParser {
 public:
  // prompt: the text that the model continues, which may have opened the reasoning. Without tools, calls are
  // not looked for. `form` and `tools` must outlive the parser.
  ChatParser(const ChatForm& form, const ToolList& tools, std::string_view prompt, ChatSink sink);

  bool push(std::string_view text);  // returns false once the sink wants no more
  bool finish();                     // to be called when the answer is complete

  bool reasoning() const;             // at this moment
  std::string reasoning_end() const;  // what a model writes to end it, with white space around a mark

 private:
  enum class State : uint8_t { Start, Text, Reasoning, Calls, Held, BareCall, Header, Message };

  bool step(bool last);  // returns false if it needs more text
  bool take_start(bool last);
  bool take_named_call(std::string_view solid, bool last);
  bool take_text(bool last);
  bool take_reasoning(bool last);
  bool take_calls(bool last);
  bool take_held(bool last);
  bool take_bare_call(bool last);
  bool take_header(bool last);
  bool take_message(bool last);

  bool take_stray_close(const ChatSection& section, bool last);
  bool accept(std::vector<ChatCall>&& calls, std::string_view written);
  void refuse_calls();
  void look_for_pieces(std::string_view name, std::string_view before);
  void pass_pieces(std::string_view body);
  void pass_new(std::string_view text);
  void before_call();
  void release_held();
  void begin_reasoning(const ChatSection* section);
  void end_reasoning();
  CallsRead read(std::string_view body, std::vector<ChatCall>* out) const;
  bool read_message(std::string_view body, std::vector<ChatCall>* calls) const;

  bool looks_for_calls() const { return !tools_.empty() && failed_calls_ < kMaxFailedCalls; }
  void drop(size_t bytes) { at_ += bytes; }
  std::string_view rest() const { return std::string_view(buffer_).substr(at_); }
  void pass(std::string_view text, bool thought);
  void say(size_t bytes);  // takes them off the front of the buffer
  bool give(std::vector<ChatCall>&& calls);

  static constexpr uint32_t kMaxFailedCalls = 32;

  const ChatForm& form_;
  const ToolList& tools_;
  ChatSink sink_;
  State state_ = State::Start;
  const ChatSection* section_ = nullptr;   // of calls
  const ChatSection* thinking_ = nullptr;  // the reasoning that is not closed yet
  std::string buffer_;                     // from at_ on, text that is not taken yet
  size_t at_ = 0;
  size_t searched_ = 0;                   // no closing mark begins before this place in the section's text
  std::string blanks_;                    // white space that was not passed on yet
  bool trim_ = false;                     // white space that comes now is dropped
  bool apart_ = false;                    // a line end comes before what is passed on next
  bool said_ = false, reasoned_ = false;  // something was passed on
  char before_ = 0;                       // the last character that was said
  uint32_t opened_ = 0;                   // opening marks of reasoning that are text
  // Calls within the reasoning, and how they were written: they count if nothing but white space and the
  // closing mark follows.
  std::vector<ChatCall> held_;
  std::string held_text_;
  bool held_closed_ = false;
  std::string recipient_;  // whom the message of a channel is for, or the tool of a call with a name above it
  bool thought_ = false;   // the message is reasoning
  bool resumes_ = false;   // what looks like a header may be a part of the message
  bool called_ = false;    // a bare call has come
  bool stopped_ = false;
  uint32_t failed_calls_ = 0;
  CallPieces pieces_;  // of the section, the bare call or the message
  size_t looked_ = 0;  // so much of its text was given to pieces_
};

}  // namespace greta
