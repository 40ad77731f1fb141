// Callbacks of a C++ program that throw. The call says which callback threw, and all objects are as before
// the call.
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "places.h"
#include "support/api_objects.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const int32_t kPrompt[] = {1, 5, 9};

// A callback that throws in its call number `at`.
struct Thrower {
  int at = 0, calls = 0;
  bool known = true;  // throws an exception with a text
  void call() {
    if (++calls != at) return;
    if (known) throw std::runtime_error("a reason of the caller");
    throw 7;
  }
  static void call(void* user) { static_cast<Thrower*>(user)->call(); }
};

void check_thrown(greta_status status, const char* callback) {
  CHECK(status == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("threw") && ContainsSubstring(callback));
}

std::vector<float> logits_of(greta_session* session) {
  const float* logits = nullptr;
  REQUIRE(greta_session_eval(session, kPrompt, 3, GRETA_ROWS_LAST, &logits) == GRETA_OK);
  const std::vector<float> copy(logits, logits + 67);
  REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
  return copy;
}

}  // namespace

TEST_CASE("callbacks: one that throws while tokens are generated leaves the session as before",
          "[api][callbacks]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const std::vector<float> expected = logits_of(o.session);
  Thrower thrower;
  thrower.known = GENERATE(true, false);
  thrower.at = 1;
  auto options = sized<greta_generate_options>();
  options.max_tokens = 6;
  options.ignore_end = 1;
  options.user = &thrower;
  const auto generate = [&] { return greta_session_generate(o.session, kPrompt, 3, &options, nullptr); };
  SECTION("on_token") {
    thrower.at = GENERATE(1, 4);
    options.on_token = [](void* user, int32_t, const char*, size_t) { return Thrower::call(user), 0; };
    check_thrown(generate(), "on_token");
    if (thrower.known) CHECK_THAT(greta_error_text(), ContainsSubstring("a reason of the caller"));
  }
  SECTION("on_prompt") {
    options.on_prompt = [](void* user, uint32_t, uint32_t) { return Thrower::call(user), 0; };
    check_thrown(generate(), "on_prompt");
  }
  SECTION("a logit filter") {
    const auto filter = [](void* user, float*, size_t, const int32_t*, size_t) {
      return Thrower::call(user), 0;
    };
    REQUIRE(greta_session_logit_filter(o.session, filter, &thrower) == GRETA_OK);
    check_thrown(generate(), "logit filter");
    REQUIRE(greta_session_logit_filter(o.session, nullptr, nullptr) == GRETA_OK);
  }
  CHECK(greta_session_position(o.session) == 0);
  options.on_token = nullptr;
  options.on_prompt = nullptr;
  CHECK(generate() == GRETA_OK);
  REQUIRE(greta_session_truncate(o.session, 0) == GRETA_OK);
  CHECK(logits_of(o.session) == expected);
}

TEST_CASE("callbacks: one that throws while a session is saved, restored or profiled", "[api][callbacks]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  std::vector<int32_t> tokens(70, 7);
  REQUIRE(greta_session_eval(o.session, tokens.data(), tokens.size(), GRETA_ROWS_NONE, nullptr) == GRETA_OK);
  std::string state;
  const auto append = [](void* user, const void* bytes, size_t count) {
    static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), count);
    return 0;
  };
  REQUIRE(greta_session_save(o.session, append, &state) == GRETA_OK);
  for (const int at : {1, 2, 3}) {
    Thrower thrower{at};
    check_thrown(
        greta_session_save(
            o.session, [](void* user, const void*, size_t) { return Thrower::call(user), 0; }, &thrower),
        "write");
    struct Reader {
      Thrower thrower;
      const std::string& state;
    } reader{{at}, state};
    auto source = sized<greta_source>();
    source.user = &reader;
    source.size_bytes = state.size();
    source.read_at = [](void* user, uint64_t offset, void* to, uint64_t bytes) {
      auto& self = *static_cast<Reader*>(user);
      self.thrower.call();
      memcpy(to, self.state.data() + offset, bytes);
      return 0;
    };
    check_thrown(greta_session_restore(o.session, &source), "read_at");
    CHECK(greta_session_position(o.session) == 70);
  }
  std::string again;
  REQUIRE(greta_session_save(o.session, append, &again) == GRETA_OK);
  CHECK(again == state);
  Thrower thrower{1};
  check_thrown(greta_session_profile(
                   o.session, kPrompt, 3, [](void* user, const greta_profile_stage*) { Thrower::call(user); },
                   &thrower),
               "on_stage");
  CHECK(greta_session_truncate(o.session, 0) == GRETA_OK);
  logits_of(o.session);
}

