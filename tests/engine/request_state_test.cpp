// The state of a request: where it was saved, a session or another request goes on to the bit.
#include <catch2/generators/catch_generators.hpp>
#include <cstring>

#include "engine/serve_rig.h"
#include "support/saved_session.h"

using namespace greta;
using namespace greta::test;

namespace {

using Tokens = std::vector<int32_t>;

std::string bytes_of(const Request& request) {
  std::string bytes;
  REQUIRE(write_state(
              request.state(),
              [](void* to, const void* from, size_t count) {
                static_cast<std::string*>(to)->append(static_cast<const char*>(from), count);
                return 0;
              },
              &bytes)
              .ok());
  return bytes;
}

std::shared_ptr<const SavedState> state_from(const std::string& bytes, const Executor& executor) {
  Source source;
  REQUIRE(source.open_memory(bytes.data(), bytes.size()).ok());
  auto state = std::make_shared<SavedState>();
  const Status status = read_state(source, executor, state.get());
  INFO(error_text());
  REQUIRE(status.ok());
  return state;
}

// What goes on from `done` tokens of an answer, with the rest of its limit.
RequestOptions rest_of(const RequestOptions& whole, const Tokens& done) {
  RequestOptions rest = whole;
  rest.tokens.insert(rest.tokens.end(), done.begin(), done.end());
  rest.max_tokens -= uint32_t(done.size());
  rest.keep_state = false;
  return rest;
}

Tokens joined(Tokens first, const Tokens& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Runs until the request has given at least `count` tokens, then cancels it. Gives its answer.
Answer cut_short(Rig& rig, Request& request, size_t count) {
  Answer answer;
  while (answer.tokens.size() < count) {
    REQUIRE(rig.scheduler->step());
    drain(request, &answer);
  }
  request.cancel();
  rig.scheduler->step();
  drain(request, &answer);
  REQUIRE(request.ended(&answer.result));
  CHECK(answer.result.reason == StopReason::Cancelled);
  return answer;
}

std::vector<float> logprobs_of(Request& request) {
  std::vector<float> logprobs;
  RequestEvent event;
  while (request.next(0, &event)) logprobs.push_back(event.token.logprob);
  CHECK(logprobs.size() >= 8);
  return logprobs;
}

}  // namespace

TEST_CASE("state: a request that was cut short goes on in another service and in a session",
          "[serve][state]") {
  const bool ahead = GENERATE(false, true);
  const uint64_t seed = GENERATE(0, 9);
  const ExecutorOptions sizes{.context = 256, .sequences = 4, .cache_tokens = 64 * 16};
  Rig rig(sizes, {}, ahead);
  RequestOptions options = request_of(some_tokens(90, 1), 60, seed);
  options.keep_state = true;
  if (seed) options.sampling.penalty_last_n = 64, options.sampling.repeat = 1.3f;
  const Tokens expected = alone(rig, options);
  const auto request = rig.add(options);
  for (const RequestOptions& other : mixed_requests(5)) rig.add(other);
  const Answer begun = cut_short(rig, *request, 20);
  const std::string bytes = bytes_of(*request);
  CHECK(request->state().tokens.size() >= 90 + 19);
  CHECK(request->state().tokens.size() < 90 + begun.tokens.size() + 1);

  Rig later(sizes, {}, ahead);
  RequestOptions rest = rest_of(options, begun.tokens);
  rest.state = state_from(bytes, *later.engine.executor);
  const auto other = later.add(request_of(some_tokens(30, 2), 40, 3)), goes_on = later.add(rest);
  const uint64_t rows = later.scheduler->counts().rows;
  later.run();
  const Answer end = answer_of(*goes_on);
  CHECK(joined(begun.tokens, end.tokens) == expected);
  CHECK(end.result.cached_tokens == std::min(rest.state->tokens.size(), rest.tokens.size() - 1));
  CHECK(later.scheduler->counts().rows - rows < 30 + 39 + 60);
  CHECK(answer_of(*other).tokens.size() == 40);
  later.check_clean();

  std::unique_ptr<Session> session;
  const std::shared_ptr<Executor> executor(later.engine.executor.get(), [](Executor*) {});
  REQUIRE(Session::open(executor, &session).ok());
  REQUIRE(restore(*session, bytes).ok());
  CHECK(std::ranges::equal(session->tokens(), request->state().tokens));
  std::string again;
  REQUIRE(save(*session, &again).ok());
  CHECK(again == bytes);
  rig.run();
}

TEST_CASE("state: the keys and values of a state are used, and nobody else gets them", "[serve][state]") {
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 16});
  RequestOptions options = request_of(some_tokens(140, 1), 8);
  options.logprobs = true;
  RequestOptions keeps = options;
  keeps.keep_state = true;
  keeps.use_cache = false;
  const auto first = rig.add(keeps);
  rig.run();
  const std::vector<float> expected = logprobs_of(*first);
  SavedState odd = first->state();
  odd.tokens.resize(139);  // of the same pages, with other keys and values
  odd.header = state_header(*rig.engine.executor, 139);
  odd.cache.resize(rig.engine.executor->cache_bytes(139, Executor::CacheForm::Whole));
  for (size_t i = 0; i < odd.cache.size(); i += 4) {
    const float value = float(i % 97) / 97;
    memcpy(&odd.cache[i], &value, sizeof value);
  }
  RequestOptions strange = options;
  strange.state = std::make_shared<SavedState>(odd);
  const auto other = rig.add(strange);
  rig.run();
  CHECK(logprobs_of(*other) != expected);
  const auto third = rig.add(options);
  rig.run();
  CHECK(logprobs_of(*third) == expected);
  CHECK(answer_of(*third).result.cached_tokens == 0);
  rig.check_clean();
}

