// A conversation: messages go in, parts of the answer come out.
//
// It is rendered as a whole every turn, and only the tokens that the session does not hold already are fed.
#pragma once
#include "engine/session/dialect.h"
#include "engine/session/session.h"

namespace greta {

enum class ChatEnd : uint32_t { Stop = 0, Length = 1, ToolCalls = 2, Context = 3, Cancelled = 4 };

// Called while the answer comes. A callback that returns false stops it.
struct ChatEvents {
  std::function<bool(std::string_view)> text, reasoning;
  std::function<bool(const ChatCall&)> call;
  std::function<bool(uint32_t done, uint32_t total)> prompt;  // counts tokens that the session did not hold
};

struct ChatAnswerOptions {
  uint32_t max_tokens = 0;  // 0: until the context is full
  bool ignore_end = false;
  int64_t reasoning_tokens = -1;  // reasoning is closed after this many tokens; -1: when the model closes it
  std::span<const std::string_view> stops = {};
};

struct ChatResult {
  ChatEnd end = ChatEnd::Stop;
  uint32_t prompt_tokens = 0;  // of the whole conversation
  uint32_t reused_tokens = 0;  // prompt tokens that the session held already
  uint32_t generated_tokens = 0;
  uint32_t reasoning_tokens = 0;  // generated tokens that belong to reasoning
  uint32_t open_reasoning = 0;    // 1: the answer ended inside its reasoning
  uint32_t forgotten_messages =
      0;  // the oldest ones, behind the system message, that the model does not read
  uint64_t prompt_ns = 0, generate_ns = 0;
};

class Chat {
 public:
  // The session belongs to the caller and must outlive the chat. Its tokens count as fed.
  static Status open(Session& session, const ChatOptions& options, const Log& log,
                     std::unique_ptr<Chat>* out);

  // Adds a message in OpenAI's form: role, content (a text, null, or a list of parts), tool_calls and so on.
  Status add(jinja::Value message);
  const std::vector<jinja::Value>& messages() const { return messages_; }
  void truncate(size_t count);

  // Answers the last message, and adds the answer to the messages unless it is empty. A failure leaves the
  // conversation as it was, except Code::Device.
  Status answer(const ChatAnswerOptions& options, const ChatEvents& events, ChatResult* result);

  // Gives the conversation as the model reads it, without the messages that have left.
  Status render(bool add_generation_prompt, std::string* out) const {
    return dialect_.render(kept(), add_generation_prompt, out);
  }
  const Dialect& dialect() const { return dialect_; }

 private:
  struct Answer;
  explicit Chat(Session& session) : session_(session) {}
  Status answer_last(const ChatAnswerOptions& options, const ChatEvents& events, ChatResult* result);
  Status encode_prompt(std::string* text, std::vector<int32_t>* tokens) const;
  std::vector<jinja::Value> kept() const;
  size_t system_count() const;
  bool forget_turn();
  Status make_room(size_t answer_tokens, std::string* text, std::vector<int32_t>* prompt);
  Status forget_within_answer(std::span<const int32_t> held, size_t* prompt_size,
                              std::vector<int32_t>* instead);
  Status generate(std::vector<int32_t> tokens, const ChatAnswerOptions& options, Answer* answer,
                  ChatResult* result);

  Session& session_;
  Dialect dialect_;
  std::vector<jinja::Value> messages_;
  bool forget_oldest_ = false;
  size_t forgotten_ = 0;  // how many of the messages behind the system message have left
};

}  // namespace greta
