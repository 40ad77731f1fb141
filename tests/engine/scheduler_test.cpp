// Many requests on one executor: each answer is that of a session alone, whoever else is there, however few
// pages there are, and whatever fails for others.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>

#include "engine/serve_rig.h"

using namespace greta;
using namespace greta::test;

TEST_CASE("serve: each answer is that of a session alone, whoever else is there", "[serve]") {
  const uint32_t cache = GENERATE(64u * 40, 64u * 8);  // the second has room for two or three of them
  const bool ahead = GENERATE(false, true);
  Rig rig({.context = 256, .sequences = 8, .cache_tokens = cache}, {}, ahead);
  const std::vector<RequestOptions> requests = mixed_requests(24);
  std::vector<std::vector<int32_t>> expected;
  for (const RequestOptions& request : requests) expected.push_back(alone(rig, request));
  std::vector<std::shared_ptr<Request>> handles;
  for (const RequestOptions& request : requests) handles.push_back(rig.add(request));
  rig.run();
  for (size_t i = 0; i < requests.size(); ++i) {
    INFO("request " << i);
    const Answer answer = answer_of(*handles[i]);
    CHECK(answer.result.status.ok());
    CHECK(answer.result.reason == StopReason::Length);
    CHECK(answer.tokens == expected[i]);
    CHECK(answer.result.generated_tokens == requests[i].max_tokens);
  }
  rig.check_clean();
}

TEST_CASE("serve: a full pool sets the newest back, and its answer goes on where it was", "[serve]") {
  const bool ahead = GENERATE(false, true);
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 5}, {}, ahead);
  std::vector<RequestOptions> requests;
  for (uint32_t i = 0; i < 4; ++i) requests.push_back(request_of(some_tokens(10, i), 150, i));
  std::vector<std::vector<int32_t>> expected;
  for (const RequestOptions& request : requests) expected.push_back(alone(rig, request));
  std::vector<std::shared_ptr<Request>> handles;
  for (const RequestOptions& request : requests) handles.push_back(rig.add(request));
  rig.run();
  CHECK(rig.scheduler->counts().set_back > 0);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer answer = answer_of(*handles[i]);
    CHECK(answer.tokens == expected[i]);
    CHECK(answer.result.reason == StopReason::Length);
    if (i == 0) CHECK(answer.result.set_back == 0);
  }
  rig.check_clean();
}

TEST_CASE("serve: a request alone ends when its context or the pool is full", "[serve]") {
  const bool pool = GENERATE(false, true);
  Rig rig({.context = pool ? 256u : 128u, .sequences = 2, .cache_tokens = pool ? 128u : 256u});
  const auto request = rig.add(request_of(some_tokens(5, 1), 0));
  rig.run();
  const Answer answer = answer_of(*request);
  CHECK(answer.result.status.ok());
  CHECK(answer.result.reason == StopReason::Context);
  CHECK(answer.tokens.size() == 128 - 5 + 1);
  rig.check_clean();
}

// CVE-2025-46570: another salt takes nothing from the cache.
TEST_CASE("serve: what was computed before is not computed again", "[serve]") {
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 16});
  const std::vector<int32_t> prompt = some_tokens(200, 1);
  const RequestOptions options = request_of(prompt, 8);
  const std::vector<int32_t> expected = alone(rig, options);
  const auto first = rig.add(options);
  rig.run();
  CHECK(answer_of(*first).result.cached_tokens == 0);
  const uint64_t rows = rig.scheduler->counts().rows;
  RequestOptions other = options;
  other.salt = 7;
  RequestOptions without = options;
  without.use_cache = false;
  const auto second = rig.add(options), salted = rig.add(other), plain = rig.add(without);
  rig.run();
  const Answer again = answer_of(*second);
  CHECK(again.result.cached_tokens == 192);
  CHECK(again.tokens == expected);
  for (Request* request : {salted.get(), plain.get()}) {
    const Answer answer = answer_of(*request);
    CHECK(answer.result.cached_tokens == 0);
    CHECK(answer.tokens == expected);
  }
  CHECK(rig.scheduler->counts().rows - rows == (8 + 7) + 2 * (200 + 7));
  rig.check_clean();
}

TEST_CASE("serve: requests that arrive together compute a shared prefix once", "[serve]") {
  Rig rig({.context = 256, .sequences = 8, .cache_tokens = 64 * 32, .step_tokens = 32});
  const std::vector<int32_t> prefix = some_tokens(192, 1);
  std::vector<std::shared_ptr<Request>> handles;
  std::vector<std::vector<int32_t>> expected;
  for (uint32_t i = 0; i < 6; ++i) {
    std::vector<int32_t> prompt = prefix;
    for (int32_t token : some_tokens(8, 100 + i)) prompt.push_back(token);
    const RequestOptions options = request_of(prompt, 4);
    expected.push_back(alone(rig, options));
    handles.push_back(rig.add(options));
  }
  rig.run();
  CHECK(rig.scheduler->counts().rows == 192 + 6 * (8 + 3));
  for (size_t i = 0; i < handles.size(); ++i) {
    const Answer answer = answer_of(*handles[i]);
    CHECK(answer.tokens == expected[i]);
    CHECK(answer.result.cached_tokens == (i ? 192 : 0));
  }
  rig.check_clean();
}

