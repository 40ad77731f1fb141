// How a chat template writes calls of tools, so that a grammar can hold a model to it. The template shows it
// when it writes some: what it was given is found again in what it has written, and the rest is the form.
#pragma once
#include "text/chat/parser.h"

namespace greta {

// A stretch of the form. In it kAnyId stands for the id of a call, and kAnyNumber for digits.
using CallText = std::string;
constexpr char kAnyId = 1, kAnyNumber = 2;

struct CallWriting {
  bool known = false;
  bool json = false;       // the arguments are a JSON object, else each of them is written by itself
  bool more = false;       // further calls may follow
  bool bare = false;       // it begins without a mark
  std::string mark;        // with which calls begin, "" if that is no mark
  CallText head;           // up to the first name
  CallText between, tail;  // behind the arguments: up to the next name, and to the end
  CallText before_json;    // from the name to the object

  // An argument by itself: KEY assign[kind] VALUE close[kind], for texts and for all other values.
  enum Kind : uint8_t { Text, Other };
  CallText before_keys;  // from the name to the first key
  CallText next_key;     // behind a value
  CallText assign[2], close[2];
  CallText none_between, none_tail;  // from the name, where there are no arguments
};

// ends  texts of tokens that end an answer
CallWriting find_call_writing(const ChatForm& form, std::span<const std::string> ends,
                              const RenderConversation& render);

}  // namespace greta
