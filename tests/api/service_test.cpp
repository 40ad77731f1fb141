// Services: what is refused, many threads at once, readers that stall, cancel and add, and answers that are
// those of sessions and chats alone.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "support/api_services.h"
#include "support/failing_threads.h"
#include "support/gguf_writer.h"

using namespace greta::test;

namespace {

std::vector<int32_t> alone(greta_session* session, const greta_request_options& options) {
  std::vector<int32_t> out;
  auto generate = sized<greta_generate_options>();
  generate.max_tokens = options.max_tokens;
  generate.ignore_end = options.ignore_end;
  generate.user = &out;
  generate.on_token = [](void* user, int32_t token, const char*, size_t) {
    if (token >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(token);
    return 0;
  };
  REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
  REQUIRE(greta_session_generate(session, options.tokens, options.token_count, &generate, nullptr) ==
          GRETA_OK);
  return out;
}

}  // namespace

TEST_CASE("service: NULL is an argument error, or does nothing", "[api][serve]") {
  Served s;
  greta_request* request = nullptr;
  CHECK(greta_service_open(nullptr, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_service_open(s.o.model, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_service_run(nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_service_run(s.service) == GRETA_ERROR_ARGUMENT);  // it has a thread
  CHECK(greta_service_describe(s.service, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_service_add(s.service, nullptr, &request) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_request_next(nullptr, 0, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_request_finish(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  greta_service_close(nullptr), greta_service_stop(nullptr);
  greta_request_close(nullptr), greta_request_cancel(nullptr);
}

TEST_CASE("service: what is wrong is refused, and the service goes on", "[api][serve]") {
  auto few = Served::own_thread();
  few.max_requests = 2;
  Served s(few);
  const std::vector<int32_t> tokens = {1, 4, 2, 8};
  greta_request* request = nullptr;
  const auto refused = [&](const greta_request_options& options, greta_status status) {
    CHECK(greta_service_add(s.service, &options, &request) == status);
    CHECK(request == nullptr);
  };
  refused(ask({}, 1), GRETA_ERROR_ARGUMENT);
  refused(ask(std::vector<int32_t>(257, 5), 1), GRETA_ERROR_FULL);
  refused(ask({1, 67}, 1), GRETA_ERROR_ARGUMENT);
  refused(ask({-1}, 1), GRETA_ERROR_ARGUMENT);
  auto options = ask(tokens, 1);
  options.priority = 3;
  refused(options, GRETA_ERROR_ARGUMENT);
  options = ask(tokens, 1);
  options.top_logprobs = 1001;
  refused(options, GRETA_ERROR_ARGUMENT);
  options = ask(tokens, 1);
  options.logprobs = 2;
  refused(options, GRETA_ERROR_ARGUMENT);
  options = ask(tokens, 1);
  options.sampled_logprobs = 1;  // without logprobs
  refused(options, GRETA_ERROR_ARGUMENT);
  options.logprobs = 1, options.sampled_logprobs = 2;
  refused(options, GRETA_ERROR_ARGUMENT);
  options = ask(tokens, 1);
  options.stop_count = 1;
  refused(options, GRETA_ERROR_ARGUMENT);
  const greta_message system = {"system", "1t", nullptr};
  options.stop_count = 0;
  options.messages = &system, options.message_count = 1;
  refused(options, GRETA_ERROR_ARGUMENT);  // tokens as well
  options.tokens = nullptr, options.token_count = 0;
  refused(options, GRETA_ERROR_ARGUMENT);  // nothing to answer
  auto sampling = sized<greta_sampling_options>();
  sampling.temperature = -1;
  options = ask(tokens, 1);
  options.sampling = &sampling;
  refused(options, GRETA_ERROR_ARGUMENT);
  sampling = sized<greta_sampling_options>();
  sampling.grammar = "root ::= (";
  refused(options, GRETA_ERROR_ARGUMENT);
  sampling.grammar = "root ::= \"t\"", sampling.json_schema = "{}";
  refused(options, GRETA_ERROR_ARGUMENT);

  // A third request is one too many while two of them are not read.
  options = ask(tokens, 200);
  greta_request *first = add(s.service, options), *second = add(s.service, options);
  refused(options, GRETA_ERROR_BUSY);
  CHECK(greta_request_finish(first, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(read_all(first).tokens.size() == 200);
  const Read until_full = read_all(second);
  CHECK(until_full.result.reason == GRETA_STOP_LENGTH);
}

TEST_CASE("service: a limit of zero goes on until the context is full", "[api][serve]") {
  Served s;
  const std::vector<int32_t> tokens = {1, 4, 2, 8};
  const Read read = read_all(add(s.service, ask(tokens, 0)));
  CHECK(read.status == GRETA_OK);
  CHECK(read.result.reason == GRETA_STOP_CONTEXT);
  CHECK(read.tokens.size() == 256 - 4 + 1);
}

TEST_CASE("service: the host's thread runs it until it is stopped", "[api][serve]") {
  Served s(sized<greta_service_options>());
  const std::vector<int32_t> tokens = {1, 4, 2, 8};
  const auto options = ask(tokens, 20);
  greta_request* request = add(s.service, options);
  auto event = sized<greta_request_event>();
  REQUIRE(greta_request_next(request, 1000, &event) == GRETA_OK);
  CHECK(event.kind == GRETA_EVENT_NONE);
  std::thread host([&] { CHECK(greta_service_run(s.service) == GRETA_OK); });
  const Read read = read_all(request);
  greta_service_stop(s.service);
  host.join();
  CHECK(read.tokens == alone(s.o.session, options));
  auto info = sized<greta_service_info>();
  REQUIRE(greta_service_describe(s.service, &info) == GRETA_OK);
  CHECK(info.pages == 32);
  CHECK(info.running == 0);
}

TEST_CASE("service: closing it ends its requests, which can still be read", "[api][serve]") {
  const std::vector<int32_t> tokens = {1, 4, 2, 8};
  greta_request* request = nullptr;
  {
    Served s(sized<greta_service_options>());
    request = add(s.service, ask(tokens, 20));
  }
  const Read read = read_all(request);
  CHECK(read.status == GRETA_OK);
  CHECK(read.result.reason == GRETA_STOP_CANCELLED);
}

TEST_CASE("service: a conversation is answered as a chat is", "[api][serve]") {
  Served s;
  greta_chat* chat = nullptr;
  REQUIRE(greta_chat_open(s.o.session, nullptr, &chat) == GRETA_OK);
  const greta_message message = {"user", "1t", nullptr};
  REQUIRE(greta_chat_add(chat, &message) == GRETA_OK);
  auto answer = sized<greta_chat_answer_options>();
  answer.max_tokens = 30;
  answer.ignore_end = 1;
  std::string expected;
  answer.user = &expected;
  answer.on_event = [](void* user, const greta_chat_event* event) {
    if (event->part == GRETA_CHAT_TEXT) static_cast<std::string*>(user)->append(event->text, event->bytes);
    return 0;
  };
  const greta_status status = greta_chat_answer(chat, &answer, nullptr);
  INFO(greta_error_text());
  REQUIRE(status == GRETA_OK);
  auto options = sized<greta_request_options>();
  options.messages = &message, options.message_count = 1;
  options.max_tokens = 30;
  options.ignore_end = 1;
  const Read read = read_all(add(s.service, options));
  CHECK(read.status == GRETA_OK);
  CHECK(read.text == expected);
  CHECK(read.result.generated_tokens == 30);
  greta_chat_close(chat);
}

TEST_CASE("service: a schema leaves reasoning free that the template has opened", "[api][serve][grammar]") {
  Served s;
  const greta_message message = {"user", "1t", nullptr};
  auto sampling = sized<greta_sampling_options>();
  sampling.json_schema = R"({"enum": [3, 33]})";
  auto chat = sized<greta_chat_options>();
  auto options = sized<greta_request_options>();
  options.messages = &message, options.message_count = 1, options.chat = &chat;
  options.max_tokens = 20;
  options.ignore_end = 1;
  const auto answer = [&](const char* form, bool held) {
    chat.chat_template = form;
    options.sampling = held ? &sampling : nullptr;
    return read_all(add(s.service, options));
  };
  const char* const opens = "{{ messages[0].content }}<think>{% if false %}</think>{% endif %}";
  options.limit_reasoning = 1;
  options.reasoning_tokens = options.max_tokens;
  const Read free = answer(opens, false), held = answer(opens, true);
  CHECK(free.reasoning.size() > 20);
  CHECK(held.reasoning == free.reasoning);
  CHECK(held.text.empty());
  CHECK(held.result.open_reasoning == 1);
}

TEST_CASE("service: a reader that stalls, adds and cancels holds up nobody", "[api][serve]") {
  auto small = Served::own_thread();
  small.event_capacity = 4;
  Served s(small);
  const std::vector<int32_t> tokens = {1, 4, 2, 8};
  const auto options = ask(tokens, 50);
  greta_request* stalled = add(s.service, options);
  auto event = sized<greta_request_event>();
  REQUIRE(greta_request_next(stalled, UINT64_MAX, &event) == GRETA_OK);
  const std::vector<int32_t> expected = alone(s.o.session, options);
  // Between two of its events it asks for something else, to the end.
  CHECK(read_all(add(s.service, options)).tokens == expected);
  greta_request* cancelled = add(s.service, options);
  REQUIRE(greta_request_next(cancelled, UINT64_MAX, &event) == GRETA_OK);
  greta_request_cancel(cancelled);
  const Read end = read_all(cancelled);
  CHECK(end.status == GRETA_OK);
  CHECK((end.result.reason == GRETA_STOP_CANCELLED || end.result.reason == GRETA_STOP_LENGTH));
  const Read rest = read_all(stalled);
  CHECK(rest.tokens == std::vector<int32_t>(expected.begin() + 1, expected.end()));
}

namespace {

struct Counts {
  std::atomic<int> wrong = 0, cancelled = 0, whole = 0;
};

// Asks for one of the prompts; reads it to the end, or a part and then cancels or closes it.
void ask_at_random(greta_service* service, const std::vector<std::vector<int32_t>>& prompts,
                   std::mt19937& random, Counts& counts) {
  auto options = ask(prompts[random() % prompts.size()], 20);
  options.priority = int32_t(random() % 5) - 2;
  options.salt = random() % 2;
  greta_request* request = nullptr;
  if (greta_service_add(service, &options, &request)) {
    ++counts.wrong;
    return;
  }
  const bool whole = random() % 3 != 0;
  auto event = sized<greta_request_event>();
  const uint32_t reads = whole ? 0 : random() % 20;
  for (uint32_t r = 0; r < reads; ++r)
    counts.wrong += greta_request_next(request, r % 2 ? 10'000'000 : 100'000, &event) != GRETA_OK;
  if (!whole && random() % 2) return greta_request_close(request);  // closing is cancelling
  if (!whole) greta_request_cancel(request);
  const Read read = read_all(request);
  counts.wrong += read.status != GRETA_OK;
  counts.cancelled += read.result.reason == GRETA_STOP_CANCELLED;
  if (!whole) return;
  counts.wrong += read.result.reason != GRETA_STOP_LENGTH || read.tokens.size() != 20;
  ++counts.whole;
}

}  // namespace

TEST_CASE("service: eight threads add and cancel at random", "[api][serve][threads]") {
  auto small = Served::own_thread();
  small.event_capacity = 8;
  auto sizes = sized<greta_executor_options>();
  sizes.context = 256, sizes.sequences = 6, sizes.cache_tokens = 64 * 10;  // too little for all
  small.executor = &sizes;
  Served s(small);
  std::vector<std::vector<int32_t>> prompts(4), expected;
  for (uint32_t i = 0; i < 4; ++i) {
    for (uint32_t t = 0; t < 10 + 60 * i; ++t) prompts[i].push_back(int32_t(3 + (t * (i + 3)) % 60));
    expected.push_back(alone(s.o.session, ask(prompts[i], 20)));
  }
  Counts counts;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 30; ++i) ask_at_random(s.service, prompts, random, counts);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(counts.wrong == 0);
  CHECK(counts.whole > 0);
  CHECK(counts.cancelled > 0);
  for (size_t i = 0; i < prompts.size(); ++i)
    CHECK(read_all(add(s.service, ask(prompts[i], 20))).tokens == expected[i]);
}

TEST_CASE("service: a system that gives no thread is an error", "[api][serve]") {
  if (!GRETA_THREADS_CAN_FAIL) SKIP("sanitizers start threads themselves");
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const FailingThreads failing;
  auto options = Served::own_thread();
  greta_service* service = nullptr;
  CHECK(greta_service_open(o.model, &options, &service) == GRETA_ERROR_MEMORY);
}

TEST_CASE("service: a child of fork is told so, and closing returns there", "[api][serve][fork]") {
  Served s;
  const std::vector<int32_t> tokens = {1, 4, 2, 8};
  greta_request* request = add(s.service, ask(tokens, 200));
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    auto options = ask(tokens, 1);
    auto event = sized<greta_request_event>();
    auto info = sized<greta_service_info>();
    greta_request* other = nullptr;
    int wrong = 0;
    wrong += greta_service_add(s.service, &options, &other) != GRETA_ERROR_DEVICE;
    wrong += greta_service_run(s.service) != GRETA_ERROR_DEVICE;
    wrong += greta_service_describe(s.service, &info) != GRETA_ERROR_DEVICE;
    wrong += greta_request_next(request, UINT64_MAX, &event) != GRETA_ERROR_DEVICE;
    wrong += greta_request_finish(request, nullptr) != GRETA_ERROR_DEVICE;
    greta_request_cancel(request);
    greta_service_stop(s.service);
    greta_request_close(request);
    greta_service_close(s.service);
    _exit(wrong);
  }
  int state = 0;
  REQUIRE(waitpid(child, &state, 0) == child);
  CHECK((WIFEXITED(state) && WEXITSTATUS(state) == 0));
  CHECK(read_all(request).tokens.size() == 200);
}

TEST_CASE("service: pages go to the host and to a folder, and a later service has them", "[api][serve]") {
  const TemporaryFolder folder;
  const std::string pages = folder.path() + "/pages";
  auto options = Served::own_thread();
  options.host_cache_bytes = 1 << 20;
  options.page_folder = pages.c_str();
  std::vector<int32_t> prompt(150);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = int32_t(3 + i * i % 60);
  const auto request = ask(prompt, 4);
  std::vector<int32_t> first;
  for (int service = 0; service < 2; ++service) {
    Served s(options);
    const Read read = read_all(add(s.service, request));
    CHECK(read.status == GRETA_OK);
    CHECK(read.result.cached_tokens == (service ? 128 : 0));
    if (service) CHECK(read.tokens == first);
    first = read.tokens;
    auto info = sized<greta_service_info>();
    REQUIRE(greta_service_describe(s.service, &info) == GRETA_OK);
    CHECK(info.brought_back == (service ? 2 : 0));
    CHECK(info.host_pages == 0);
  }
  options.page_folder = "";
  Served s;
  greta_service* none = nullptr;
  CHECK(greta_service_open(s.o.model, &options, &none) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_error_text() == std::string("page_folder is empty, expected a path"));
}

TEST_CASE("service: the host's cache may be as large as its caller likes", "[api][serve]") {
  auto options = Served::own_thread();
  options.host_cache_bytes = UINT64_MAX;
  Served s(options);
  const Read read = read_all(add(s.service, ask({3, 4, 5}, 4)));
  CHECK(read.status == GRETA_OK);
  CHECK(read.tokens.size() == 4);
}
