// The text layer: tokenizers, grammars, chat templates and the parser of answers. It needs no device.
#pragma once
#include "text/chat/answer_grammar.h"
#include "text/chat/apart.h"
#include "text/chat/parser.h"
#include "text/chat/template.h"
#include "text/chat/tool_grammar.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/state.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/unicode.h"
