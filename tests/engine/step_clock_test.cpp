// How many rows of prompts a step has beside answers follows from how long steps took. Times are made up,
// and numbers of rows are checked.
#include "engine/serve/step_clock.h"

#include <chrono>
#include <map>
#include <thread>

#include "engine/serve_rig.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr uint64_t kMs = 1'000'000;

// A device on which a step takes `base` and `each` for a row.
struct StepTimes {
  uint64_t base, each;
  uint64_t of(uint32_t rows) const { return base + each * rows; }
};

// Runs steps as large as the clock lets them be, as prompts beside answers do. Counts them by their rows.
std::map<uint32_t, int> run(StepClock& clock, const StepTimes& device, uint64_t step_ns, int steps) {
  std::map<uint32_t, int> counts;
  for (int i = 0; i < steps; ++i) {
    const uint32_t rows = clock.rows_within(step_ns, 512);
    clock.note(rows, device.of(rows));
    ++counts[rows];
  }
  return counts;
}

uint32_t usual(const std::map<uint32_t, int>& counts) {
  return std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
}

uint64_t made_up_ns = 0;

// The most rows of a step while a prompt of 200 tokens is read beside an answer, on a device whose steps all
// take `step_ns`.
uint64_t most_rows(uint64_t step_ns) {
  Rig rig({.context = 256, .sequences = 2, .cache_tokens = 512, .step_tokens = 64},
          {.prefix_cache = false, .now = [] { return made_up_ns; }});
  const auto answer = rig.add(request_of(some_tokens(10, 1), 200));
  uint64_t most = 0;
  for (int prompt = 0; prompt < 4; ++prompt) {
    const auto reads = rig.add(request_of(some_tokens(200, 2), 1));
    RequestResult result;
    RequestEvent event;
    while (!reads->ended(&result)) {
      const uint64_t before = rig.scheduler->counts().rows;
      rig.submissions.on_submit = [&] { made_up_ns += step_ns; };
      REQUIRE(rig.scheduler->step());
      if (prompt == 3) most = std::max(most, rig.scheduler->counts().rows - before);  // all sizes ran before
      while (reads->next(0, &event)) continue;
    }
    CHECK(!answer->ended(&result));
  }
  rig.run();
  return most;
}

}  // namespace

TEST_CASE("step clock: the pieces of a prompt beside an answer follow from the time of steps",
          "[serve][clock]") {
  CHECK(most_rows(49 * kMs) == 64);
  CHECK(most_rows(51 * kMs) == 17);  // 16 rows of the prompt beside the answer's
}

TEST_CASE("step clock: a step has as many rows as fit into its time", "[serve][clock]") {
  constexpr StepTimes kFast{2 * kMs, kMs / 10}, kSlow{20 * kMs, 2 * kMs};
  const struct {
    StepTimes device;
    uint64_t ms;
    uint32_t rows;
  } cases[] = {
      {kFast, 54, 512},  // 512 rows take 53.2 ms
      {kFast, 40, 256},  // 256 take 27.6
      {kFast, 15, 128},  // 128 take 14.8
      {kFast, 10, 64},   // 64 take 8.4
      {kSlow, 40, 8},    // 8 take 36, 16 take 52
      {kSlow, 10, 1},    // not even one fits
  };
  for (const auto& each : cases) {
    INFO(each.device.base << " + " << each.device.each << " ns a row, " << each.ms << " ms");
    StepClock clock;
    CHECK(usual(run(clock, each.device, each.ms * kMs, 100)) == each.rows);
  }
}

TEST_CASE("step clock: fewer than one step in 100 is twice as long as it should be", "[serve][clock]") {
  constexpr StepTimes kDevice{0, kMs / 10};
  StepClock clock;
  run(clock, kDevice, 25 * kMs, 10);
  const auto counts = run(clock, kDevice, 25 * kMs, 3000);  // 512 rows take 51.2 ms, 256 take 25.6
  int too_long = 0;
  for (const auto& [rows, count] : counts)
    if (rows == 512) too_long += count;
  CHECK(too_long < 30);
}

TEST_CASE("step clock: the number follows a device that becomes slower or faster", "[serve][clock]") {
  StepClock clock;
  CHECK(usual(run(clock, {2 * kMs, kMs / 10}, 40 * kMs, 100)) == 256);
  run(clock, {2 * kMs, kMs}, 40 * kMs, 50);
  CHECK(usual(run(clock, {2 * kMs, kMs}, 40 * kMs, 100)) == 32);  // 34 ms; 64 rows take 66
  run(clock, {2 * kMs, kMs / 10}, 40 * kMs, 1500);                // what was refused is tried again
  CHECK(usual(run(clock, {2 * kMs, kMs / 10}, 40 * kMs, 100)) == 256);
}

TEST_CASE("step clock: the first step of a size makes its plan, and is not counted", "[serve][clock]") {
  StepClock clock;
  clock.note(64, 900 * kMs);
  CHECK(clock.rows_within(50 * kMs, 512) == 512);
  clock.note(64, 40 * kMs);
  CHECK(clock.rows_within(50 * kMs, 512) == 64);
  CHECK(clock.rows_within(39 * kMs, 512) == 32);
  CHECK(clock.rows_within(50 * kMs, 32) == 32);
}

TEST_CASE("step clock: the host's time is that in which nobody waits for the device", "[serve][clock]") {
  constexpr uint64_t kHost = 2 * kMs, kDevice = 20 * kMs;
  const auto sleeps = [](uint64_t ns) {
    return [ns] { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); };
  };
  for (const bool ahead : {false, true}) {
    Rig rig({.context = 256, .sequences = 2, .cache_tokens = 512}, {}, ahead);
    rig.submissions.on_submit = sleeps(kHost);
    rig.submissions.on_event_wait = sleeps(kDevice);
    const auto request = rig.add(request_of(some_tokens(10, 1), 5));
    const uint64_t begun = now_ns();
    rig.run();
    const uint64_t all = now_ns() - begun;
    const SchedulerCounts counts = rig.scheduler->counts();
    CHECK(counts.steps >= 5);
    CHECK(counts.host_ns >= counts.steps * kHost);
    CHECK(counts.host_ns + counts.steps * kDevice <= all);
  }
}