TEST_CASE("serve: a prompt that ends in the step that read it stays in the prefix cache", "[serve]") {
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 16}, {}, GENERATE(false, true));
  const std::vector<int32_t> prompt = some_tokens(200, 1);
  RequestOptions warming = request_of(prompt, GENERATE(1u, 2u));
  const auto kind = GENERATE(0, 1, 2, 3);
  warming.no_answer = kind == 1;
  if (kind == 2) warming.embed = EmbedOptions{.pooling = Pooling::Last};
  if (kind == 3) warming.embed = EmbedOptions{.pooling = Pooling::Mean};
  CAPTURE(kind, warming.max_tokens);
  const auto first = rig.add(warming);
  rig.run();
  CHECK(answer_of(*first).result.status.ok());
  const RequestOptions options = request_of(prompt, 4);
  const auto second = rig.add(options);
  rig.run();
  const Answer answer = answer_of(*second);
  CHECK(answer.result.cached_tokens == 192);
  CHECK(answer.tokens == alone(rig, options));
  rig.check_clean();
}

TEST_CASE("serve: a reader that stalls pauses only its own request", "[serve]") {
  Rig rig({.context = 256, .sequences = 2, .cache_tokens = 64 * 8});
  const RequestOptions options = request_of(some_tokens(20, 1), 60);
  const std::vector<int32_t> expected = alone(rig, options);
  const auto stalled = rig.add(options, 8);
  const auto other = rig.add(options);
  rig.run();
  CHECK(answer_of(*other).tokens == expected);
  RequestResult result;
  CHECK(!stalled->ended(&result));
  // A third one takes its place while nobody reads.
  const auto third = rig.add(options), fourth = rig.add(options);
  rig.run();
  CHECK(answer_of(*third).tokens == expected);
  CHECK(answer_of(*fourth).tokens == expected);
  CHECK(rig.scheduler->counts().set_back == 1);
  Answer answer;
  while (!stalled->ended(&answer.result)) {
    drain(*stalled, &answer);
    rig.run();
  }
  CHECK(answer.tokens == expected);
  rig.check_clean();
}

TEST_CASE("serve: a request waits until there are pages for its prompt and a token", "[serve]") {
  Rig rig({.context = 256, .sequences = 2, .cache_tokens = 4 * kPageTokens});
  const auto first = rig.add(request_of(some_tokens(kPageTokens + 6, 1), 40));  // takes two pages
  for (int i = 0; i < 4; ++i) REQUIRE(rig.scheduler->step());
  // One page is kept for the other to grow, so one is left.
  const auto second = rig.add(request_of(some_tokens(kPageTokens, 2), 4));
  for (int i = 0; i < 4; ++i) REQUIRE(rig.scheduler->step());
  uint32_t unread = 0;
  CHECK(first->progress(&unread).state == RequestProgress::State::Writing);
  CHECK(second->progress(&unread).state == RequestProgress::State::Waiting);
  rig.run();
  CHECK(answer_of(*first).result.status.ok());
  CHECK(answer_of(*second).tokens.size() == 4);
  rig.check_clean();
}

TEST_CASE("serve: an executor of one token a step writes as others do", "[serve]") {
  Rig rig({.context = 64, .sequences = 1, .step_tokens = 1}), reference({.context = 64, .sequences = 1});
  const RequestOptions asked = request_of(some_tokens(5, 3), 8);
  const auto request = rig.add(asked);
  for (int i = 0; i < 100 && rig.scheduler->step();) ++i;
  CHECK(rig.scheduler->live() == 0);
  RequestResult result;
  REQUIRE(request->ended(&result) == false);  // its events are unread
  CHECK(answer_of(*request).tokens == alone(reference, asked));
}

TEST_CASE("serve: a logit filter that asks to stop ends a session's text without an error", "[serve]") {
  Rig rig({.context = 64, .sequences = 1});
  RequestOptions asked = request_of(some_tokens(4, 1), 10);
  int calls = 0;
  asked.sampling.filter.user = &calls;
  asked.sampling.filter.call = [](void* user, float*, size_t, const int32_t*, size_t) {
    return int(++*static_cast<int*>(user) > 2);
  };
  CHECK(alone(rig, asked).size() == 2);
}

