// Pieces of a prompt that share one pass over the experts' weights that are brought.
#include "engine/serve_rig.h"
#include "support/brought.h"

using namespace greta;
using namespace greta::test;

namespace {

// With experts in each of three layers, so that one of two places has to take another layer in each pass.
std::string three_layers() { return golden_file("qwen2moe-converted-tied"); }

// How often the first device was waited for because experts came into the place of others.
uint64_t loads(const Brought& brought, uint64_t steps) { return brought.first.event_waits - steps; }

}  // namespace

TEST_CASE("devices: pieces of a prompt share one pass over experts that are brought", "[engine][devices]") {
  const std::string file = three_layers();
  const auto prompt = first_tokens(70), more = first_tokens(3);
  Brought whole(file, ""), alone(file), together(file, "brought", 16, 4);
  CHECK(alone.engine.executor->plan().pass_tokens == 16);
  REQUIRE(together.engine.executor->plan().pass_tokens == 64);
  const auto want = whole.logits_after(prompt);
  for (Brought* each : {&alone, &together}) {
    const uint64_t waits = each->second.waits, steps = each == &alone ? 5 : 2;
    check_same(each->logits_after(prompt), want);
    CHECK(each->second.waits - waits == steps);  // it has nothing to do
  }
  REQUIRE(whole.engine.model->shape.layers == 3);
  CHECK(loads(alone, 5) - loads(together, 2) == 3 * 2);  // of the first layer and the last one
  const auto want_more = whole.logits_after(more);
  check_same(together.logits_after(more), want_more);
}

TEST_CASE("devices: a pass over brought experts takes tokens of several texts", "[engine][devices]") {
  const std::string file = three_layers();
  using Row = Executor::Row;
  using Output = Executor::Output;
  const auto run = [&](const char* split, uint32_t pieces) {
    Brought brought(file, split, 16, pieces);
    Executor& executor = *brought.engine.executor;
    const uint32_t vocab = brought.engine.model->shape.vocab;
    uint32_t a = 0, b = 0, flight = 0;
    REQUIRE(executor.acquire_sequence(&a).ok());
    REQUIRE(executor.acquire_sequence(&b).ok());
    const std::vector<Row> begin = {{5, 0, a, Output::None}, {6, 1, a, Output::Draw}};
    REQUIRE(executor.step(begin).ok());
    std::vector<Row> rows = {{kTokenFromSample, 2, a, Output::Logits}};
    for (uint32_t t = 0; t < 40; ++t) rows.push_back({t + 1, t, b, t == 39 ? Output::Logits : Output::None});
    std::vector<float> logits;
    const auto take = [&](std::span<const Row> part, uint32_t outputs) {
      const Status submitted = executor.submit(part, &flight);
      INFO(error_text());
      REQUIRE(submitted.ok());
      REQUIRE(executor.wait(flight).ok());
      logits.insert(logits.end(), executor.logits(), executor.logits() + outputs * vocab);
    };
    const std::span<const Row> all = rows;
    if (pieces > 1) return take(all, 2), logits;
    take(all.first(1), 1);
    for (size_t first = 1; first < all.size(); first += 10) take(all.subspan(first, 10), first == 31);
    return logits;
  };
  check_same(run("brought", 4), run("", 1));
}

TEST_CASE("devices: a pass has more pieces where attention takes long", "[engine][devices]") {
  const std::string file = three_layers();
  const auto prompt = first_tokens(70);
  const auto want = Brought(file, "").logits_after(prompt);
  for (const uint64_t pairs : {40, 300}) {
    INFO(pairs << " pairs");
    Brought together(file, "brought", 16, 4, pairs);
    check_same(together.logits_after(prompt), want);
  }
}

TEST_CASE("devices: each submission and wait that fails in a pass ends in words", "[engine][devices]") {
  const std::string file = three_layers();
  const auto prompt = first_tokens(40);
  const auto want = Brought(file, "").logits_after(prompt);
  enum class Way { Submission, Wait, EventWait };
  for (const Way way : {Way::Submission, Way::Wait, Way::EventWait})
    for (uint32_t at = 1;; ++at) {
      INFO("way " << int(way) << ", at " << at);
      Brought brought(file, "brought", 16, 4);
      Submissions& s = brought.first;
      (way == Way::Submission ? s.fail_at
       : way == Way::Wait     ? s.fail_wait_at
                              : s.fail_event_wait_at) = at + (way == Way::Submission ? s.count
                                                          : way == Way::Wait     ? s.waits
                                                                                 : s.event_waits);
      const float* logits = nullptr;
      const Status status = brought.session->eval(prompt, OutputRows::Last, &logits);
      if (status.ok()) {
        CHECK(at > (way == Way::Submission ? 4u : 1u));
        break;
      }
      CHECK(status.code == Code::Memory);
      CHECK(told("device first: "));
      CHECK(told("fails"));
      CHECK(brought.session->position() == 0);
      check_same(brought.logits_after(prompt), want);
    }
}

TEST_CASE("devices: a service reads prompts in passes over brought experts", "[engine][devices]") {
  const std::string file = three_layers();
  const auto answers = [&](const char* split, uint32_t pieces, uint64_t* steps) {
    Brought brought(file, split, 16, pieces);
    brought.session.reset();
    Scheduler scheduler(*brought.engine.executor, SchedulerOptions{});
    const auto bell = std::make_shared<Doorbell>();
    std::vector<std::shared_ptr<Request>> requests;
    for (uint32_t i = 0; i < 6; ++i) {
      requests.emplace_back();
      REQUIRE(Request::open(*brought.engine.model, 256, 1000, bell,
                            request_of(some_tokens(i % 2 ? 90 : 5, i), 10 + i, i % 3), &requests.back())
                  .ok());
      scheduler.add(requests.back());
    }
    for (int i = 0; scheduler.step(); ++i) REQUIRE(i < 10'000);
    std::vector<std::vector<int32_t>> tokens;
    for (const auto& request : requests) {
      const Answer answer = answer_of(*request);
      CHECK(answer.result.status.ok());
      tokens.push_back(answer.tokens);
    }
    *steps = scheduler.counts().steps;
    return tokens;
  };
  uint64_t whole = 0, passes = 0;
  const auto want = answers("", 1, &whole), got = answers("brought", 4, &passes);
  for (size_t i = 0; i < want.size(); ++i)
    CHECK((on_cpu() ? got[i] == want[i] : got[i].size() == want[i].size()));
  CHECK(passes < whole);
}
