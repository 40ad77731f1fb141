// Text: tokenizers, grammars, templates of chats and the parser of answers. Nothing here needs a device.
#pragma once
#include "text/chat/parser.h"
#include "text/chat/template.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/state.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/unicode.h"
