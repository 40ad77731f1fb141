// A full context: tokens of a session are forgotten, or turns of a conversation leave, and what follows is
// what a session draws that reads the kept text for the first time.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/session/chat.h"
#include "places.h"
#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;
using namespace std::string_view_literals;
using jinja::Value;

namespace {

void require(Status status) {
  INFO(error_text());
  REQUIRE(status.ok());
}

struct Rig {
  TinyModel tiny;
  Engine engine;
  std::unique_ptr<Session> session;
  explicit Rig(uint32_t context, const ExecutorOptions& cache = {.key_type = 0, .value_type = 0}) {
    TinyShape shape;
    shape.vocab = 300;
    tiny = make_tiny(shape);
    ExecutorOptions options = cache;
    options.context = context;
    open_engine(tiny.file, {.threads = 1, .executor = options}, &engine);
    session = open();
  }
  // A session in place of the one before, whose pages it takes.
  std::unique_ptr<Session> open() {
    session.reset();
    std::unique_ptr<Session> opened;
    require(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &opened));
    return opened;
  }
  std::vector<int32_t> generate(Session& from, const std::vector<int32_t>& prompt, GenerateOptions options,
                                GenerateResult* result) {
    std::vector<int32_t> drawn;
    options.user = &drawn;
    options.ignore_end = true;
    options.on_token = [](void* user, int32_t token, const char*, size_t) {
      if (token != kNoToken) static_cast<std::vector<int32_t>*>(user)->push_back(token);
      return 0;
    };
    require(from.generate(prompt, options, result));
    return drawn;
  }
};

GenerateOptions shifting(uint32_t keep, uint32_t max_tokens) {
  GenerateOptions options;
  options.max_tokens = max_tokens;
  options.on_full = [keep](std::span<const int32_t> held, std::vector<int32_t>* instead) {
    return forget_half(held, keep, instead);
  };
  return options;
}

const std::vector<int32_t> kPrompt = {1, 5, 9, 13, 17};

}  // namespace

TEST_CASE("context shift: the older half behind what is kept is forgotten", "[session]") {
  std::vector<int32_t> held(20), instead;
  for (int32_t i = 0; i < 20; ++i) held[size_t(i)] = i;
  require(forget_half(held, 4, &instead));
  CHECK(instead == std::vector<int32_t>{0, 1, 2, 3, 12, 13, 14, 15, 16, 17, 18, 19});
  for (const uint32_t keep : {19u, 20u, 4000000000u}) {  // nothing can leave
    require(forget_half(held, keep, &instead));
    CHECK(instead.empty());
  }
}

TEST_CASE("context shift: the text goes on as a fresh evaluation of the kept text does", "[session]") {
  // Types of cache whose pages hold other bytes, and settings for the device's sampler and the host's.
  for (const ExecutorOptions& cache : {ExecutorOptions{.key_type = 0, .value_type = 0}, ExecutorOptions{}})
    for (const bool on_host : {false, true}) {
      Rig rig(64, cache);
      SamplerSettings settings;
      settings.temperature = on_host ? 3.0f : 0.0f;
      settings.mirostat_tau = on_host ? 3.0f : 0.0f;
      require(rig.session->set_sampling(settings));
      GenerateResult result;
      // The prompt and 59 tokens fill the context. The 60th shifts it, and so does no later one.
      const std::vector<int32_t> drawn = rig.generate(*rig.session, kPrompt, shifting(3, 62), &result);
      CHECK(result.reason == StopReason::Length);
      CHECK(result.generated_tokens == 62);
      CHECK(result.forgotten_tokens == 30);  // half of 64 - 3
      REQUIRE(rig.session->position() == 64 - 30 + 2);

      std::vector<int32_t> kept = kPrompt;
      kept.insert(kept.end(), drawn.begin(), drawn.begin() + 59);  // what the context held
      require(forget_half(std::vector(kept), 3, &kept));
      kept.insert(kept.end(), {drawn[59], drawn[60]});
      CHECK(std::equal(kept.begin(), kept.end(), rig.session->tokens().begin(), rig.session->tokens().end()));
      if (on_host) continue;  // its next draw depends on what mirostat knows of the earlier ones
      const std::unique_ptr<Session> fresh = rig.open();
      CHECK(rig.generate(*fresh, kept, shifting(3, 1), &result) == std::vector{drawn[61]});
    }
}

// CVE-2026-21869: more is kept than there is.
TEST_CASE("context shift: without it, or where all is kept, the generation ends", "[session]") {
  Rig rig(64);
  GenerateResult result;
  rig.generate(*rig.session, kPrompt, {}, &result);
  CHECK(result.reason == StopReason::Context);
  CHECK(result.forgotten_tokens == 0);
  CHECK(rig.session->position() == 64);
  const std::unique_ptr<Session> all = rig.open();
  rig.generate(*all, kPrompt, shifting(64, 100), &result);
  CHECK(result.reason == StopReason::Context);
  CHECK(result.forgotten_tokens == 0);
}

TEST_CASE("context shift: a grammar goes on across it", "[session][grammar]") {
  Rig rig(64);
  std::shared_ptr<const Grammar> grammar;
  // Digits before each t take turns, so that a token that was counted twice or not at all is noticed.
  constexpr const char* kTurns =
      "root ::= (n [0-3] \"t\" n [4-6] \"t\" n [7-9] \"t\")* (n [0-3] \"t\" (n [4-6] \"t\")?)?\nn ::= [0-9]*";
  require(parse_grammar(kTurns, "root", rig.engine.model->tokenizer.get(), &grammar));
  rig.session->set_grammar(grammar);
  SamplerSettings settings;
  settings.temperature = 5;
  settings.seed = 3;
  require(rig.session->set_sampling(settings));
  GenerateResult result;
  const std::vector<int32_t> drawn = rig.generate(*rig.session, kPrompt, shifting(0, 200), &result);
  REQUIRE(result.forgotten_tokens > 100);
  REQUIRE(drawn.size() == 200);
  GrammarMatcher matcher(grammar);
  require(matcher.reset());
  for (const int32_t token : drawn)
    require(matcher.push_token(token, rig.engine.model->tokenizer->piece(token)));
}

