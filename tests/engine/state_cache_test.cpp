// The prefix cache of models whose layers keep states: what requests take of it, and that no answer depends
// on it.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <limits>

#include "engine/serve_rig.h"
#include "support/model_file.h"
#include "support/saved_session.h"

using namespace greta;
using namespace greta::test;

namespace {

using Tokens = std::vector<int32_t>;

// Models with states of a convolution, of the gated delta rule as well, and one in which no layer attends.
constexpr const char* kHybrids[] = {"lfm2-converted", "qwen35-converted", "mamba2-converted"};

std::string file_of(const char* golden) { return write_model(read_model(golden)); }

Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Answer ask(Rig& rig, const RequestOptions& options) {
  const auto request = rig.add(options);
  rig.run();
  return answer_of(*request);
}

// Nobody runs: each state that is not free is one of the cache, which gives all of them up at its end.
void check_states(Rig& rig) {
  rig.check_clean();
  Executor& executor = *rig.engine.executor;
  rig.scheduler.reset();
  CHECK(executor.states()->free_pages() == executor.plan().states);
}

}  // namespace

TEST_CASE("states: answers of requests do not depend on others, nor on being set back", "[serve][groups]") {
  const std::string file = file_of(kHybrids[GENERATE(0, 1, 2)]);
  const bool ahead = GENERATE(false, true);
  const ExecutorOptions sizes{.context = 1024, .sequences = 3, .cache_tokens = 1024, .step_tokens = 64};
  Rig reference(sizes, {}, false, file);
  SchedulerOptions options;
  options.chunk_tokens = GENERATE(64u, 37u);
  options.host_cache_bytes = GENERATE(uint64_t(0), uint64_t(64) << 20);
  Rig rig(sizes, options, ahead, file);
  REQUIRE(rig.engine.executor->plan().states);
  compare_answers(reference, rig);
  const SchedulerCounts counts = rig.scheduler->counts();
  CHECK(counts.cached_tokens > 0);
  CHECK(counts.set_back > 0);
  CHECK((counts.brought_back > 0) == (options.host_cache_bytes > 0));
  check_states(rig);
}

TEST_CASE("states: a request takes what was read before up to the last page of the prompt",
          "[serve][groups]") {
  const std::string file = file_of(kHybrids[GENERATE(0, 1, 2)]);
  Rig rig({.context = 512, .sequences = 4, .cache_tokens = 64 * 32}, {}, GENERATE(false, true), file);
  const Tokens prompt = some_tokens(200, 1);
  const RequestOptions options = request_of(prompt, 8);
  const Tokens expected = alone(rig, options);
  CHECK(ask(rig, options).tokens == expected);
  const Answer again = ask(rig, options);
  CHECK(again.result.cached_tokens == 192);
  CHECK(again.tokens == expected);
  RequestOptions other = options;
  other.salt = 7;
  CHECK(ask(rig, other).result.cached_tokens == 0);
  // A text that leaves the prompt before its last page has no state to go on from.
  const Tokens left(prompt.begin(), prompt.begin() + 150);
  const RequestOptions leaves = request_of(left + some_tokens(30, 2), 8);
  const Answer answer = ask(rig, leaves);
  CHECK(answer.result.cached_tokens == 0);
  CHECK(answer.tokens == alone(rig, leaves));
  // It has left one where it went another way.
  const RequestOptions third = request_of(left + some_tokens(30, 3), 8);
  const Answer branched = ask(rig, third);
  CHECK(branched.result.cached_tokens == 128);
  CHECK(branched.tokens == alone(rig, third));
  check_states(rig);
}

TEST_CASE("states: requests that arrive together compute a shared prompt once", "[serve][groups]") {
  const std::string file = file_of(kHybrids[GENERATE(0, 1, 2)]);
  Rig rig({.context = 256, .sequences = 8, .cache_tokens = 64 * 32, .step_tokens = 32}, {}, false, file);
  const RequestOptions options = request_of(some_tokens(200, 1), 4);
  const Tokens expected = alone(rig, options);
  std::vector<std::shared_ptr<Request>> handles;
  for (int i = 0; i < 6; ++i) handles.push_back(rig.add(options));
  rig.run();
  CHECK(rig.scheduler->counts().rows == 192 + 6 * (8 + 3));
  for (const auto& handle : handles) CHECK(answer_of(*handle).tokens == expected);
  check_states(rig);
}

