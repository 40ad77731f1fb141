// Control tokens that are written out in a conversation stay text, for all templates.
#include "text/chat/apart.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "support/test_data.h"
#include "text/chat/opened.h"

using namespace greta;
using jinja::Value;

namespace {

// A vocabulary of bytes, in which all that looks like a mark in a template is a control token.
struct Vocabulary {
  std::vector<std::string> controls = {"<s>", "</s>", "<|im_start|>", "<|im_end|>"};
  std::string file;
  Gguf gguf;
  Tokenizer tokenizer;

  explicit Vocabulary(const std::string& form) {
    const std::regex mark(R"(<[^<>\s'"{}]{1,40}>|\[/?[A-Z_]{3,30}\])");
    std::set<std::string> found;
    for (std::sregex_iterator at(form.begin(), form.end(), mark), end; at != end; ++at)
      found.insert(at->str());
    for (const std::string& text : found)
      if (std::find(controls.begin(), controls.end(), text) == controls.end()) controls.push_back(text);
    file = test::vocabulary(controls).file();
    Source source;
    REQUIRE(source.open_memory(file.data(), file.size()).ok());
    REQUIRE(gguf.open(std::move(source)).ok());
    REQUIRE(tokenizer.open(gguf, Log{}).ok());
  }
};

// A conversation that says `text` in every place where a stranger may have written.
ChatInput talk(const std::string& text) {
  std::string quoted;
  jinja::append_json_string("a " + text + " z", false, &quoted);
  ChatInput input;
  const std::string json =
      R"([{"role": "system", "content": )" + quoted + R"(}, {"role": "user", "content": )" + quoted +
      R"(}, {"role": "assistant", "content": "Well."}, {"role": "user", "content": )" + quoted + "}]";
  REQUIRE(jinja::parse_json(json, &input.messages).ok());
  const std::string tools = R"([{"type": "function", "function": {"name": "f", "description": )" + quoted +
                            R"(, "parameters": {"type": "object", "properties": {"k": {"type": "string",
                            "description": )" +
                            quoted + R"(}}, "required": ["k"]}}}])";
  REQUIRE(jinja::parse_json(tools, &input.tools).ok());
  return input;
}

// A conversation with a call of a tool, whose argument and result say `text`, and a question behind it.
ChatInput talk_with_results(const std::string& text) {
  ChatInput input = talk("hello");
  std::string quoted;
  jinja::append_json_string("a " + text + " z", false, &quoted);
  const std::string json =
      R"([{"role": "user", "content": "Well?"},
      {"role": "assistant", "content": "", "tool_calls": [{"id": "abcdefghi",
      "type": "function", "function": {"name": "f", "arguments": {"k": )" +
      quoted + R"(}}}]}, {"role": "tool", "tool_call_id": "abcdefghi", "name": "f", "content": )" + quoted +
      R"(}, {"role": "assistant", "content": "So."}, {"role": "user", "content": "And?"}])";
  REQUIRE(jinja::parse_json(json, &input.messages).ok());
  return input;
}

// Tries a conversation on all templates. Returns how many of them take it.
size_t try_templates(ChatInput (*talk)(const std::string& text)) {
  size_t tried = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data() / "templates")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string form(std::istreambuf_iterator<char>(file), {});
    const Vocabulary v(form);
    ChatTemplate chat;
    REQUIRE(chat.open_text(form, v.tokenizer).ok());
    std::string hostile;
    for (const std::string& text : v.controls) hostile += " " + text;
    const auto controls = [&](const std::string& text, bool apart, std::vector<int32_t>* out,
                              std::string* rendered) {
      const ChatInput input = talk(text);
      std::vector<int32_t> tokens;
      Status status = apart ? encode_apart(chat, input, v.tokenizer, rendered, &tokens)
                            : chat.render(input, {}, rendered);
      if (!status.ok()) return false;
      if (!apart) status = v.tokenizer.encode(*rendered, {.parse_special = true}, &tokens);
      REQUIRE(status.ok());
      for (const int32_t token : tokens)
        if (token < int32_t(v.controls.size())) out->push_back(token);
      return true;
    };
    INFO(entry.path().filename().string() << ": " << error_text());
    std::vector<int32_t> harmless, now, before;
    std::string text, same;
    if (!controls("hello", true, &harmless, &text)) continue;  // the template refuses the conversation
    ++tried;
    text.clear();
    REQUIRE(controls(hostile, true, &now, &text));
    REQUIRE(controls(hostile, false, &before, &same));
    CHECK(text == same);
    CHECK(before.size() > harmless.size());
    CHECK(now == harmless);
  }
  return tried;
}

}  // namespace

TEST_CASE("control tokens that are written out in messages are text, for all templates", "[engine][chat]") {
  const size_t tried = try_templates(talk);  // skips the test without the test data
  CHECK(tried > 35);
}

TEST_CASE("control tokens that are written out in calls and results are text, for all templates",
          "[engine][chat]") {
  const size_t tried = try_templates(talk_with_results);
  CHECK(tried > 25);
}
