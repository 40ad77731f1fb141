// The grammar of a whole answer: what a family of models writes before the answer itself, which is free, and
// then the text that a caller's grammar holds. So the grammar and the parser of answers agree on where the
// answer begins.
#pragma once
#include "text/chat/parser.h"
#include "text/grammar/grammar.h"

namespace greta {

// Puts before *grammar what may come there after `prompt`: the end of reasoning that the prompt has opened,
// or reasoning that the model opens itself. The grammar stays as it is if the prompt has closed the
// reasoning, if the family has none, and if the grammar writes marks of answers itself, since then it
// describes whole answers.
// calls  hold_calls() has made the grammar, whose marks are those of calls; in channels it is that of a whole
//        answer
Status hold_behind_reasoning(const ChatForm& form, const Tokenizer& tokenizer, std::string_view prompt,
                             std::shared_ptr<const Grammar>* grammar, bool calls = false);

}  // namespace greta