TEST_CASE("states: each turn of a conversation reads its new tokens and at most 64 more", "[serve][groups]") {
  const std::string file = file_of("qwen35-converted");
  const bool reasons = GENERATE(false, true);  // then the next turn leaves the answer's beginning out
  Rig rig({.context = 15000, .sequences = 2}, {}, reasons, file);
  Tokens text;
  for (uint32_t turn = 0; turn < 40; ++turn) {
    const Tokens fresh = some_tokens(300, turn);
    const Answer answer = ask(rig, request_of(text + fresh, 70));
    REQUIRE(answer.tokens.size() == 70);
    const size_t before = text.size();
    const Tokens kept(answer.tokens.begin() + (reasons ? 40 : 0), answer.tokens.end());
    CHECK(answer.result.cached_tokens + 64 >= before - (reasons && turn ? kept.size() : 0));
    text = text + fresh + kept;
  }
  CHECK(text.size() > 12'000);
  check_states(rig);
}

TEST_CASE("states: a request that is set back goes on from its last state", "[serve][groups]") {
  const std::string file = file_of(kHybrids[GENERATE(0, 1, 2)]);
  const bool ahead = GENERATE(false, true);
  SchedulerOptions scheduling;
  scheduling.host_cache_bytes = uint64_t(64) << 20;
  Rig rig({.context = 512, .sequences = 2, .cache_tokens = 64 * 10}, scheduling, ahead, file);
  const RequestOptions options = request_of(some_tokens(300, 1), 60),
                       other = request_of(some_tokens(300, 2), 60);
  const Tokens expected = alone(rig, options), expected_other = alone(rig, other);
  const auto stalled = rig.add(options, 48);
  rig.run();
  // Others take its place and its pages while nobody reads.
  for (int i = 0; i < 2; ++i) {
    const auto one = rig.add(other), two = rig.add(other);
    rig.run();
    CHECK(answer_of(*one).tokens == expected_other);
    CHECK(answer_of(*two).tokens == expected_other);
  }
  CHECK(rig.scheduler->counts().set_back == 1);
  Answer answer;
  while (!stalled->ended(&answer.result)) {
    drain(*stalled, &answer);
    rig.run();
  }
  CHECK(answer.tokens == expected);
  CHECK(answer.result.set_back == 1);
  CHECK(answer.result.reread_tokens > 0);
  CHECK(answer.result.reread_tokens < 64);
  CHECK(rig.scheduler->counts().reread_tokens == answer.result.reread_tokens);
  check_states(rig);
}

TEST_CASE("states: host memory that runs out once ends at most one request", "[serve][groups][faults]") {
  const std::string file = file_of(kHybrids[GENERATE(0, 1, 2)]);
  Rig rig({.context = 256, .sequences = 3, .cache_tokens = 64 * 6, .step_tokens = 64}, {},
          GENERATE(false, true), file);
  std::vector<RequestOptions> requests;
  for (const uint32_t own : {1u, 30u, 90u})
    requests.push_back(request_of(some_tokens(70, 1) + some_tokens(own, 2), 9));
  std::vector<Tokens> expected;
  for (const RequestOptions& request : requests) expected.push_back(alone(rig, request));
  check_failing_memory(rig, requests, expected, 32);
  check_states(rig);
}

// A step whose submission fails may have changed the states of all its texts. None of them ends by that, but
// one that was alone in its step.
TEST_CASE("states: a submission that fails once ends at most the request that was alone",
          "[serve][groups][faults]") {
  const std::string file = file_of(kHybrids[GENERATE(0, 1, 2)]);
  const bool ahead = GENERATE(false, true), cached = GENERATE(false, true);
  Rig rig({.context = 256, .sequences = 3, .cache_tokens = 64 * 12, .step_tokens = 64},
          {.prefix_cache = cached}, ahead, file);
  std::vector<RequestOptions> requests;
  for (const uint32_t own : {1u, 30u, 90u})
    requests.push_back(request_of(some_tokens(70, 1) + some_tokens(own, 2), 6));
  std::vector<Tokens> expected;
  for (const RequestOptions& request : requests) expected.push_back(alone(rig, request));
  size_t ended = 0, whole = 0;
  uint64_t at = 1;
  for (bool reached = true; reached; ++at) {
    std::vector<std::shared_ptr<Request>> handles;
    for (const RequestOptions& request : requests) handles.push_back(rig.add(request));
    rig.submissions.count = 0;
    rig.submissions.fail_at = at;
    rig.run();
    reached = rig.submissions.count >= at;
    rig.submissions.fail_at = 0;
    size_t failed = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      INFO("submission " << at << ", request " << i);
      const Answer answer = answer_of(*handles[i]);
      const bool ok = answer.result.status.ok();
      CHECK((ok ? answer.tokens == expected[i] : answer.result.status.code == Code::Memory));
      failed += !ok;
    }
    CHECK(failed <= 1);
    ended += failed, whole += failed == 0;
    rig.check_clean();
  }
  CHECK(whole > ended);
  check_states(rig);
}

