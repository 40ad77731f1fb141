// Calls of tools that come in pieces: JSON that is written anew while it comes, several calls in a section,
// and what begins as a call and is none.
#include "text/chat/call_pieces.h"

#include <catch2/catch_test_macros.hpp>

#include "text/chat/parser.h"

using namespace greta;
using jinja::Value;

namespace {

std::string copy_of(std::string_view text, size_t piece, bool* done) {
  JsonCopy copy;
  std::string out;
  for (size_t at = 0; at < text.size(); at += piece) copy.push(text.substr(at, piece), &out);
  *done = copy.done();
  return out;
}

// Writes down what comes: "begin NAME ID|PIECES|call ARGUMENTS|", and what is said.
std::string events_of(std::string_view chat_template, std::string_view answer, size_t piece,
                      bool id_behind = false) {
  ChatForm form = chat_form(chat_template);
  form.style.id_behind = id_behind;
  ToolList tools;
  REQUIRE(tools.parse(R"([{"name": "f"}, {"name": "g"}])").ok());
  std::string out;
  ChatSink sink;
  sink.text = [&](std::string_view text) { return out += text, true; };
  sink.reasoning = [&](std::string_view text) { return out += text, true; };
  sink.call = [&](ChatCall call) {
    return out += "|call " + call.name + call.id + call.arguments + "|", true;
  };
  sink.pieces.begin = [&](const ChatCall& call) {
    return out += "|begin " + call.name + call.id + "|", true;
  };
  sink.pieces.argument = [&](std::string_view text) { return out += text, true; };
  ChatParser parser(form, tools, "", std::move(sink));
  for (size_t at = 0; at < answer.size(); at += piece) CHECK(parser.push(answer.substr(at, piece)));
  CHECK(parser.finish());
  return out;
}

constexpr std::string_view kHermes = "<tool_call>\n{\"name\": ...}\n</tool_call>";
constexpr std::string_view kMistral = "[TOOL_CALLS]";
constexpr std::string_view kChannels = "<|channel|>analysis<|message|>";

struct Row {
  std::string_view form, answer, events;
};

}  // namespace

TEST_CASE("JSON is written anew while it comes", "[chat][calls]") {
  constexpr std::string_view kTexts[] = {
      R"({})",
      R"( { } )",
      R"({"a":1,"b":[1,2.50,-0,1e3,[]],"c":{"d":{}}})",
      "{\n  \"a\" : true ,\t\"b\":\r\n null , \"c\": false}",
      R"({"s": "\u00e9\ud83d\ude00\ud83dx\ud83d\n\ud83d\ud83d\ude00\ude00\/\b\f\"\\"})",
      "{\"\u00e9\u65e5\": \"\u65e5\u672c\U0001F9AB\x7f\"}",
      R"({"n": 9007199254740993, "m": 1.0, "o": 123456789012345678901234567890})",
      R"({"deep": [[[[{"a": [{"b": "]}"}]}]]]]})",
  };
  for (const std::string_view text : kTexts) {
    Value value;
    REQUIRE(jinja::parse_json(text, &value).ok());
    for (const size_t piece : {size_t(1), size_t(2), size_t(5), text.size()}) {
      bool done = false;
      INFO(text << ", " << piece);
      CHECK(copy_of(text, piece, &done) == jinja::to_json(value));
      CHECK(done);
    }
  }
}

TEST_CASE("what is no JSON ends the copy", "[chat][calls]") {
  constexpr std::string_view kTexts[] = {
      "{a}",      R"({"a"})",           R"({"a":})",    R"({"a":1,})",     R"({"a":[1,]})", R"({"a":1]})",
      "{\"a\nb",  R"({"a": "\x"})",     R"({"a": 01})", R"({"a": tru})",   R"({"a" 1})",    "{\"\xff\"}",
      R"("text)", R"({"a": "\ud8zz"})", "{\"\xc3(\"}",  R"({"a": 1e999})", R"([1 2])",
  };
  for (const std::string_view text : kTexts)
    for (const size_t piece : {size_t(1), text.size()}) {
      JsonCopy copy;
      std::string out;
      for (size_t at = 0; at < text.size(); at += piece) copy.push(text.substr(at, piece), &out);
      INFO(text);
      CHECK(copy.broken());
      CHECK(!copy.done());
    }
  JsonCopy copy;
  std::string out;
  for (int i = 0; i < 100000 && !copy.broken(); ++i) copy.push("[", &out);
  CHECK(copy.broken());
  JsonCopy two;
  CHECK(two.push(R"({"a": {}} {"b": 1})", &out) == 9);
}

