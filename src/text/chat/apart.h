// Keeps what a conversation says apart from what its template says. A control token that is written out in a
// message, a result or the description of a tool is text, and only the template's own ones are control
// tokens.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "text/chat/template.h"

namespace greta {

// Renders the conversation and appends its tokens, with those that encode() adds at its beginning and end.
// `text` is what ChatTemplate::render gives. A control token that the template itself looks for in a message,
// such as the end of reasoning in an earlier answer, is what the template makes of it.
// cut  gives how much of the rendering is kept; null: all of it
using CutRendering = std::function<Status(std::string_view rendered, size_t* bytes)>;
Status encode_apart(const ChatTemplate& form, const ChatInput& input, const Tokenizer& tokenizer,
                    std::string* text, std::vector<int32_t>* tokens, const CutRendering& cut = {});

}  // namespace greta
