// Turns the text of a template into tokens. White space is treated as transformers does: trim_blocks and
// lstrip_blocks are on.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace greta::jinja {

enum class TokenType : uint8_t {
  Data,           // text outside of tags
  VariableBegin,  // {{
  VariableEnd,
  BlockBegin,  // {%
  BlockEnd,
  Name,
  String,
  Number,    // integer or float
  Operator,  // text is one of + - / // * % ** ~ [ ] ( ) { } == != > >= < <= = . : | ,
  End,       // of the template
};

struct Token {
  TokenType type = TokenType::End;
  uint32_t line = 1;
  std::string text;  // of a string, what it means without its escapes
  Value number;
  bool is(TokenType other, std::string_view other_text) const { return type == other && text == other_text; }
  bool is_op(std::string_view op) const { return is(TokenType::Operator, op); }
  bool is_name(std::string_view name) const { return is(TokenType::Name, name); }
};

// Appends the tokens, of which the last is End. Errors name the line.
Status tokenize(std::string_view text, std::vector<Token>* out);

}  // namespace greta::jinja
