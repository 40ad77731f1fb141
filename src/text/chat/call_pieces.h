// Calls of tools while they are written: the name once it is known, and the arguments in pieces, where they
// are JSON. The pieces together are what the whole call has: the JSON written anew, as to_json() does.
//
// A call is passed on when its name is that of a known tool and the object of its arguments has begun. What
// is no call after all, since it ends in the middle or goes on as no JSON does, has begun then, and never
// ends.
#pragma once
#include "text/chat/calls.h"

namespace greta {

// Reads the text of a JSON object from its bracket on, in pieces of any size, and writes it anew. Keys that
// come twice stay.
class JsonCopy {
 public:
  // Appends what is certain to `*out`. Returns how many bytes belong to the object, all if it goes on.
  size_t push(std::string_view text, std::string* out);
  bool done() const { return state_ == State::Done; }
  bool broken() const { return state_ == State::Broken; }  // It is no JSON.

 private:
  enum class State : uint8_t { Value, FirstItem, FirstKey, Key, Colon, After, Text, Scalar, Done, Broken };
  void take(char c, std::string* out);
  void begin_value(char c, std::string* out);
  void open(char bracket, std::string* out);
  void close(char bracket, std::string* out);
  void take_after(char c, std::string* out);
  void take_text(std::string* out);
  void end_scalar(std::string* out);

  State state_ = State::Value;
  std::string open_;     // brackets
  std::string held_;     // the beginning of an escape, of a character, or of a number
  bool is_key_ = false;  // the text is one
};

// Finds the calls in the body of a section of calls while it comes.
class CallPieces {
 public:
  struct Sink {
    std::function<bool(const ChatCall&)> begin;      // its id and name
    std::function<bool(std::string_view)> argument;  // a piece of its arguments
  };

  // name: of the call, if that is known from elsewhere and the body is its arguments alone; else ""
  void start(std::string_view name);
  // The next bytes of the body. Gives calls that are whole to `whole`. False: the sink wants no more.
  bool push(std::string_view text, const ToolList& tools, const Sink& sink,
            const std::function<bool(ChatCall)>& whole);
  size_t calls() const { return calls_; }  // how many of this body are whole
  bool begun() const { return begun_; }    // at least one has begun

 private:
  enum class State : uint8_t { Head, Arguments, Tail, Nothing };
  size_t take_head(std::string_view text, const ToolList& tools, const Sink& sink, bool* wanted);
  size_t take_tail(std::string_view text);

  State state_ = State::Nothing;
  std::string head_;  // what stands before the arguments
  ChatCall call_;
  JsonCopy copy_;
  uint32_t depth_ = 0;  // brackets to close behind the arguments
  bool quoted_ = false, escaped_ = false;
  size_t calls_ = 0;
  bool begun_ = false, named_ = false;
};

}  // namespace greta
