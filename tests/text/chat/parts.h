// The parts of an answer, written as one line, so that a test compares texts.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "text/chat/parser.h"

namespace greta::test {

// The parts that came, in order: "T(...)" is text, "R(...)" reasoning, "C(name arguments)" with "#id" a call.
struct Parts {
  std::string all;
  char last = 0;
  bool add(char kind, std::string_view text) {
    if (kind == last)
      all.pop_back();
    else
      (all += kind) += '(';
    (all += text) += ')';
    last = kind;
    return true;
  }
  ChatSink sink() {
    return {[this](std::string_view text) { return add('T', text); },
            [this](std::string_view text) { return add('R', text); },
            [this](ChatCall call) {
              all += "C(" + call.name + " " + call.arguments + ")" + (call.id.empty() ? "" : "#" + call.id);
              last = 'C';
              return true;
            }};
  }
};

struct Pieces {  // of a text that is cut before each of these places
  std::string_view text;
  std::vector<size_t> cuts;
};

inline std::string parts_of(const ChatForm& form, const ToolList& tools, std::string_view prompt,
                            const Pieces& pieces) {
  Parts parts;
  ChatParser parser(form, tools, prompt, parts.sink());
  size_t start = 0;
  for (const size_t cut : pieces.cuts) {
    CHECK(parser.push(pieces.text.substr(start, cut - start)));
    start = cut;
  }
  CHECK(parser.push(pieces.text.substr(start)));
  CHECK(parser.finish());
  return parts.all;
}

}  // namespace greta::test
