// A conversation as the text that a model was trained on. Recognises three widespread families of
// chat templates by their marks and renders them as they would; stands in for a template engine.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "engine/gguf.h"

namespace greta {

struct ChatMessage {
  std::string_view role;  // "system", "user" or "assistant"
  std::string_view content;
};

// Appends to `*out` what the Jinja text `chat_template` makes of the messages, for encode() with
// parse_special. The BOS token at its start is left out: encode() adds it. Unsupported, with the
// reason, for a template of no known family or one that does more than its family does.
Status render_chat(std::string_view chat_template, std::span<const ChatMessage> messages,
                   bool add_generation_prompt, std::string* out);

// With the model's own template; Unsupported if it has none.
Status render_chat(const Gguf& gguf, std::span<const ChatMessage> messages, bool add_generation_prompt,
                   std::string* out);

}  // namespace greta
