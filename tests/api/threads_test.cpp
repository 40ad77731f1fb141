// Threads: sessions of one model side by side, runtimes side by side, and requests to stop that come from
// another thread at any moment. They run under the thread sanitizer too.
#include <atomic>
#include <thread>

#include "support/api_objects.h"

using namespace greta::test;

namespace {

constexpr uint32_t kThreads = 8;
constexpr int kRounds = 3;

struct Written {
  std::string text;
  uint32_t tokens = 0;
};

int keep_token(void* user, int32_t, const char* text, size_t bytes) {
  auto& written = *static_cast<Written*>(user);
  written.text.append(text, bytes);
  return ++written.tokens, 0;
}

// Writes with a session of its own. It is called from threads, so failures are words.
std::string write_with(greta_model* model, uint32_t which) {
  auto executor = sized<greta_executor_options>();
  executor.context = 256;
  auto options = sized<greta_session_options>();
  options.private_executor = &executor;
  greta_session* session = nullptr;
  if (greta_session_open(model, &options, &session)) return greta_error_text();
  greta_session_temperature(session, 1.0f);
  greta_session_seed(session, which);
  const int32_t prompt[] = {1, int32_t(5 + which), 9, 4, 2};
  Written written;
  auto generate = sized<greta_generate_options>();
  generate.max_tokens = 24;
  generate.ignore_end = 1;
  generate.on_token = keep_token;
  generate.user = &written;
  if (which % 2) greta_session_json_schema(session, R"({"type": "array"})");
  if (greta_session_generate(session, prompt, 5, &generate, nullptr)) written.text = greta_error_text();
  greta_session_close(session);
  return written.text;
}

std::string write_alone(uint32_t which) {
  Objects o;
  if (o.load() != GRETA_OK) return greta_error_text();
  return write_with(o.model, which);
}

template <class Work>
void in_threads(uint32_t count, const Work& work) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) threads.emplace_back([&, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("threads: eight with a session each on one model write what each would write alone",
          "[api][threads]") {
  greta_runtime_options options{};
  options.threads = 2;
  Objects o(TinyShape{}, options);
  REQUIRE(o.load() == GRETA_OK);
  std::vector<std::string> alone(kThreads), beside(kThreads);
  for (uint32_t i = 0; i < kThreads; ++i) alone[i] = write_with(o.model, i);
  for (int round = 0; round < kRounds; ++round) {
    in_threads(kThreads, [&](uint32_t i) { beside[i] = write_with(o.model, i); });
    CHECK(beside == alone);
  }
  CHECK(alone[0] != alone[2]);
}

TEST_CASE("threads: each with a runtime, a model and a session of its own", "[api][threads]") {
  std::vector<std::string> alone(3), beside(3);
  for (uint32_t i = 0; i < 3; ++i) alone[i] = write_alone(i);
  for (int round = 0; round < kRounds; ++round) {
    in_threads(3, [&](uint32_t i) { beside[i] = write_alone(i); });
    CHECK(beside == alone);
  }
}

TEST_CASE("threads: what is shared is read from all of them at once", "[api][threads]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  std::atomic<uint32_t> wrong{0};
  in_threads(kThreads, [&](uint32_t i) {
    const greta_tokenizer* const tokenizer = greta_model_tokenizer(o.model);
    for (int round = 0; round < 20; ++round) {
      size_t count = 0;
      char value[64];
      auto plan = sized<greta_memory_plan>();
      auto info = sized<greta_model_info>();
      auto tensor = sized<greta_tensor_info>();
      const greta_message message = {"user", "1t2t", nullptr};
      wrong += greta_tokenizer_encode(tokenizer, "1t2t3t", 6, 0, nullptr, 0, &count) != GRETA_OK;
      wrong += greta_tokenizer_chat(tokenizer, &message, 1, 1, nullptr, 0, &count) != GRETA_OK;
      wrong += greta_memory_plan_make(o.runtime, o.file, nullptr, &plan) != GRETA_OK;
      wrong += greta_model_describe(o.model, &info) != GRETA_OK;
      wrong += greta_file_tensor(o.file, i, &tensor) != GRETA_OK;
      wrong += greta_file_metadata(o.file, i, nullptr, nullptr, value, sizeof value) != GRETA_OK;
    }
  });
  CHECK(wrong == 0);
}

namespace {

// A call and the thread that asks it to stop. The callback lets that thread come, and then waits for it.
struct Stopper {
  greta_session* session;
  uint32_t after;  // callbacks before the request
  uint32_t calls = 0, later = 0;
  std::atomic<bool> asked{false}, done{false};

  Stopper(greta_session* of, uint32_t calls_before) : session(of), after(calls_before) {}
  int called() {
    if (done) return ++later, 0;
    if (++calls < after) return 0;
    asked = true;
    while (!done) std::this_thread::yield();
    return 0;
  }
  void stop() {
    while (!asked) std::this_thread::yield();
    if (session) greta_session_cancel(session);
    done = true;
  }
};

// Runs call() on this thread, and stop() on another.
template <class Call>
void stopped_by_another(Stopper* stopper, const Call& call) {
  std::thread other([&] { stopper->stop(); });
  call();
  stopper->asked = true;  // where no callback came, the thread must not wait for ever
  other.join();
}

}  // namespace

TEST_CASE("threads: a prompt is cancelled from another thread, and one more chunk is read at most",
          "[api][threads]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  auto executor = sized<greta_executor_options>();
  executor.step_tokens = 8;
  auto options = sized<greta_session_options>();
  options.private_executor = &executor;
  greta_session* session = nullptr;
  REQUIRE(greta_session_open(o.model, &options, &session) == GRETA_OK);
  const std::vector<int32_t> prompt(200, 7);
  for (const uint32_t after : {1u, 5u, 20u}) {
    REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
    Stopper stopper(session, after);
    auto generate = sized<greta_generate_options>();
    generate.on_prompt = [](void* user, uint32_t, uint32_t) { return static_cast<Stopper*>(user)->called(); };
    generate.user = &stopper;
    auto result = sized<greta_generate_result>();
    stopped_by_another(&stopper, [&] {
      CHECK(greta_session_generate(session, prompt.data(), prompt.size(), &generate, &result) == GRETA_OK);
    });
    CHECK(result.reason == GRETA_STOP_CANCELLED);
    CHECK(result.generated_tokens == 0);
    CHECK(stopper.calls == after);
    CHECK(stopper.later <= 1);
    CHECK(greta_session_position(session) <= (after + 1) * 8);
    const float* logits = nullptr;  // the session goes on
    CHECK(greta_session_eval(session, prompt.data(), 1, GRETA_ROWS_LAST, &logits) == GRETA_OK);
  }
  greta_session_close(session);
}

TEST_CASE("threads: a generation is cancelled from another thread, and one more token comes at most",
          "[api][threads]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const int32_t prompt[] = {1, 5, 9};
  for (const uint32_t after : {1u, 2u, 30u}) {
    REQUIRE(greta_session_truncate(o.session, 0) == GRETA_OK);
    Stopper stopper(o.session, after);
    auto generate = sized<greta_generate_options>();
    generate.ignore_end = 1;
    generate.on_token = [](void* user, int32_t token, const char*, size_t) {
      return token < 0 ? 0 : static_cast<Stopper*>(user)->called();
    };
    generate.user = &stopper;
    auto result = sized<greta_generate_result>();
    stopped_by_another(&stopper, [&] {
      CHECK(greta_session_generate(o.session, prompt, 3, &generate, &result) == GRETA_OK);
    });
    CHECK(result.reason == GRETA_STOP_CANCELLED);
    CHECK(result.generated_tokens == after + stopper.later);
    CHECK(stopper.later <= 1);
  }
}

TEST_CASE("threads: loading is stopped by a flag that another thread sets", "[api][threads]") {
  Objects o;
  Stopper stopper(nullptr, 3);
  auto load = sized<greta_model_options>();
  load.source = &o.source;
  load.progress_user = &stopper;
  load.progress = [](void* user, uint64_t, uint64_t) {
    auto& self = *static_cast<Stopper*>(user);
    self.called();
    return self.done ? 1 : 0;
  };
  stopped_by_another(&stopper,
                     [&] { CHECK(greta_model_open(o.runtime, &load, &o.model) == GRETA_ERROR_CANCELLED); });
  CHECK(stopper.calls == 3);
  CHECK(stopper.later == 0);
  CHECK(o.model == nullptr);
  CHECK(o.load() == GRETA_OK);
}

TEST_CASE("threads: a request before a call begins does not stop it", "[api][threads]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const int32_t prompt[] = {1, 5, 9};
  auto generate = sized<greta_generate_options>();
  generate.max_tokens = 5;
  generate.ignore_end = 1;
  auto result = sized<greta_generate_result>();
  greta_session_cancel(o.session);
  CHECK(greta_session_generate(o.session, prompt, 3, &generate, &result) == GRETA_OK);
  CHECK(result.reason == GRETA_STOP_LENGTH);
  greta_session_cancel(o.session);
  CHECK(greta_session_eval(o.session, prompt, 1, GRETA_ROWS_NONE, nullptr) == GRETA_OK);
}

TEST_CASE("threads: requests that come at any moment end a call or do nothing", "[api][threads]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) greta_session_cancel(o.session), std::this_thread::yield();
  });
  const int32_t prompt[] = {1, 5, 9, 4, 2, 6};
  uint32_t cancelled = 0, wrong = 0;
  for (int round = 0; round < 50; ++round) {
    auto generate = sized<greta_generate_options>();
    generate.max_tokens = 20;
    generate.ignore_end = 1;
    auto result = sized<greta_generate_result>();
    wrong += greta_session_truncate(o.session, 0) != GRETA_OK;
    wrong += greta_session_generate(o.session, prompt, 6, &generate, &result) != GRETA_OK;
    wrong += result.reason != GRETA_STOP_CANCELLED && result.reason != GRETA_STOP_LENGTH;
    cancelled += result.reason == GRETA_STOP_CANCELLED;
  }
  over = true;
  other.join();
  CHECK(wrong == 0);
  CHECK(cancelled > 0);
}
