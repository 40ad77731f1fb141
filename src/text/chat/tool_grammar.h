// The grammar of an answer that may or must call tools, in the form in which the model's template writes
// calls and with the arguments that the tools' schemas allow.
#pragma once
#include "text/chat/call_writing.h"
#include "text/grammar/grammar.h"

namespace greta {

struct ToolChoice {
  enum class Kind : uint8_t {
    Free,      // nothing is held
    None,      // no call
    Auto,      // text or calls, which are held from their mark on
    Required,  // a call at least
    Name,      // of one tool
  } kind = Kind::Free;
  std::string name;
  bool one_call = false;  // at most
  bool strict = false;    // a schema that cannot be held is an error; a tool's own `strict` says so, too
};

// Reads "none", "auto", "required" or the name of a tool.
Status read_tool_choice(std::string_view text, const ToolList& tools, ToolChoice* out);

// Makes the grammar of what comes behind the reasoning; of the whole answer where the form has channels. If
// `*grammar` is not null, it holds what is said where nothing is called. Null stays where nothing is to hold.
Status hold_calls(const ChatForm& form, const CallWriting& writing, const ToolList& tools,
                  const ToolChoice& choice, const Tokenizer& tokenizer, const Log& log,
                  std::shared_ptr<const Grammar>* grammar);

}  // namespace greta
