// Requests write as sessions do: they guess tokens, go on behind a full context, and close long reasoning.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "engine/serve_rig.h"

using namespace greta;
using namespace greta::test;

namespace {

// A prompt that repeats itself, after which a random model does so, too.
std::vector<int32_t> repeating(size_t count, uint32_t seed) {
  const std::vector<int32_t> once = some_tokens(12, seed);
  std::vector<int32_t> tokens;
  while (tokens.size() < count) tokens.push_back(once[tokens.size() % once.size()]);
  return tokens;
}

void let_shift(RequestOptions* request, uint32_t keep) {
  request->on_full = [keep](std::span<const int32_t> held, std::vector<int32_t>* instead) {
    return forget_half(held, keep, instead);
  };
}

}  // namespace

TEST_CASE("serve: a request that guesses has the same answer in fewer steps", "[serve][draft]") {
  const bool ahead = GENERATE(false, true);
  const bool on_host = GENERATE(false, true);
  RequestOptions options = request_of(repeating(40, 1), 80);
  options.logprobs = on_host;
  uint64_t steps[2];
  for (const uint32_t most : {0u, 7u}) {
    Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 16}, {}, ahead);
    const std::vector<int32_t> expected = alone(rig, options);
    if (most) options.draft = {DraftKind::Text, most};
    const auto request = rig.add(options);
    rig.run();
    const Answer answer = answer_of(*request);
    CHECK(answer.tokens == expected);
    CHECK(answer.result.generated_tokens == 80);
    CHECK((answer.result.accepted_tokens > 20) == (most > 0));
    CHECK(answer.result.accepted_tokens <= answer.result.drafted_tokens);
    steps[most > 0] = rig.scheduler->counts().steps;
    rig.check_clean();
  }
  CHECK(steps[1] + 15 < steps[0]);
}

TEST_CASE("serve: requests that guess share steps with others, and lose no answer when they are set back",
          "[serve][draft]") {
  const bool ahead = GENERATE(false, true);
  const uint32_t pages = GENERATE(24u, 5u);
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * pages}, {}, ahead);
  std::vector<RequestOptions> requests;
  for (uint32_t i = 0; i < 6; ++i) {
    requests.push_back(request_of(repeating(30 + i, i % 2), 100, i == 4 ? 7 : 0));
    if (i == 3) requests[i].sampling.typical_p = 0.9f;  // on the host
  }
  std::vector<std::vector<int32_t>> expected;
  for (const RequestOptions& request : requests) expected.push_back(alone(rig, request));
  std::vector<std::shared_ptr<Request>> handles;
  for (uint32_t i = 0; i < 6; ++i) {
    if (i != 5) requests[i].draft = {DraftKind::Text, 1 + i};
    handles.push_back(rig.add(requests[i]));
  }
  rig.run();
  uint32_t accepted = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    INFO("request " << i);
    const Answer answer = answer_of(*handles[i]);
    CHECK(answer.result.status.ok());
    CHECK(answer.tokens == expected[i]);
    accepted += answer.result.accepted_tokens;
  }
  CHECK(accepted > 20);
  CHECK((rig.scheduler->counts().set_back > 0) == (pages == 5));
  rig.check_clean();
}

TEST_CASE("serve: a request goes on behind a full context as a session does", "[serve]") {
  const bool ahead = GENERATE(false, true);
  const bool cached = GENERATE(false, true);
  Rig rig({.context = 192, .sequences = 4, .cache_tokens = 64 * 9}, {.prefix_cache = cached}, ahead);
  std::vector<RequestOptions> requests;
  for (uint32_t i = 0; i < 5; ++i) {
    requests.push_back(request_of(repeating(100 + 20 * i, i % 3), 300, i == 1 ? 5 : 0));
    let_shift(&requests[i], i % 2 ? 70 : 3);
    if (i == 2) requests[i].sampling.typical_p = 0.9f;
  }
  std::vector<std::vector<int32_t>> expected;
  for (const RequestOptions& request : requests) expected.push_back(alone(rig, request));
  std::vector<std::shared_ptr<Request>> handles;
  for (uint32_t i = 0; i < 5; ++i) {
    if (i == 4) requests[i].draft = {DraftKind::Text, 7};
    handles.push_back(rig.add(requests[i]));
  }
  rig.run();
  for (size_t i = 0; i < requests.size(); ++i) {
    INFO("request " << i);
    const Answer answer = answer_of(*handles[i]);
    CHECK(answer.result.status.ok());
    CHECK(answer.result.reason == StopReason::Length);
    CHECK(answer.result.forgotten_tokens > 100);
    CHECK(answer.tokens == expected[i]);
  }
  rig.check_clean();
  // What stayed in the cache is right: the same requests have the same answers.
  for (size_t i = 0; i < requests.size(); ++i) handles[i] = rig.add(requests[i]);
  rig.run();
  for (size_t i = 0; i < requests.size(); ++i) CHECK(answer_of(*handles[i]).tokens == expected[i]);
  rig.check_clean();
}

TEST_CASE("serve: more than seven guesses are refused", "[serve][draft]") {
  Rig rig({.context = 64, .sequences = 1, .cache_tokens = 64});
  RequestOptions options = request_of({1}, 1);
  options.draft = {DraftKind::Text, 8};
  std::shared_ptr<Request> request;
  CHECK(Request::open(*rig.engine.model, 64, 8, rig.bell, std::move(options), &request).code ==
        Code::Argument);
  CHECK(std::string(error_text()) == "8 tokens to guess in a step, expected 1 to 7");
}
