// A conversation as the text that a model was trained on: the chat template of its file, or a plain
// format of our own if it has none that works.
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
  jinja::Value arguments;  // dict of further variables (enable_thinking, documents, ...), or undefined;
                           // they win over everything but the messages
  bool add_generation_prompt = true;
  int64_t now_s = 0;  // seconds since 1970 in local time, for templates that write the date
};

class ChatTemplate {
 public:
  // The file's tokenizer.chat_template, and tokenizer.chat_template.tool_use for chats with tools where
  // there is one. One that does not parse is a warning, and the fallback stands in, as for a file that
  // has none: ChatML, or the format whose control tokens are in the vocabulary.
  Status open(const Gguf& gguf, const Tokenizer& tokenizer, const Log& log);
  // The same with a text of the caller's, or the name of a plain format ("chatml", "llama3"); one that does
  // not parse is an error.
  Status open_text(std::string_view text, const Tokenizer& tokenizer);

  // Appends the text, to be encoded with parse_special and add_special: where encode() adds the BOS
  // token itself, the one at the start of the rendering is left out. What raise_exception says comes
  // back as Code::Argument.
  Status render(const ChatInput& input, const jinja::Limits& limits, std::string* out) const;

  // Any context, as a whole: tokens are added where it has none, and the BOS token is left where it is.
  Status render_context(const jinja::Value& context, int64_t now_s, const jinja::Limits& limits,
                        std::string* out) const;

  const std::string& text() const { return text_; }            // of the fallback too
  const std::string& tool_text() const { return tool_text_; }  // "" if chats with tools use the same
  bool is_fallback() const { return fallback_ != nullptr; }
  const char* fallback() const { return fallback_ ? fallback_ : ""; }  // "ChatML", "" if not needed

 private:
  void read_tokens(const Tokenizer& tokenizer);
  Status fall_back(const Tokenizer& tokenizer);

  std::string text_, tool_text_;
  jinja::Template template_, tool_template_;
  bool has_tool_template_ = false;
  const char* fallback_ = nullptr;
  jinja::Value tokens_;  // bos_token, eos_token and the like: what templates read of the vocabulary
  std::string bos_;      // text of the BOS token, if encode() adds one
};

}  // namespace greta