TEST_CASE("context shift: it can be stopped, and a wrong on_full is an error", "[session]") {
  Rig rig(64);
  GenerateResult result;
  GenerateOptions options = shifting(2, 100);
  static uint32_t prompts;
  prompts = 0;
  options.on_prompt = [](void*, uint32_t, uint32_t) { return ++prompts == 2 ? 1 : 0; };  // within the shift
  rig.generate(*rig.session, kPrompt, options, &result);
  CHECK(result.reason == StopReason::Cancelled);
  CHECK(rig.session->position() < 64);
  CHECK(rig.session->tokens().size() == rig.session->position());
  const float* logits = nullptr;
  require(rig.session->eval(kPrompt, OutputRows::Last, &logits));

  const std::unique_ptr<Session> other = rig.open();
  options = {};
  options.on_full = [](std::span<const int32_t> held, std::vector<int32_t>* instead) {
    instead->assign(held.begin(), held.end());
    return Status{};
  };
  CHECK(other->generate(kPrompt, options, &result).code == Code::Full);
  CHECK(other->position() == 0);
}

namespace {

struct Talk {
  Engine engine;
  std::unique_ptr<Session> session;
  std::unique_ptr<Chat> chat;
  explicit Talk(bool forget, uint32_t context) {
    std::ifstream file(GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf", std::ios::binary);
    static const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    open_engine(bytes, {.threads = 1, .executor = {.context = context}}, &engine);
    require(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session));
    require(Chat::open(*session, {.forget_oldest = forget}, Log{}, &chat));
  }
  void add(std::string_view role, std::string_view text) {
    Value message = Value::dict();
    message.set("role"sv, role);
    message.set("content"sv, text);
    require(chat->add(message));
  }
  ChatResult ask(std::string_view text, uint32_t max_tokens = 40) {
    add("user", text);
    ChatResult result;
    require(chat->answer({.max_tokens = max_tokens, .ignore_end = true}, {}, &result));
    return result;
  }
  std::string rendered() const {
    std::string text;
    require(chat->render(false, &text));
    return text;
  }
};

}  // namespace

TEST_CASE("chat: the oldest turns leave where the context is full", "[chat]") {
  Talk talk(true, 256);
  talk.add("system", "You like otters.");
  uint32_t forgotten = 0;
  for (int turn = 0; turn < 10; ++turn) {
    const ChatResult result = talk.ask("Question " + std::to_string(turn) + ": what did the beaver say?");
    CHECK(result.end == ChatEnd::Length);
    CHECK(result.generated_tokens == 40);
    CHECK(result.forgotten_messages >= forgotten);
    CHECK(result.forgotten_messages % 2 == 0);  // whole turns
    forgotten = result.forgotten_messages;
    CHECK(talk.chat->messages().size() == 1 + 2 * size_t(turn + 1));  // all of them are still there
  }
  CHECK(forgotten >= 10);
  CHECK(talk.rendered().find("otters") != std::string::npos);
  CHECK(talk.rendered().find("Question 0") == std::string::npos);
  CHECK(talk.rendered().find("Question 9") != std::string::npos);

  // A conversation that never had the turns that left answers the same.
  Talk fresh(false, 256);
  for (const Value& message : talk.chat->messages()) {
    const auto index = size_t(&message - talk.chat->messages().data());
    if (index == 0 || index > forgotten) require(fresh.chat->add(message));
  }
  CHECK(fresh.rendered() == talk.rendered());
  CHECK(fresh.ask("And the fox?", 12).generated_tokens == 12);
  CHECK(talk.ask("And the fox?", 12).forgotten_messages == forgotten);
  CHECK(fresh.chat->messages().back()["content"].as_string() ==
        talk.chat->messages().back()["content"].as_string());

  // With fewer messages than have left, nothing has left.
  talk.chat->truncate(3);
  CHECK(talk.rendered().find("Question 0") != std::string::npos);
}

TEST_CASE("chat: turns leave within an answer, whose text goes on", "[chat]") {
  Talk talk(true, 256);
  talk.ask("Tell me a story about a beaver.", 100);
  const ChatResult result = talk.ask("Tell me a story about a fox.", 150);
  CHECK(result.end == ChatEnd::Length);
  CHECK(result.generated_tokens == 150);
  CHECK(result.forgotten_messages == 2);
  CHECK(talk.session->position() < 256);
  // The one turn that is left fills the context, so that the answer ends there.
  const ChatResult full = talk.ask("Go on.", 400);
  CHECK(full.end == ChatEnd::Context);
  CHECK(full.forgotten_messages == 4);

  Talk stops(false, 256);
  stops.ask("Tell me a story about a beaver.", 100);
  const ChatResult stopped = stops.ask("Tell me a story about a fox.", 150);
  CHECK(stopped.end == ChatEnd::Context);
  CHECK(stopped.forgotten_messages == 0);
}

TEST_CASE("chat: a question that is too long for the context changes nothing", "[chat]") {
  Talk talk(true, 128);
  talk.ask("Tell me a story.", 8);
  std::string words;
  for (int i = 0; i < 200; ++i) words += "word ";
  talk.add("user", words);
  ChatResult result;
  CHECK(talk.chat->answer({}, {}, &result).code == Code::Full);
  CHECK(talk.rendered().find("story") != std::string::npos);
}