TEST_CASE("calls come in pieces", "[chat][calls]") {
  constexpr Row kRows[] = {
      {kHermes, R"(<tool_call>{"name": "f", "arguments": {"a":1}}</tool_call>)",
       R"(|begin f|{"a": 1}|call f{"a": 1}|)"},
      {kHermes, R"(Hm. <tool_call>{"id": "7", "name": "f", "arguments": {}}</tool_call> So.)",
       "Hm.|begin f7|{}|call f7{}|\nSo."},
      {kHermes, R"(<tool_call>{"name": "f", "arguments": {"a": 1}, "note": "}]"}
{"name": "g", "parameters": {}}</tool_call><tool_call>{"name": "g", "args": {"b": 2}}</tool_call>)",
       R"(|begin f|{"a": 1}|call f{"a": 1}||begin g|{}|call g{}||begin g|{"b": 2}|call g{"b": 2}|)"},
      {kHermes, R"(<tool_call>{"function": {"name": "f", "arguments": {"a": "</tool_call>"}}}</tool_call>)",
       R"(|begin f|{"a": "</tool_call>"}|call f{"a": "</tool_call>"}|)"},
      {kMistral, R"([TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}])",
       R"(|begin f|{"a": 1}|call f{"a": 1}||begin g|{}|call g{}|)"},
      {kMistral, R"([TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[CALL_ID]9[ARGS]{})",
       R"(|begin f|{"a": 1}|call f{"a": 1}||begin g9|{}|call g9{}|)"},
      {kChannels,
       R"(<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": "<|end|>"}<|call|>)",
       R"(|begin f|{"a": "<|end|>"}|call f{"a": "<|end|>"}|)"},
      // What comes whole: arguments before the name, or as a text.
      {kHermes, R"(<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>)", R"(|call f{"a": 1}|)"},
      {kHermes, R"(<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>)", R"(|call f{"a": 1}|)"},
      {kHermes, R"(<tool_call>{"name": "f"}</tool_call>)", R"(|call f{}|)"},
      // What is none: it has begun, or has not.
      {kHermes, R"(<tool_call>{"name": "f", "arguments": {"a": 1 2}}</tool_call>Then.)",
       R"(|begin f|{"a": 1Then.)"},
      {kHermes, R"(<tool_call>{"name": "f", "arguments": {"a": 1}} no</tool_call>Then.)",
       "|begin f|{\"a\": 1}|call f{\"a\": 1}|Then."},
      {kHermes, R"(<tool_call>{"name": "f", "arguments": {"a": "b)", R"(|begin f|{"a": "b)"},
      {kHermes, R"(<tool_call>{"name": "f", "arguments": {b}}</tool_call>)",
       R"(<tool_call>{"name": "f", "arguments": {b}}</tool_call>)"},
      {kHermes, R"(<tool_call>{"name": "f)", R"(<tool_call>{"name": "f)"},
      {kChannels, R"(<|channel|>commentary to=functions.f<|message|>{"a": 1, b<|end|>)",
       R"(|begin f|{"a": 1, )"},
  };
  for (const Row& row : kRows)
    for (const size_t piece : {size_t(1), size_t(3), row.answer.size()}) {
      INFO(row.answer << ", " << piece);
      CHECK(events_of(row.form, row.answer, piece) == row.events);
    }
}

TEST_CASE("calls of unknown tools, and those whose ids come late, come whole", "[chat][calls]") {
  constexpr std::string_view kOther = R"(<tool_call>{"name": "h", "arguments": {"a": 1}}</tool_call>)";
  CHECK(events_of(kHermes, kOther, 1) == R"(|call h{"a": 1}|)");
  constexpr std::string_view kLate = R"([TOOL_CALLS][{"name": "f", "arguments": {}, "id": "9"}])";
  CHECK(events_of(kMistral, kLate, 1, true) == "|call f9{}|");
}