TEST_CASE("state: a request that loses its pages takes them from its state again", "[serve][state]") {
  const ExecutorOptions sizes{.context = 256, .sequences = 3, .cache_tokens = 64 * 6};
  Rig rig(sizes);
  RequestOptions options = request_of(some_tokens(100, 1), 100, 4);
  const Tokens expected = alone(rig, options);
  options.keep_state = true;
  const auto request = rig.add(options);
  const Answer begun = cut_short(rig, *request, 5);
  RequestOptions rest = rest_of(options, begun.tokens);
  rest.state = state_from(bytes_of(*request), *rig.engine.executor);
  rest.keep_state = true;
  const auto older = rig.add(request_of(some_tokens(100, 2), 120, 5)), goes_on = rig.add(rest);
  rig.run();
  const Answer end = answer_of(*goes_on);
  CHECK(joined(begun.tokens, end.tokens) == expected);
  CHECK(end.result.set_back > 0);
  CHECK(end.result.cached_tokens == rest.state->tokens.size() * (1 + end.result.set_back));
  CHECK(goes_on->state().tokens.size() == 100 + expected.size() - 1);
  CHECK(answer_of(*older).tokens.size() == 120);
  rig.check_clean();
}

TEST_CASE("state: a request that never ran has an empty one, and one that failed has none",
          "[serve][state][one-device]") {
  Rig rig({.context = 256, .sequences = 1, .cache_tokens = 256});
  RequestOptions options = request_of(some_tokens(10, 1), 5);
  options.keep_state = true;
  const auto never = rig.add(options);
  never->cancel();
  rig.run();
  CHECK(answer_of(*never).result.reason == StopReason::Cancelled);
  CHECK(never->state_status().ok());
  CHECK(never->state().tokens.empty());
  CHECK(bytes_of(*never).size() == sizeof(StateHeader) + sizeof(uint64_t));
  RequestOptions goes_on = options;
  goes_on.state = state_from(bytes_of(*never), *rig.engine.executor);
  const auto from_nothing = rig.add(goes_on);
  rig.run();
  CHECK(answer_of(*from_nothing).tokens == alone(rig, options));
  rig.submissions.fail_after = rig.submissions.count;
  const auto failed = rig.add(options);
  rig.run();
  CHECK(answer_of(*failed).result.status.code == Code::Memory);
  CHECK(failed->state().cache.empty());
  rig.submissions.fail_after = ~0ull;
  rig.check_clean();
}

TEST_CASE("state: each submission or copy that fails once harms no other, and no answer that is whole",
          "[serve][state][faults][one-device]") {
  const bool copies = GENERATE(false, true);
  Rig rig({.context = 256, .sequences = 2, .cache_tokens = 64 * 8}, {.prefix_cache = false});
  RequestOptions options = request_of(some_tokens(70, 1), 6);
  options.keep_state = true;
  const Tokens expected = alone(rig, options);
  const auto first = rig.add(options);
  rig.run();
  answer_of(*first);
  const std::string bytes = bytes_of(*first);
  RequestOptions rest = rest_of(options, {expected.begin(), expected.begin() + 6});
  rest.max_tokens = 4;
  rest.state = state_from(bytes, *rig.engine.executor);
  rest.keep_state = true;
  const Tokens more = alone(rig, rest);
  uint64_t at = 1, kept = 0, lost = 0;
  for (bool reached = true; reached; ++at) {
    const auto other = rig.add(options), goes_on = rig.add(rest);
    rig.submissions.count = rig.submissions.waits = 0;
    (copies ? rig.submissions.fail_wait_at : rig.submissions.fail_at) = at;
    rig.run();
    reached = (copies ? rig.submissions.waits : rig.submissions.count) >= at;
    rig.submissions.fail_at = rig.submissions.fail_wait_at = 0;
    for (const auto& [request, wanted] : {std::pair(other, &expected), std::pair(goes_on, &more)}) {
      INFO("submission " << at);
      const Answer answer = answer_of(*request);
      const bool ok = answer.result.status.ok();
      CHECK((ok ? answer.tokens == *wanted : answer.result.status.code == Code::Memory));
      if (!ok) continue;
      const Status state = request->state_status();
      kept += state.ok(), lost += state.code == Code::Memory;
      if (state.ok() && request == other) CHECK(bytes_of(*request) == bytes);
    }
    rig.check_clean();
  }
  CHECK(at > 4);
  CHECK(kept > 4);
  CHECK((lost > 0) == copies);
}

TEST_CASE("state: of prompt_logprobs, embed and state a request has at most one", "[serve][state]") {
  Rig rig({.context = 256, .sequences = 1, .cache_tokens = 256});
  const auto state = std::make_shared<SavedState>();
  for (int i = 0; i < 3; ++i) {
    RequestOptions options = request_of(some_tokens(10, 1), 1);
    options.prompt_logprobs = i != 0;
    if (i != 1) options.embed = EmbedOptions{};
    if (i != 2) options.state = state;
    std::shared_ptr<Request> request;
    CHECK(Request::open(*rig.engine.model, 256, 10, rig.bell, std::move(options), &request).code ==
          Code::Argument);
  }
}
