// How conversations are written for a model, and how its answers are read: by its chat template, which also
// determines how answers are taken apart (text/chat/).
#pragma once
#include "engine/model/model.h"

namespace greta {

constexpr size_t kMaxMessages = 65'536;  // of a conversation
Status check_message_count(size_t count);

struct ChatOptions {
  std::string_view chat_template = {};  // in place of the model's; "" for the model's
  std::string_view tools = {};          // JSON, as ToolList reads it
  std::string_view arguments = {};      // a JSON object of further variables of the template
  int64_t now_s = 0;                    // seconds since 1970, for templates that write the date
  bool raw = false;                     // answers are not taken apart
  bool parse_content = false;           // control tokens that messages write out are control tokens
  bool forget_oldest = false;           // where a chat's context is full, the oldest turns leave
  bool join_system = false;             // messages of the system and developers become one at the beginning
  bool continue_answer = false;         // the last message is an answer that goes on
  std::string_view tool_choice = {};    // as read_tool_choice reads it; "": nothing is held
  bool one_call = false;                // at most one call in an answer
  bool strict_tools = false;            // a schema of a tool that cannot be held is an error
};

// What a chat template says of conversations, read once for all of them.
struct ChatManner {
  ChatTemplate chat;
  ChatForm form;
  std::vector<int32_t> spoken;  // control tokens whose text means something in answers, ascending
  int32_t message_token = kNoToken;  // the control token with which messages begin, if it is the same for all

  // chat_template: as in ChatOptions
  Status open(const Model& model, std::string_view chat_template, const Log& log);
};

// An id for call number `number` of a conversation, for models that give none: nine letters and digits, as
// Mistral's templates require.
std::string call_id(size_t number);

class Dialect {
 public:
  Status open(const Model& model, const ChatOptions& options, const Log& log);
  // The same, where the template was read before.
  Status open(const Model& model, const ChatOptions& options, std::shared_ptr<const ChatManner> manner);

  // Checks a message in OpenAI's form: role, content (a text, null, or a list of parts), tool_calls and so
  // on.
  static Status check(const jinja::Value& message);
  Status render(std::span<const jinja::Value> messages, bool add_generation_prompt, std::string* out) const;
  Status check_answerable(std::span<const jinja::Value> messages) const;  // the last one, or it can go on
  // Renders what the model is to answer, as text and as tokens.
  Status prompt(const Tokenizer& tokenizer, std::span<const jinja::Value> messages, std::string* text,
                std::vector<int32_t>* tokens) const;

  // Where in the tokens of a prompt its second and its last message begin, ascending: behind what
  // conversations have in common, and where one is taken up again with another message.
  std::vector<uint32_t> message_places(std::span<const int32_t> tokens) const;

  // Makes the grammar begin behind the reasoning of what the model answers to the text of a prompt.
  Status hold_answer(const Tokenizer& tokenizer, std::string_view prompt,
                     std::shared_ptr<const Grammar>* grammar, bool calls = false) const;
  // Makes the grammars of an answer that may or must call tools: behind the reasoning, and of all of it,
  // where `reasons`. `*grammar` is the one of what is said, or null.
  Status hold_request(const Tokenizer& tokenizer, std::string_view prompt, bool reasons, const Log& log,
                      std::shared_ptr<const Grammar>* grammar, std::shared_ptr<const Grammar>* whole) const;

  const ChatTemplate& chat_template() const { return manner_->chat; }
  const ChatForm& form() const { return form_; }
  // Those whose calls are looked for in answers.
  const ToolList& tools() const { return choice_.kind == ToolChoice::Kind::None ? no_tools_ : tools_; }
  // Control tokens whose text means something in answers, ascending.
  std::span<const int32_t> spoken() const { return spoken_; }

 private:
  void find_calls(const Tokenizer& tokenizer);
  ChatInput input(std::span<const jinja::Value> messages, bool add_generation_prompt) const;

  std::shared_ptr<const ChatManner> manner_;
  ChatForm form_;
  ToolList tools_, no_tools_;
  ToolChoice choice_;
  CallWriting writing_;  // where a choice is held
  jinja::Value arguments_;
  int64_t now_s_ = 0;
  bool parse_content_ = false, join_system_ = false, continue_answer_ = false;
  std::vector<int32_t> spoken_;
};

}  // namespace greta
