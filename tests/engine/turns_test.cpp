// Requests on several devices that take turns, so that all of these have work at the same time.
#include "engine/serve_rig.h"
#include "support/two_devices.h"

using namespace greta;
using namespace greta::test;

namespace {

// A scheduler over a model of four layers, whose last two are on the second device.
struct Turns {
  const TinyModel tiny = make_tiny(four_layers());  // whose bytes are used in place
  Submissions first, second;
  Engine engine;
  std::unique_ptr<Scheduler> scheduler;
  std::shared_ptr<Doorbell> bell = std::make_shared<Doorbell>();
  std::function<void()> after_step;

  explicit Turns(bool turns, const char* split = "middle", bool runs_ahead = false, bool shares = true) {
    const auto faulty = [runs_ahead](Submissions& submissions) {
      return [&submissions, runs_ahead](Device& device) -> std::unique_ptr<Device> {
        return std::make_unique<FaultyDevice>(device, runs_ahead, submissions);
      };
    };
    first.of_gpu = second.of_gpu = runs_ahead;
    second.shares = shares;
    EngineOptions options;
    options.split = split;
    options.executor.sequences = 8;
    options.executor.cache_tokens = 1024;
    options.executor.step_tokens = 16;
    options.wrap = faulty(first);
    if (*split) options.wrap_second = faulty(second);
    open_engine(tiny.file, options, &engine);
    SchedulerOptions scheduling;
    scheduling.turns = turns;
    scheduler = std::make_unique<Scheduler>(*engine.executor, scheduling);
  }
  ~Turns() { scheduler.reset(); }
  std::vector<Answer> answers(const std::vector<RequestOptions>& wanted) {
    std::vector<std::shared_ptr<Request>> requests;
    for (RequestOptions each : wanted) {
      std::shared_ptr<Request> request;
      REQUIRE(Request::open(*engine.model, 256, 1000, bell, std::move(each), &request).ok());
      scheduler->add(request);
      requests.push_back(std::move(request));
    }
    for (int i = 0; scheduler->step(); ++i) {
      REQUIRE(i < 10'000);
      if (after_step) after_step();
    }
    CHECK(scheduler->live() == 0);
    std::vector<Answer> answers;
    for (const auto& request : requests) answers.push_back(answer_of(*request));
    return answers;
  }
};

std::vector<std::vector<int32_t>> tokens_of(const std::vector<Answer>& answers) {
  std::vector<std::vector<int32_t>> tokens;
  for (const Answer& answer : answers) tokens.push_back(answer.tokens);
  return tokens;
}

// Drawn tokens are the same where all devices are processors, which have the same bits.
void check_tokens(const std::vector<Answer>& answers, const std::vector<std::vector<int32_t>>& want) {
  const auto got = tokens_of(answers);
  for (size_t i = 0; i < want.size(); ++i)
    CHECK((on_cpu() ? got[i] == want[i] : got[i].size() == want[i].size()));
}

// Texts whose prompts fit into one step together.
std::vector<RequestOptions> short_requests(uint32_t count) {
  std::vector<RequestOptions> requests;
  for (uint32_t i = 0; i < count; ++i)
    requests.push_back(request_of(some_tokens(2, i), 20 + i, i % 2 ? i : 0));
  return requests;
}

}  // namespace

TEST_CASE("devices: requests take turns, so that two devices have work at the same time",
          "[engine][devices]") {
  const auto wanted = short_requests(6);
  const auto want = tokens_of(Turns(false, "").answers(wanted));
  for (const bool turns : {false, true}) {
    INFO("turns: " << turns);
    Turns rig(turns);
    const uint64_t steps = rig.second.count, waits = rig.second.event_waits;
    uint32_t both = 0;  // how often the first device got work while the second one had some
    rig.first.on_submit = [&] { both += rig.second.count - steps > rig.second.event_waits - waits; };
    check_tokens(rig.answers(wanted), want);
    const SchedulerCounts counts = rig.scheduler->counts();
    if (turns || rig.engine.executor->gains_by_turns()) {  // as two GPUs do
      CHECK(both > 20);
      CHECK(counts.rows < 4 * counts.steps);
    } else {
      CHECK(both == 0);
      CHECK(counts.rows > 4 * counts.steps);
    }
  }
}

// They are as two GPUs, whose step of a token is submitted before the host tells the token before.
TEST_CASE("devices: a single text runs ahead over GPUs", "[engine][devices]") {
  const std::vector<RequestOptions> wanted = {request_of(some_tokens(2, 1), 20, 3)};
  const auto want = tokens_of(Turns(false, "").answers(wanted));
  for (const bool ahead : {false, true}) {
    INFO("runs ahead: " << ahead);
    Turns rig(false, "middle", ahead);
    if (ahead) REQUIRE(rig.engine.executor->runs_ahead());
    const uint64_t tokens = rig.first.gates, steps_behind = rig.second.gates;
    const uint64_t steps = rig.second.count, waits = rig.second.event_waits;
    uint32_t under_way = 0;
    rig.after_step = [&] { under_way += rig.second.count - steps > rig.second.event_waits - waits; };
    check_tokens(rig.answers(wanted), want);
    if (rig.engine.executor->runs_ahead())
      CHECK(under_way >= 18);
    else
      CHECK(under_way == 0);
    if (!ahead) continue;
    // Each step is submitted in advance, and so are those whose token is being drawn.
    CHECK(rig.second.gates - steps_behind == rig.second.count - steps);
    CHECK(rig.first.gates - tokens >= 18);
  }
}

// Whatever fails, no gate stays closed, and the next text is right.
TEST_CASE("devices: a failure of a step in advance ends its text in words", "[engine][devices]") {
  const std::vector<RequestOptions> wanted = {request_of(some_tokens(2, 1), 12, 3)};
  const auto want = tokens_of(Turns(false, "").answers(wanted));
  enum class Fails { Submission, Wait, Opening };
  for (const bool second : {false, true})
    for (const Fails what : {Fails::Submission, Fails::Wait, Fails::Opening})
      for (const uint64_t at : {1, 2, 5}) {
        INFO((second ? "second" : "first") << ", " << int(what) << ", " << at);
        Turns rig(false, "middle", true);
        Submissions& fails = second ? rig.second : rig.first;
        if (what == Fails::Submission) fails.fail_at = fails.count + at;
        if (what == Fails::Wait) fails.fail_event_wait_at = fails.event_waits + at;
        if (what == Fails::Opening) fails.fail_open_at = fails.opened + at;
        const std::vector<Answer> failed = rig.answers(wanted);
        if (failed[0].result.status.ok())  // the step was tried again, or what opens all gates had failed
          CHECK((!on_cpu() || failed[0].tokens == want[0]));
        else
          CHECK(std::string(failed[0].result.error).find(second ? "device second: " : "device first: ") !=
                std::string::npos);
        fails.fail_at = fails.fail_event_wait_at = fails.fail_open_at = 0;
        check_tokens(rig.answers(wanted), want);
      }
}

// What crosses lies in memory that both devices share, or is copied between what each has.
TEST_CASE("devices: requests in turns over GPUs get the same answers in advance", "[engine][devices]") {
  const auto wanted = mixed_requests(14);
  const auto want = tokens_of(Turns(false, "").answers(wanted));
  for (const bool shares : {false, true}) {
    INFO("shares: " << shares);
    Turns rig(true, "middle", true, shares);
    CHECK(rig.engine.executor->gains_by_turns());
    check_tokens(rig.answers(wanted), want);
    CHECK(rig.second.gates > 20);
  }
}

TEST_CASE("devices: requests of all kinds get the same answers in turns", "[engine][devices]") {
  const auto wanted = mixed_requests(14);  // more than there are sequences; some are drawn on the host
  const auto want = tokens_of(Turns(false, "").answers(wanted));
  for (const char* split : {"middle", "turns", "output"}) {
    INFO("split: " << split);
    check_tokens(Turns(true, split).answers(wanted), want);
  }
}

TEST_CASE("devices: a step that fails in turns ends its requests, and the others go on",
          "[engine][devices]") {
  const auto wanted = short_requests(6);
  const auto want = tokens_of(Turns(false, "").answers(wanted));
  for (uint64_t at = 2; at < 12; at += 3) {
    INFO("wait " << at);
    Turns rig(true);
    rig.second.fail_event_wait_at = rig.second.event_waits + at;
    const std::vector<Answer> answers = rig.answers(wanted);
    size_t failed = 0;
    for (size_t i = 0; i < answers.size(); ++i) {
      const RequestResult& result = answers[i].result;
      if (result.status.ok()) {
        CHECK((!on_cpu() || answers[i].tokens == want[i]));
        continue;
      }
      ++failed;
      CHECK(std::string(result.error).find("device second: ") != std::string::npos);
    }
    CHECK(failed == 3);
  }
}
