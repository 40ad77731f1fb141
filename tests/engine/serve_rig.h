// An engine with a scheduler, and requests for tests of it.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <random>

#include "engine/serve/scheduler.h"
#include "support/failing_memory.h"
#include "support/faulty_device.h"
#include "support/tiny_model.h"

namespace greta::test {

inline std::vector<int32_t> some_tokens(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = int32_t(3 + random() % 60);
  return tokens;
}

struct Answer {
  std::vector<int32_t> tokens;
  std::string text;
  RequestResult result;
};

// An engine with a scheduler.
struct Rig {
  const TinyModel tiny = make_tiny({});
  Submissions submissions;
  Engine engine;
  std::unique_ptr<Scheduler> scheduler;
  std::shared_ptr<Doorbell> bell = std::make_shared<Doorbell>();

  // ahead: the device is said to compute beside the host, so that two steps are under way
  // file: of another model than the tiny one; head: with the layer that drafts tokens
  explicit Rig(const ExecutorOptions& sizes, const SchedulerOptions& options = {}, bool ahead = false,
               const std::string& file = {}, bool head = false) {
    EngineOptions of_engine;
    of_engine.threads = 1;  // tests of threads are others
    of_engine.wrap = [&](Device& inner) { return std::make_unique<FaultyDevice>(inner, ahead, submissions); };
    of_engine.executor = sizes;
    of_engine.head = head;
    if (head) of_engine.split = {};
    of_engine.executor.key_type = of_engine.executor.value_type = 0;
    open_engine(file.empty() ? tiny.file : file, of_engine, &engine);
    scheduler = std::make_unique<Scheduler>(*engine.executor, options);
  }
  ~Rig() { scheduler.reset(); }

  std::shared_ptr<Request> add(RequestOptions options, size_t events = 1000) {
    std::shared_ptr<Request> request;
    const Status status = Request::open(*engine.model, engine.executor->plan().context, events, bell,
                                        std::move(options), &request);
    INFO(error_text());
    REQUIRE(status.ok());
    scheduler->add(request);
    return request;
  }
  void run() {
    for (int i = 0; scheduler->step(); ++i) REQUIRE(i < 100'000);
  }
  void check_clean() {  // nobody runs, and all pages are free or idle in the cache
    CHECK(scheduler->live() == 0);
    CHECK(engine.executor->pages().free_pages() + scheduler->index().idle_pages() ==
          engine.executor->plan().pages);
  }
};

inline void drain(Request& request, Answer* answer) {
  RequestEvent event;
  while (request.next(0, &event)) {
    if (event.token.token != kNoToken) answer->tokens.push_back(event.token.token);
    answer->text += event.text;
  }
}

inline Answer answer_of(Request& request) {
  Answer answer;
  drain(request, &answer);
  REQUIRE(request.ended(&answer.result));
  return answer;
}

inline RequestOptions request_of(std::vector<int32_t> tokens, uint32_t max_tokens, uint64_t seed = 0) {
  RequestOptions options;
  options.tokens = std::move(tokens);
  options.max_tokens = max_tokens;
  options.ignore_end = true;
  if (seed) options.sampling.temperature = 1.5f, options.sampling.seed = seed;
  return options;
}

// What a session alone generates.
inline std::vector<int32_t> alone(Rig& rig, const RequestOptions& request) {
  std::unique_ptr<Session> session;
  REQUIRE(
      Session::open(std::shared_ptr<Executor>(rig.engine.executor.get(), [](Executor*) {}), &session).ok());
  REQUIRE(session->set_sampling(request.sampling).ok());
  session->set_grammar(request.grammar);
  std::vector<int32_t> out;
  GenerateOptions options;
  options.max_tokens = request.max_tokens;
  options.ignore_end = request.ignore_end;
  options.on_full = request.on_full;
  options.user = &out;
  options.on_token = [](void* user, int32_t token, const char*, size_t) {
    if (token != kNoToken) static_cast<std::vector<int32_t>*>(user)->push_back(token);
    return 0;
  };
  GenerateResult result;
  const Status status = session->generate(request.tokens, options, &result);
  INFO(error_text());
  REQUIRE(status.ok());
  return out;
}

// Requests of many kinds: greedy and drawn on the device, drawn on the host, short and long.
inline std::vector<RequestOptions> mixed_requests(size_t count) {
  std::vector<RequestOptions> requests;
  for (uint32_t i = 0; i < count; ++i) {
    RequestOptions request = request_of(some_tokens(1 + (i * 37) % 150, i), 5 + i % 30, i % 3 ? i : 0);
    if (i % 4 == 1) request.sampling.typical_p = 0.9f;  // on the host
    requests.push_back(std::move(request));
  }
  return requests;
}

// Requests with common beginnings, for which there are few pages, against each by itself.
inline void compare_answers(Rig& reference, Rig& rig) {
  std::mt19937 random(5);
  const std::vector<int32_t> common = some_tokens(500, 1);
  for (int round = 0; round < 4; ++round) {
    std::vector<RequestOptions> asked;
    std::vector<std::shared_ptr<Request>> requests;
    for (uint32_t i = 0; i < 5; ++i) {
      std::vector<int32_t> text(common.begin(), common.begin() + random() % common.size());
      const std::vector<int32_t> own = some_tokens(1 + random() % 100, 100 * round + i);
      text.insert(text.end(), own.begin(), own.end());
      asked.push_back(request_of(text, 100 + random() % 200, i % 2 ? i : 0));
      requests.push_back(rig.add(asked.back()));
    }
    rig.run();
    for (size_t i = 0; i < asked.size(); ++i) {
      const Answer answer = answer_of(*requests[i]);
      REQUIRE(answer.result.status.ok());
      CHECK(answer.tokens == alone(reference, asked[i]));
    }
  }
}

// Asks the same again and again, and lets one allocation of the host fail: the first, the second, then
// further and further ones, by a part of how many there were. It ends at most one request; the others answer
// as expected.
inline void check_failing_memory(Rig& rig, const std::vector<RequestOptions>& requests,
                                 const std::vector<std::vector<int32_t>>& expected, uint64_t part) {
  bool reached = true;
  for (uint64_t at = 1; reached; at += 1 + at / part) {
    std::vector<std::shared_ptr<Request>> handles;
    for (const RequestOptions& request : requests) handles.push_back(rig.add(request));
    {
      const FailingMemory failing(at);
      for (int i = 0; rig.scheduler->step(); ++i)
        if (i > 100'000) break;
      reached = failing.failed();
    }
    size_t failed = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      INFO("allocation " << at << ", request " << i);
      const Answer answer = answer_of(*handles[i]);
      failed += !answer.result.status.ok();
      if (answer.result.status.ok())
        CHECK(answer.tokens == expected[i]);
      else
        CHECK(answer.result.status.code == Code::Memory);
    }
    CHECK(failed <= 1);
    rig.check_clean();
  }
}

}  // namespace greta::test