TEST_CASE("serve: a cancelled request frees its pages at once and changes no other answer", "[serve]") {
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 16}, {.prefix_cache = false});
  const RequestOptions options = request_of(some_tokens(20, 1), 100, 5);
  const std::vector<int32_t> expected = alone(rig, options);
  const auto kept = rig.add(options), cancelled = rig.add(options), waiting = rig.add(options);
  for (int i = 0; i < 10; ++i) rig.scheduler->step();
  const uint32_t free = rig.engine.executor->pages().free_pages();
  cancelled->cancel();
  rig.scheduler->step();
  CHECK(rig.engine.executor->pages().free_pages() > free);
  waiting->cancel();
  waiting->cancel();
  rig.run();
  CHECK(answer_of(*kept).tokens == expected);
  for (Request* request : {cancelled.get(), waiting.get()}) {
    const Answer answer = answer_of(*request);
    CHECK(answer.result.reason == StopReason::Cancelled);
    CHECK(answer.tokens ==
          std::vector<int32_t>(expected.begin(), expected.begin() + std::ptrdiff_t(answer.tokens.size())));
  }
  rig.check_clean();
}

TEST_CASE("serve: the higher priority goes first, and the lower one does not wait for ever", "[serve]") {
  Rig rig({.context = 256, .sequences = 1, .cache_tokens = 256});
  const auto add = [&](int32_t priority) {
    RequestOptions options = request_of({5}, 1);
    options.priority = priority;
    return rig.add(options);
  };
  const auto ended = [](Request& request) {
    RequestEvent event;
    while (request.next(0, &event)) continue;
    RequestResult result;
    return request.ended(&result);
  };
  const auto normal = add(0), low = add(-1), high = add(1);
  rig.scheduler->step();
  CHECK(ended(*high));
  CHECK(!ended(*normal));
  size_t others = 0;
  for (; !ended(*low); ++others) {  // another request of the higher priority comes in each step
    REQUIRE(others < 100);
    add(0);
    rig.scheduler->step();
  }
  CHECK(ended(*normal));
  CHECK(others >= WaitingLine::kPatience - 2);
  CHECK(others <= WaitingLine::kPatience + 4);
  rig.run();
}

TEST_CASE("serve: within a priority nobody is overtaken, even where there are pages for a later one",
          "[serve]") {
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 256});
  const auto first = rig.add(request_of(some_tokens(100, 1), 20));
  const auto large = rig.add(request_of(some_tokens(200, 2), 2));
  const auto small = rig.add(request_of(some_tokens(2, 3), 2));
  RequestResult result;
  while (!first->ended(&result)) {
    RequestEvent event;
    rig.scheduler->step();
    while (first->next(0, &event)) continue;
    CHECK(large->phase() == Request::Phase::Waiting);
    CHECK(small->phase() == Request::Phase::Waiting);
  }
  rig.run();
  CHECK(answer_of(*small).tokens.size() == 2);
}

TEST_CASE("serve: a submission that fails once harms nobody", "[serve][faults]") {
  const bool ahead = GENERATE(false, true);
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 16}, {.prefix_cache = false}, ahead);
  const std::vector<RequestOptions> requests = mixed_requests(6);
  std::vector<std::vector<int32_t>> expected;
  for (const RequestOptions& request : requests) expected.push_back(alone(rig, request));
  bool reached = true;
  for (uint64_t at = 1; reached; ++at) {
    std::vector<std::shared_ptr<Request>> handles;
    for (const RequestOptions& request : requests) handles.push_back(rig.add(request));
    rig.submissions.count = 0;
    rig.submissions.fail_at = at;
    rig.run();
    reached = rig.submissions.count >= at;
    rig.submissions.fail_at = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      INFO("submission " << at << ", request " << i);
      const Answer answer = answer_of(*handles[i]);
      // Only a request that was alone in its step cannot be told from what is to blame.
      if (answer.result.status.ok())
        CHECK(answer.tokens == expected[i]);
      else
        CHECK(answer.result.status.code == Code::Memory);
    }
    rig.check_clean();
  }
}

TEST_CASE("serve: a device that is lost ends every request with its status", "[serve][faults]") {
  const bool ahead = GENERATE(false, true);
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 16}, {}, ahead);
  std::vector<std::shared_ptr<Request>> handles;
  for (const RequestOptions& request : mixed_requests(6)) handles.push_back(rig.add(request));
  for (int i = 0; i < 4; ++i) rig.scheduler->step();
  rig.submissions.code = Code::Device;
  rig.submissions.fail_after = rig.submissions.count;
  rig.run();
  for (const auto& handle : handles) {
    const Answer answer = answer_of(*handle);
    if (answer.result.generated_tokens < 5) CHECK(answer.result.status.code == Code::Device);
    if (!answer.result.status.ok())
      CHECK(std::string(answer.result.error).find("fails") != std::string::npos);
  }
  rig.submissions.fail_after = ~0ull;  // the core lives on
  const RequestOptions options = request_of(some_tokens(10, 1), 5);
  const auto request = rig.add(options);
  rig.run();
  CHECK(answer_of(*request).tokens == alone(rig, options));
  rig.check_clean();
}

