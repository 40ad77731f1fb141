// OpenAI's responses: what a call asks for, and what is told of it.
#pragma once
#include <set>
#include <string>

#include "endpoints.h"

namespace greta::serve {

struct ResponseCall {
  std::string model;
  std::set<std::string> custom;  // names of tools that take one text
  std::string skipped;           // types of tools that were left out
  bool stream = false;
};

// The items of `input`, and the instructions, as messages; none for an empty probe.
std::vector<Json> response_messages(const Fields& fields);
void read_response_tools(const Fields& fields, Ask* ask, ResponseCall* call);
void read_response_text(const Fields& fields, const greta_tokenizer* tokenizer, Ask* ask);

}  // namespace greta::serve