TEST_CASE("states: a device that is lost ends each request with its status", "[serve][groups][faults]") {
  const std::string file = file_of(kHybrids[GENERATE(0, 1, 2)]);
  const bool ahead = GENERATE(false, true);
  Rig rig({.context = 256, .sequences = 3, .cache_tokens = 64 * 12, .step_tokens = 64}, {}, ahead, file);
  std::vector<std::shared_ptr<Request>> handles;
  for (const uint32_t seed : {1u, 2u, 3u}) handles.push_back(rig.add(request_of(some_tokens(20, seed), 50)));
  for (int i = 0; i < 6; ++i) rig.scheduler->step();
  rig.submissions.code = Code::Device;
  rig.submissions.fail_after = rig.submissions.count;
  rig.run();
  for (const auto& handle : handles) CHECK(answer_of(*handle).result.status.code == Code::Device);
  rig.submissions.fail_after = ~0ull;
  const RequestOptions options = request_of(some_tokens(20, 1), 5);
  CHECK(ask(rig, options).tokens == alone(rig, options));
  check_states(rig);
}

TEST_CASE("states: a submission that fails once ends at most the session that was alone in its step",
          "[engine][groups][faults][one-device]") {
  const std::string file = file_of(kHybrids[GENERATE(0, 1, 2)]);
  const bool ahead = GENERATE(false, true);
  Rig rig({.context = 256, .sequences = 3, .step_tokens = 64}, {}, ahead, file);
  const std::shared_ptr<Executor> executor(rig.engine.executor.get(), [](Executor*) {});
  const Tokens prompts[] = {some_tokens(70, 1), some_tokens(5, 2)};
  Tokens expected[2];
  for (int i = 0; i < 2; ++i) expected[i] = prompts[i] + alone(rig, request_of(prompts[i], 8));
  size_t ended = 0, whole = 0;
  for (uint64_t at = 1;; ++at) {
    std::unique_ptr<Session> sessions[2];
    std::vector<Session::Generation> items;
    for (int i = 0; i < 2; ++i) {
      REQUIRE(Session::open(executor, &sessions[i]).ok());
      items.push_back({sessions[i].get(), prompts[i], {}});
      items.back().options.max_tokens = 8;
      items.back().options.ignore_end = true;
    }
    rig.submissions.count = 0;
    rig.submissions.fail_at = at;
    REQUIRE(Session::generate_batch(items).ok());
    const bool reached = rig.submissions.count >= at;
    rig.submissions.fail_at = 0;
    for (int i = 0; i < 2; ++i) {
      INFO("submission " << at << ", session " << i << ": " << items[i].error);
      const std::span<const int32_t> held = sessions[i]->tokens();
      CHECK(std::equal(held.begin(), held.end(), expected[i].begin()));
      CHECK(held.size() == (items[i].status.ok() ? expected[i].size() - 1 : 0));
      CHECK((items[i].status.ok() || items[i].status.code == Code::Memory));
    }
    const size_t failed = size_t(!items[0].status.ok()) + !items[1].status.ok();
    CHECK(failed <= 1);
    ended += failed, whole += failed == 0;
    if (!reached) break;
  }
  CHECK(whole > ended);
}

