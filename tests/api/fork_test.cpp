// A process is forked with objects open. The child has none of its parent's threads: its calls say so, it can
// close what it has inherited, and it may open a runtime of its own.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "support/api_objects.h"
#include "support/devices.h"

using namespace greta::test;

namespace {

// Returns what `body` returned in a child process, or -1 if the child died or did not end within a minute.
template <class Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that waits for ever ends by this signal
    _exit(body());
  }
  int state = 0;
  REQUIRE(waitpid(child, &state, 0) == child);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

bool says_forked() { return strstr(greta_error_text(), "fork") != nullptr; }

const int32_t kTokens[] = {1, 4, 2, 8};

}  // namespace

TEST_CASE("fork: every call that needs the parent's device says so in the child, and closing returns",
          "[api][fork]") {
  greta_runtime_options options{};
  options.threads = 3;
  Objects o(TinyShape{}, options);
  REQUIRE(o.load() == GRETA_OK);
  greta_executor* executor = nullptr;
  REQUIRE(greta_executor_open(o.model, nullptr, &executor) == GRETA_OK);
  const float* logits = nullptr;
  REQUIRE(greta_session_eval(o.session, kTokens, 4, GRETA_ROWS_LAST, &logits) == GRETA_OK);
  greta_chat* chat = nullptr;
  REQUIRE(greta_chat_open(o.session, nullptr, &chat) == GRETA_OK);
  const greta_message hello = {"user", "1t", nullptr};
  REQUIRE(greta_chat_add(chat, &hello) == GRETA_OK);
  const int wrong = in_child([&] {
    int number = 0, wrong = 0;
    const auto check = [&](greta_status status) {
      ++number;
      if ((status != GRETA_ERROR_DEVICE || !says_forked()) && !wrong) wrong = number;
    };
    uint64_t rate;
    uint32_t failed;
    auto info = sized<greta_device_info>();
    auto plan = sized<greta_memory_plan>();
    auto of_model = sized<greta_model_options>();
    of_model.source = &o.source;
    greta_model* model = nullptr;
    greta_session* session = nullptr;
    greta_executor* other = nullptr;
    check(greta_session_eval(o.session, kTokens, 4, GRETA_ROWS_LAST, &logits));
    check(greta_session_generate(o.session, kTokens, 4, nullptr, nullptr));
    greta_batch_item item = {o.session, kTokens, 4, nullptr};
    check(greta_batch_eval(&item, 1));
    check(greta_session_profile(o.session, kTokens, 4, [](void*, const greta_profile_stage*) {}, nullptr));
    check(greta_session_save(o.session, [](void*, const void*, size_t) { return 0; }, nullptr));
    check(greta_session_restore(o.session, &o.source));
    check(greta_session_fork(o.session, &session));
    check(greta_session_open(o.model, nullptr, &session));
    check(greta_executor_open(o.model, nullptr, &other));
    check(greta_model_open(o.runtime, &of_model, &model));
    check(greta_memory_plan_make(o.runtime, o.file, nullptr, &plan));
    check(greta_runtime_describe(o.runtime, &info));
    check(greta_runtime_measure_bandwidth(o.runtime, &rate));
    check(greta_runtime_measure_arithmetic(o.runtime, &rate));
    check(greta_runtime_selftest(o.runtime, nullptr, &failed));
    check(greta_chat_answer(chat, nullptr, nullptr));
    if (greta_session_position(o.session) != 4) return 100;
    greta_chat_close(chat);
    greta_executor_close(executor);
    o.close();
    return wrong;
  });
  CHECK(wrong == 0);
  // The parent's objects work as before.
  CHECK(greta_session_eval(o.session, kTokens, 4, GRETA_ROWS_LAST, &logits) == GRETA_OK);
  greta_chat_close(chat);
  greta_executor_close(executor);
}

TEST_CASE("fork: a runtime that the child opens itself works", "[api][fork]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const float* logits = nullptr;
  REQUIRE(greta_session_eval(o.session, kTokens, 4, GRETA_ROWS_LAST, &logits) == GRETA_OK);
  const std::vector<float> expected(logits, logits + 67);
  if (!on_cpu()) SKIP("drivers of GPUs do not promise to work in a child");
  const int wrong = in_child([&] {
    auto of_runtime = sized<greta_runtime_options>();
    of_runtime.device = "cpu";
    of_runtime.threads = 3;
    auto of_model = sized<greta_model_options>();
    of_model.source = &o.source;
    greta_runtime* runtime = nullptr;
    greta_model* model = nullptr;
    greta_session* session = nullptr;
    const float* own = nullptr;
    if (greta_runtime_open(&of_runtime, &runtime)) return 1;
    if (greta_model_open(runtime, &of_model, &model)) return 2;
    if (greta_session_open(model, nullptr, &session)) return 3;
    if (greta_session_eval(session, kTokens, 4, GRETA_ROWS_LAST, &own)) return 4;
    if (memcmp(own, expected.data(), expected.size() * sizeof(float))) return 5;
    greta_session_close(session);
    greta_model_close(model);
    greta_runtime_close(runtime);
    return 0;
  });
  CHECK(wrong == 0);
}

TEST_CASE("fork: a device's streams refuse work in the child, and all can be deleted there",
          "[runtime][fork]") {
  const OpenDevice device = open_named("cpu", 3);
  Words words(*device, 64);
  auto stream = new_stream(*device);
  REQUIRE(stream->fill(words.all(), 7).ok());
  REQUIRE(stream->submit().ok());  // nobody waits for it
  const int wrong = in_child([&] {
    if (stream->wait().code != greta::Code::Device || !strstr(greta::error_text(), "fork")) return 1;
    stream.reset();
    const_cast<OpenDevice&>(device).device.reset();
    return 0;
  });
  CHECK(wrong == 0);
  CHECK(stream->wait().ok());
}
