// Checkpoints where messages begin within a prompt: of sessions, and of requests in the prefix cache.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdio>

#include "engine/groups_rig.h"
#include "engine/session/chat.h"

using namespace greta;
using namespace greta::test;

namespace {

// In the vocabularies of these models <|user|> is a control token.
constexpr const char* kMarkedTemplate =
    "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|user|>{% endif %}";

jinja::Value message_of(const char* role, const std::string& content) {
  jinja::Value message = jinja::Value::dict();
  message.set(std::string_view("role"), role);
  message.set(std::string_view("content"), content);
  return message;
}

}  // namespace

TEST_CASE("places: the second and the last message of a prompt begin there", "[chat][groups]") {
  const std::string file = windowed("qwen35-converted", nullptr, 0);
  Rig rig({.context = 256, .sequences = 1}, {}, false, file);
  const Tokenizer& tokenizer = *rig.engine.model->tokenizer;
  ChatOptions options;
  options.chat_template = kMarkedTemplate;
  Dialect dialect;
  REQUIRE(dialect.open(*rig.engine.model, options, Log{}).ok());
  std::vector<jinja::Value> messages;
  std::string text;
  std::vector<int32_t> tokens, marks;
  REQUIRE(tokenizer.encode("<|user|>", {.add_special = false, .parse_special = true}, &marks).ok());
  REQUIRE(marks.size() == 1);
  for (size_t count = 1; count <= 4; ++count) {
    messages.push_back(message_of(count == 1 ? "system" : "user", "<11>"));
    REQUIRE(dialect.prompt(tokenizer, messages, &text, &tokens).ok());
    std::vector<uint32_t> begins;
    for (uint32_t at = 0; at < tokens.size(); ++at)
      if (tokens[at] == marks[0]) begins.push_back(at);
    REQUIRE(begins.size() == count + 1);
    std::vector<uint32_t> expected;
    if (count > 1) expected.push_back(begins[1]);
    if (count > 2) expected.push_back(begins[count - 1]);
    CHECK(dialect.message_places(tokens) == expected);
  }
  ChatOptions plain;
  plain.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}";
  Dialect unmarked;
  REQUIRE(unmarked.open(*rig.engine.model, plain, Log{}).ok());
  CHECK(unmarked.message_places(tokens).empty());
}

TEST_CASE("places: a session goes on where a message of its prompt began", "[groups][session]") {
  const bool windows = GENERATE(false, true);
  const Windowed& model = windows ? kWindowedModels[0] : kHybridModels[GENERATE(0, 1, 2)];
  const std::string file = windowed(model.golden, model.key, model.window);
  Sessions sessions(file, 1, 0);
  Reference reference(file);
  const std::unique_ptr<Session> session = sessions.open();
  std::vector<int32_t> text = some_tokens(700, 1);
  GenerateOptions options;
  options.max_tokens = 4;
  options.ignore_end = true;
  options.places = {130, 300};
  GenerateResult result;
  REQUIRE(session->generate(text, options, &result).ok());
  CHECK(result.prompt_tokens == 700);
  CHECK(result.reread_tokens == 0);
  for (const uint32_t place : {300u, 130u}) {
    if (windows && place == 130) continue;  // there is room for one of them and for that at the prompt's end
    REQUIRE(session->truncate(place).ok());
    text.resize(place);
    const std::vector<int32_t> more = some_tokens(40, place);
    REQUIRE(session->generate(more, options, &result).ok());
    CHECK(result.reread_tokens == (windows ? place % kPageTokens : 0));
    text.insert(text.end(), more.begin(), more.end());
    const std::vector<float> logits = reference.after(text);
    CHECK(session->tokens()[text.size()] == std::ranges::max_element(logits) - logits.begin());
  }
}

TEST_CASE("places: a chat that takes up an earlier message reads from there", "[groups][chat]") {
  const std::string file = windowed("qwen35-converted", nullptr, 0);
  Sessions sessions(file, 1, 0);
  uint32_t again = 0;
  sessions.engine.model->log = {
      [](void* user, uint32_t level, const char* text) {
        unsigned tokens = 0;
        if (LogLevel(level) == LogLevel::Debug && std::sscanf(text, "%u tokens are read again", &tokens) == 1)
          *static_cast<uint32_t*>(user) += tokens;
      },
      &again};
  const std::unique_ptr<Session> session = sessions.open();
  ChatOptions options;
  options.chat_template = kMarkedTemplate;
  std::unique_ptr<Chat> chat;
  REQUIRE(Chat::open(*session, options, Log{}, &chat).ok());
  REQUIRE(chat->add(message_of("system", std::string(200, '1'))).ok());
  for (int turn = 0; turn < 3; ++turn) {
    REQUIRE(chat->add(message_of("user", std::string(50, char('2' + turn)))).ok());
    ChatResult result;
    REQUIRE(chat->answer({.max_tokens = 4, .ignore_end = true}, {}, &result).ok());
    CHECK(result.reused_tokens >= (turn ? 100u : 0u));
    chat->truncate(1);
  }
  CHECK(again <= 2);  // the mark of the message
}

TEST_CASE("places: the second request goes on where its message begins", "[serve][groups]") {
  const std::string file = windowed(kHybridModels[GENERATE(0, 1, 2)].golden, nullptr, 0);
  Rig rig({.context = 512, .sequences = 4, .cache_tokens = 64 * 32}, {}, GENERATE(false, true), file);
  const auto asks = [&](uint32_t seed, bool marked) {
    std::vector<int32_t> text = some_tokens(150, 1);
    const std::vector<int32_t> own = some_tokens(120, seed);
    text.insert(text.end(), own.begin(), own.end());
    RequestOptions options = request_of(text, 6);
    if (marked) options.places = {150};
    return options;
  };
  const bool marked = GENERATE(false, true);
  for (uint32_t i = 0; i < 3; ++i) {
    const RequestOptions options = asks(2 + i, marked);
    const auto request = rig.add(options);
    rig.run();
    const Answer answer = answer_of(*request);
    const uint32_t first = marked ? 1 : 2;  // else where texts part, of which the third knows
    CHECK(answer.result.cached_tokens == (i >= first ? 128 : 0));
    CHECK(answer.tokens == alone(rig, options));
  }
  if (!marked) return;
  // Requests that arrive together compute what they have in common once.
  const uint64_t rows = rig.scheduler->counts().rows;
  std::vector<std::shared_ptr<Request>> together;
  for (uint32_t i = 0; i < 3; ++i) {
    RequestOptions options = asks(10 + i, marked);
    options.salt = 5;
    together.push_back(rig.add(options));
  }
  rig.run();
  for (const auto& request : together) answer_of(*request);
  const uint64_t own = 3 * (142 + 5);
  CHECK(rig.scheduler->counts().rows - rows == own + 128);
  rig.check_clean();
}
