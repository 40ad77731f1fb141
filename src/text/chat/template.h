// Writes a conversation as the text that a model was trained on, by the chat template of its file, or by a
// plain format of our own if it has none that works.
#pragma once
#include <string>
#include <string_view>

#include "gguf/gguf.h"
#include "text/jinja/jinja.h"
#include "text/tokenizer/tokenizer.h"

namespace greta {

struct ChatInput {
  jinja::Value messages;   // list of dicts: role, content (a text or a list of parts), tool_calls, ...
  jinja::Value tools;      // list of dicts, or undefined
  jinja::Value arguments;  // dict of further variables (enable_thinking, documents, ...), or undefined; they
                           // take precedence over everything but the messages
  bool add_generation_prompt = true;
  int64_t now_s = 0;  // seconds since 1970 in local time, for templates that write the date
};

class ChatTemplate {
 public:
  // Reads tokenizer.chat_template of the file, and tokenizer.chat_template.tool_use for chats with tools if
  // there is one. If a template does not parse or is missing, a plain format stands in, whose control tokens
  // are in the vocabulary, or else ChatML. A template that does not parse is a warning.
  Status open(const Gguf& gguf, const Tokenizer& tokenizer, const Log& log);
  // Opens the caller's text instead, or the plain format of that name ("chatml", "llama3"). A text that does
  // not parse is an error.
  Status open_text(std::string_view text, const Tokenizer& tokenizer);

  // Appends the text, which is to be encoded with parse_special and add_special: if encode() adds the BOS
  // token, the one at the start of the rendering is left out. raise_exception gives Code::Argument.
  Status render(const ChatInput& input, const jinja::Limits& limits, std::string* out) const;

  // Renders with any context. Tokens are added if it has none, and the BOS token stays where it is.
  Status render_context(const jinja::Value& context, int64_t now_s, const jinja::Limits& limits,
                        std::string* out) const;

  const std::string& text() const { return text_; }            // also that of a plain format
  const std::string& tool_text() const { return tool_text_; }  // "" if chats with tools use the same
  bool is_fallback() const { return fallback_ != nullptr; }
  const char* fallback() const { return fallback_ ? fallback_ : ""; }  // "ChatML", or "" if none stands in

 private:
  void read_tokens(const Tokenizer& tokenizer);
  Status fall_back(const Tokenizer& tokenizer);

  std::string text_, tool_text_;
  jinja::Template template_, tool_template_;
  bool has_tool_template_ = false;
  const char* fallback_ = nullptr;
  jinja::Value tokens_;  // bos_token, eos_token and the like, which templates read
  std::string bos_;      // text of the BOS token, if encode() adds one
};

}  // namespace greta
