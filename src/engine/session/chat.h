// A conversation: messages in, parts of the answer out.
//
// It is rendered as a whole every turn, and of its tokens only those are fed that the session does not
// hold already. The model's template says how answers are taken apart, see chat_parser.h.
#pragma once
#include "engine/session/session.h"
#include "text/text.h"

namespace greta {

enum class ChatEnd : uint32_t { Stop = 0, Length = 1, ToolCalls = 2, Context = 3, Cancelled = 4 };

struct ChatOptions {
  std::string_view chat_template = {};  // in place of the model's; "": the model's
  std::string_view tools = {};          // JSON, see ToolList
  std::string_view arguments = {};      // a JSON object: further variables of the template
  int64_t now_s = 0;                    // for templates that write the date
  bool raw = false;                     // answers are text as it comes
};

// All but `end` are called as the answer comes; false or non-zero stops it.
struct ChatEvents {
  std::function<bool(std::string_view)> text, reasoning;
  std::function<bool(const ChatCall&)> call;
  std::function<bool(uint32_t done, uint32_t total)> prompt;  // tokens that are new
};

struct ChatAnswerOptions {
  uint32_t max_tokens = 0;  // 0: until the context is full
  bool ignore_end = false;
  int64_t reasoning_tokens = -1;  // after so many the reasoning is closed; -1: when the model likes
  std::span<const std::string_view> stops = {};
};

struct ChatResult {
  ChatEnd end = ChatEnd::Stop;
  uint32_t prompt_tokens = 0;  // of the whole conversation
  uint32_t reused_tokens = 0;  // of them, those that the session held already
  uint32_t generated_tokens = 0;
  uint32_t reasoning_tokens = 0;  // of them
  uint32_t open_reasoning = 0;    // 1: the answer ended inside its reasoning
  uint64_t prompt_ns = 0, generate_ns = 0;
};

class Chat {
 public:
  // The session is the caller's and outlives the chat. What it holds is taken for what was fed to it.
  static Status open(Session& session, const ChatOptions& options, const Log& log,
                     std::unique_ptr<Chat>* out);

  // A message in OpenAI's form: role, content (a text, null, or a list of parts), tool_calls, tool_call_id,
  // ...
  Status add(jinja::Value message);
  const std::vector<jinja::Value>& messages() const { return messages_; }
  void truncate(size_t count) { messages_.resize(std::min(count, messages_.size())); }

  // Answers the last message, and adds the answer to the messages unless nothing was said. On a failure
  // the conversation is as before, but for Code::Device.
  Status answer(const ChatAnswerOptions& options, const ChatEvents& events, ChatResult* result);

  Status render(bool add_generation_prompt, std::string* out) const;
  const ChatTemplate& chat_template() const { return template_; }
  const ToolList& tools() const { return tools_; }

 private:
  struct Answer;
  explicit Chat(Session& session) : session_(session) {}
  Status read(const ChatOptions& options, const Log& log);
  void find_spoken();
  jinja::Value for_template(const jinja::Value& message) const;
  Status generate(std::vector<int32_t> tokens, const ChatAnswerOptions& options, Answer* answer,
                  ChatResult* result);

  Session& session_;
  ChatTemplate template_;
  ChatForm form_;
  ToolList tools_;
  jinja::Value arguments_;
  int64_t now_s_ = 0;
  std::vector<int32_t> spoken_;  // control tokens that mean something in answers
  std::vector<jinja::Value> messages_;
};

}  // namespace greta