TEST_CASE("states: a session whose steps run ahead reads few tokens of its last answer again",
          "[engine][groups][one-device]") {
  const std::string file = file_of(kHybrids[GENERATE(0, 1, 2)]);
  Rig rig({.context = 4096, .sequences = 1}, {}, true, file),
      reference({.context = 4096, .sequences = 1}, {}, false, file);
  const std::shared_ptr<Executor> executor(rig.engine.executor.get(), [](Executor*) {});
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(executor, &session).ok());
  GenerateOptions options;
  uint32_t again = 0;
  Tokens text;
  for (uint32_t turn = 0; turn < 20; ++turn) {  // in the last one the step under way ends a page
    options.max_tokens = 100 + 9 * (turn % 4);
    // It ends where the step behind its last token is under way, as at a stop string.
    Tokens answer;
    struct Taken {
      Tokens* tokens;
      uint32_t most;
    } taken{&answer, 90 + 7 * (turn % 4)};
    options.ignore_end = true;
    options.user = &taken;
    options.on_token = [](void* user, int32_t token, const char*, size_t) {
      Taken& to = *static_cast<Taken*>(user);
      if (token != kNoToken) to.tokens->push_back(token);
      return int(to.tokens->size() >= to.most);
    };
    GenerateResult result;
    const Tokens more = some_tokens(20 + turn, turn);
    REQUIRE(session->generate(more, options, &result).ok());
    CHECK(result.reread_tokens <= 64);
    again += result.reread_tokens;
    text = text + more;
    const Tokens expected = alone(reference, request_of(text, taken.most));
    REQUIRE(answer == expected);
    text.assign(session->tokens().begin(), session->tokens().end());
  }
  CHECK(again > 0);
}

TEST_CASE("states: a plan that does not fit says what it needs and what is free",
          "[engine][groups][one-device]") {
  const std::string file = file_of("qwen35-converted");
  Rig rig({.context = 128, .sequences = 1}, {}, false, file);
  const uint64_t free = 4096;
  ExecutorOptions options{.context = 128, .sequences = 64, .checkpoint_bytes = uint64_t(1) << 20};
  ExecutorPlan plan;
  REQUIRE(Executor::plan(*rig.engine.model, &options, free, &plan).ok());
  REQUIRE(plan.states * plan.state_bytes > free);
  std::unique_ptr<Executor> executor;
  CHECK(Executor::open(*rig.engine.model, options, free, &executor).code == Code::Memory);
  const std::string sentence = error_text();
  CHECK(sentence.find(SizeText(plan.total()).text) != sentence.npos);
  CHECK(sentence.find(SizeText(free).text) != sentence.npos);
}

TEST_CASE("states: a saved session whose state has another size is refused before anything changes",
          "[engine][groups][state]") {
  const std::string file = file_of("mamba2-converted"), other = file_of("mamba2-converted-lone");
  Rig rig({.context = 128, .sequences = 1}, {}, false, file),
      from({.context = 128, .sequences = 1}, {}, false, other);
  const auto open = [](Rig& in) {
    std::unique_ptr<Session> session;
    REQUIRE(
        Session::open(std::shared_ptr<Executor>(in.engine.executor.get(), [](Executor*) {}), &session).ok());
    return session;
  };
  const std::unique_ptr<Session> to = open(rig), source = open(from);
  const Tokens text = some_tokens(30, 1);
  REQUIRE(to->eval(text, OutputRows::Last, nullptr).ok());
  REQUIRE(source->eval(text, OutputRows::Last, nullptr).ok());
  std::string foreign, before, after;
  REQUIRE(save(*source, &foreign).ok());
  REQUIRE(save(*to, &before).ok());
  REQUIRE(foreign.size() != before.size());
  CHECK(restore(*to, foreign).code == Code::Unsupported);
  REQUIRE(save(*to, &after).ok());
  CHECK(after == before);
}

TEST_CASE("states: a state that is no number ends the answer with the status of logits without numbers",
          "[engine][groups]") {
  ModelFile broken = read_model("qwen35-converted");
  poke("blk.0.ssm_conv1d.weight", std::numeric_limits<float>::quiet_NaN())(broken);
  const std::string file = write_model(broken);
  Rig rig({.context = 128, .sequences = 1}, {}, GENERATE(false, true), file);
  const Answer answer = ask(rig, request_of(some_tokens(10, 1), 5));
  CHECK(answer.result.status.code == Code::File);
  CHECK(answer.tokens.empty());
}