TEST_CASE("serve: host memory that runs out once ends at most one request", "[serve][faults]") {
  Rig rig({.context = 128, .sequences = 4, .cache_tokens = 64 * 8});
  const std::vector<RequestOptions> requests = mixed_requests(4);
  std::vector<std::vector<int32_t>> expected;
  for (const RequestOptions& request : requests) expected.push_back(alone(rig, request));
  check_failing_memory(rig, requests, expected, 16);
}

TEST_CASE("serve: the same batch gives the same bits every time", "[serve]") {
  const bool exact = GENERATE(true, false);
  CAPTURE(exact);
  const TinyModel tiny = make_tiny({});
  Engine engine;
  EngineOptions of_engine{.threads = 1, .exact = exact};
  of_engine.executor = {
      .context = 256, .sequences = 8, .key_type = 0, .value_type = 0, .cache_tokens = 64 * 24};
  open_engine(tiny.file, of_engine, &engine);
  const auto bell = std::make_shared<Doorbell>();
  std::vector<std::vector<float>> first;
  for (int run = 0; run < 100; ++run) {
    // Without a prefix cache, and with chunks that do not depend on the clock.
    Scheduler scheduler(*engine.executor, {.chunk_tokens = 32, .prefix_cache = false});
    std::vector<std::shared_ptr<Request>> handles;
    for (RequestOptions options : mixed_requests(8)) {
      options.logprobs = true;
      options.max_tokens = 6;
      std::shared_ptr<Request> request;
      REQUIRE(Request::open(*engine.model, 256, 100, bell, std::move(options), &request).ok());
      handles.push_back(request);
      scheduler.add(request);
    }
    while (scheduler.step()) continue;
    std::vector<std::vector<float>> logprobs(handles.size());
    RequestEvent event;
    for (size_t i = 0; i < handles.size(); ++i)
      while (handles[i]->next(0, &event)) logprobs[i].push_back(event.token.logprob);
    if (run == 0) first = logprobs;
    REQUIRE(logprobs == first);
    REQUIRE(logprobs[0].size() >= 6);
  }
}

TEST_CASE("serve: log-probabilities of prompt and answer are those of the logits", "[serve]") {
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 16});
  const std::vector<int32_t> prompt = some_tokens(40, 3);
  RequestOptions options = request_of(prompt, 3);
  options.logprobs = options.prompt_logprobs = true;
  options.top = 4;
  rig.add(request_of(some_tokens(30, 4), 20, 7));
  const auto request = rig.add(options);
  RequestOptions only = options;
  only.no_answer = true;
  const auto scored = rig.add(only);
  rig.run();

  std::unique_ptr<Session> session;
  REQUIRE(
      Session::open(std::shared_ptr<Executor>(rig.engine.executor.get(), [](Executor*) {}), &session).ok());
  std::vector<int32_t> text = prompt;
  std::vector<RequestEvent> events;
  RequestEvent event;
  while (request->next(0, &event)) events.push_back(event);
  REQUIRE(events.size() == 39 + 3);
  for (size_t i = 39; i < events.size(); ++i) text.push_back(events[i].token.token);
  const float* logits = nullptr;
  REQUIRE(session->eval({text.data(), text.size() - 1}, OutputRows::All, &logits).ok());
  const uint32_t vocab = rig.engine.model->shape.vocab;
  for (size_t i = 0; i < events.size(); ++i) {
    const std::span<const float> row(logits + i * vocab, vocab);
    double sum = 0;
    for (const float logit : row) sum += std::exp(double(logit));
    CHECK(events[i].kind == (i < 39 ? RequestEvent::Kind::Prompt : RequestEvent::Kind::Text));
    CHECK(events[i].token.token == text[i + 1]);
    CHECK(std::abs(events[i].token.logprob - (row[size_t(text[i + 1])] - std::log(sum))) < 1e-5);
    REQUIRE(events[i].top.size() == 4);
    CHECK(events[i].top[0].logprob ==
          float(double(*std::max_element(row.begin(), row.end())) - std::log(sum)));
    CHECK(std::is_sorted(events[i].top.begin(), events[i].top.end(),
                         [](const Likely& a, const Likely& b) { return a.logprob > b.logprob; }));
  }
  size_t of_prompt = 0;
  while (scored->next(0, &event)) of_prompt += event.kind == RequestEvent::Kind::Prompt;
  CHECK(of_prompt == 39);
  CHECK(answer_of(*scored).result.generated_tokens == 0);
  session.reset();
  rig.check_clean();
}
