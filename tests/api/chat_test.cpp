// Chat in greta.h: NULL, versions of structs, and events as a C caller gets them.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <string>

#include "greta.h"
#include "places.h"

using Catch::Matchers::ContainsSubstring;

namespace {

template <class T>
T sized() {
  T value{};
  value.struct_size = sizeof value;
  return value;
}

struct Opened {
  greta_runtime* runtime = nullptr;
  greta_model* model = nullptr;
  greta_session* session = nullptr;
  greta_chat* chat = nullptr;

  explicit Opened(const char* tools = nullptr) {
    auto on = sized<greta_runtime_options>();
    on.device = "cpu";
    REQUIRE(greta_runtime_open(&on, &runtime) == GRETA_OK);
    auto source = sized<greta_source>();
    source.path = GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf";
    auto load = sized<greta_model_options>();
    load.source = &source;
    REQUIRE(greta_model_open(runtime, &load, &model) == GRETA_OK);
    auto executor = sized<greta_executor_options>();
    executor.context = 256;
    auto open = sized<greta_session_options>();
    open.private_executor = &executor;
    REQUIRE(greta_session_open(model, &open, &session) == GRETA_OK);
    auto options = sized<greta_chat_options>();
    options.tools = tools;
    REQUIRE(greta_chat_open(session, &options, &chat) == GRETA_OK);
  }
  ~Opened() {
    greta_chat_close(chat);
    greta_session_close(session);
    greta_model_close(model);
    greta_runtime_close(runtime);
  }
  greta_status add(const char* role, const char* content, const char* json = nullptr) {
    const greta_message message = {role, content, json};
    return greta_chat_add(chat, &message);
  }
};

}  // namespace

TEST_CASE("api: chat with NULL and with structs of other versions", "[api][chat]") {
  Opened o;
  greta_message message;
  auto result = sized<greta_chat_result>();
  size_t bytes;
  greta_chat* chat = nullptr;
  greta_chat_close(nullptr);
  CHECK(greta_chat_count(nullptr) == 0);
  CHECK(greta_chat_open(nullptr, nullptr, &chat) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_open(o.session, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_add(nullptr, &message) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_add(o.chat, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(o.add(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(o.add("user", nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(o.add("user", "x", "[") == GRETA_ERROR_ARGUMENT);
  CHECK(o.add("user", "x", "[]") == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_get(nullptr, 0, &message) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_get(o.chat, 0, &message) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_truncate(nullptr, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_truncate(o.chat, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_render(nullptr, 1, nullptr, 0, &bytes) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_render(o.chat, 1, nullptr, 0, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_answer(nullptr, nullptr, &result) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_answer(o.chat, nullptr, &result) == GRETA_ERROR_ARGUMENT);  // there is nothing to answer
  REQUIRE(o.add("user", "Hi") == GRETA_OK);
  CHECK(greta_chat_get(o.chat, 0, nullptr) == GRETA_ERROR_ARGUMENT);

  struct {
    greta_chat_answer_options known;
    uint64_t later;
  } newer{};
  newer.known.struct_size = sizeof newer;
  newer.known.max_tokens = 1;
  CHECK(greta_chat_answer(o.chat, &newer.known, nullptr) == GRETA_OK);
  newer.later = 1;
  CHECK(greta_chat_answer(o.chat, &newer.known, nullptr) == GRETA_ERROR_UNSUPPORTED);
  newer.later = 0;
  newer.known.stop_count = 1;
  REQUIRE(o.add("user", "Hi") == GRETA_OK);
  CHECK(greta_chat_answer(o.chat, &newer.known, nullptr) == GRETA_ERROR_ARGUMENT);
  result.struct_size = 0;
  CHECK(greta_chat_answer(o.chat, nullptr, &result) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_chat_count(o.chat) == 3);
}

TEST_CASE("api: a conversation in C", "[api][chat]") {
  Opened o(R"([{"type": "function", "function": {"name": "f"}}])");
  struct Seen {
    std::string text;
    uint32_t done = 0, total = 0;
  } seen;
  REQUIRE(o.add("user", "Tell me a story about a beaver.") == GRETA_OK);
  auto options = sized<greta_chat_answer_options>();
  options.max_tokens = 10;
  options.user = &seen;
  options.on_event = [](void* user, const greta_chat_event* event) {
    Seen& s = *static_cast<Seen*>(user);
    CHECK(event->struct_size == sizeof *event);
    if (event->part == GRETA_CHAT_PROMPT) {
      s.done = event->done;
      s.total = event->total;
    } else {
      CHECK(event->part == GRETA_CHAT_TEXT);
      CHECK(strlen(event->text) == event->bytes);
      s.text.append(event->text, event->bytes);
    }
    return 0;
  };
  auto result = sized<greta_chat_result>();
  REQUIRE(greta_chat_answer(o.chat, &options, &result) == GRETA_OK);
  CHECK(result.end == GRETA_CHAT_END_LENGTH);
  CHECK(result.generated_tokens == 10);
  CHECK(result.reused_tokens == 0);
  CHECK(seen.done == result.prompt_tokens);
  CHECK(seen.total == result.prompt_tokens);
  CHECK(result.struct_size == sizeof result);

  greta_message message;
  REQUIRE(greta_chat_get(o.chat, 1, &message) == GRETA_OK);
  CHECK(std::string(message.role) == "assistant");
  CHECK(std::string(message.content) == seen.text);
  CHECK_THAT(message.json, ContainsSubstring("\"role\": \"assistant\""));

  // A stop string ends an answer, and is not part of it.
  const std::string stop = seen.text.substr(seen.text.size() / 2, 4);
  const char* const stops[] = {stop.c_str()};
  REQUIRE(greta_chat_truncate(o.chat, 1) == GRETA_OK);
  options.stop_count = 1;
  options.stop_strings = stops;
  seen = {};
  REQUIRE(greta_chat_answer(o.chat, &options, &result) == GRETA_OK);
  CHECK(result.end == GRETA_CHAT_END_STOP);
  CHECK(seen.text.find(stop) == seen.text.npos);
  CHECK(result.reused_tokens == result.prompt_tokens - 1);

  char text[4096];
  size_t bytes = 0;
  REQUIRE(greta_chat_render(o.chat, 0, text, sizeof text, &bytes) == GRETA_OK);
  CHECK_THAT(std::string(text, bytes), ContainsSubstring("beaver"));
}