TEST_CASE("callbacks: one that throws while a model or a runtime is opened", "[api][callbacks]") {
  Objects o;
  Thrower thrower{3};
  auto options = sized<greta_model_options>();
  options.source = &o.source;
  options.progress = [](void* user, uint64_t, uint64_t) { return Thrower::call(user), 0; };
  options.progress_user = &thrower;
  check_thrown(greta_model_open(o.runtime, &options, &o.model), "progress");
  struct Reader {
    Thrower thrower;
    const std::string& file;
  };
  for (const int at : {1, 2, 3, 5}) {
    Reader reader{{at}, o.tiny.file};
    auto source = sized<greta_source>();
    source.user = &reader;
    source.size_bytes = o.tiny.file.size();
    source.read_at = [](void* user, uint64_t offset, void* to, uint64_t bytes) {
      auto& self = *static_cast<Reader*>(user);
      self.thrower.call();
      memcpy(to, self.file.data() + offset, bytes);
      return 0;
    };
    options = sized<greta_model_options>();
    options.source = &source;
    check_thrown(greta_model_open(o.runtime, &options, &o.model), "read_at");
    REQUIRE(o.model == nullptr);
  }
  greta_tokenizer* tokenizer = nullptr;
  thrower = {1};
  check_thrown(greta_tokenizer_open(
                   o.file, [](void* user, greta_log_level, const char*) { Thrower::call(user); }, &thrower,
                   &tokenizer),
               "log");
  CHECK(o.load() == GRETA_OK);
  logits_of(o.session);
}

TEST_CASE("callbacks: a caller's allocator that throws", "[api][callbacks]") {
  Thrower thrower;
  greta_runtime_options options{};
  options.threads = 2;
  options.allocator_user = &thrower;
  options.allocate = [](void* user, uint64_t bytes, uint64_t alignment) {
    Thrower::call(user);
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  };
  options.release = [](void*, void* pointer, uint64_t) {
    std::free(pointer);
    throw std::runtime_error("nobody can be told");
  };
  for (const int at : {1, 2}) {
    thrower = {at};
    Objects o(TinyShape{.vocab = 300}, options);
    check_thrown(o.load(), "allocate");
    greta_session_close(o.session);
    greta_model_close(o.model);
    o.session = nullptr;
    o.model = nullptr;
    CHECK(o.load() == GRETA_OK);
  }
}

TEST_CASE("callbacks: one of a self-test and one of a chat that throw", "[api][callbacks]") {
  Objects o;
  o.source = sized<greta_source>();
  o.source.path = GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf";  // its vocabulary has real texts
  REQUIRE(o.load() == GRETA_OK);
  Thrower thrower{1};
  auto selftest = sized<greta_selftest_options>();
  selftest.op = "add";
  selftest.quick = 1;
  selftest.user = &thrower;
  uint32_t failed = 0;
  selftest.on_result = [](void* user, const greta_selftest_result*) { return Thrower::call(user), 0; };
  check_thrown(greta_runtime_selftest(o.runtime, &selftest, &failed), "on_result");
  greta_chat* chat = nullptr;
  REQUIRE(greta_chat_open(o.session, nullptr, &chat) == GRETA_OK);
  const greta_message hello = {"user", "A tale!", nullptr};
  REQUIRE(greta_chat_add(chat, &hello) == GRETA_OK);
  auto answer = sized<greta_chat_answer_options>();
  answer.max_tokens = 4;
  answer.ignore_end = 1;
  answer.user = &thrower;
  answer.on_event = [](void* user, const greta_chat_event*) { return Thrower::call(user), 0; };
  for (const int at : {1, 2, 3}) {
    thrower = {at};
    check_thrown(greta_chat_answer(chat, &answer, nullptr), "on_event");
    CHECK(greta_chat_count(chat) == 1);
  }
  answer.on_event = nullptr;
  CHECK(greta_chat_answer(chat, &answer, nullptr) == GRETA_OK);
  CHECK(greta_chat_count(chat) == 2);
  greta_chat_close(chat);
}
