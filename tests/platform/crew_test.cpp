#include "platform/threads/crew.h"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <thread>

#include "platform/platform.h"

using namespace greta;

namespace {

constexpr uint64_t kMs = 1'000'000;

// Jobs of 25 ms each, of which the workers wait `waited_ms` where more than `calm` of them run.
struct Machine {
  Crew crew;
  uint64_t now = 0;
  void run(uint32_t jobs, uint32_t calm, uint64_t waited_ms) {
    for (uint32_t i = 0; i < jobs; ++i) {
      now += 25 * kMs;
      crew.note(now, 25 * kMs, crew.count() > calm ? waited_ms * kMs : 0);
    }
  }
};

}  // namespace

TEST_CASE("crew: workers that hold the others up are left out, one at a time", "[platform]") {
  Machine machine{Crew(8)};
  machine.run(20, 8, 12);
  CHECK(machine.crew.count() == 8);  // nobody waits
  machine.run(2, 6, 12);
  CHECK(machine.crew.count() == 8);
  machine.run(1, 6, 12);
  CHECK(machine.crew.count() == 7);
  machine.run(3, 6, 12);
  CHECK(machine.crew.count() == 6);
  machine.run(5, 6, 12);
  CHECK(machine.crew.count() == 6);
}

TEST_CASE("crew: a short wait costs less than a worker", "[platform]") {
  Machine machine{Crew(2)};
  machine.run(100, 1, 8);  // a third of the time
  CHECK(machine.crew.count() == 2);
  machine.run(3, 1, 10);
  CHECK(machine.crew.count() == 1);
}

TEST_CASE("crew: of many workers none is left out for waits that all of them share", "[platform]") {
  Machine machine{Crew(16)};
  machine.run(100, 0, 4);  // 16 % of the time, where a worker is 6 % of them
  CHECK(machine.crew.count() == 16);
  machine.run(3, 15, 6);
  CHECK(machine.crew.count() == 15);
}

TEST_CASE("crew: a wait counts where it lasts as long as a time slice of another program", "[platform]") {
  CHECK(Crew::held_up_ns(kMs / 10) == 0);
  CHECK(Crew::held_up_ns(3 * kMs) == 3 * kMs);
}

TEST_CASE("crew: a worker that is late once stays", "[platform]") {
  Machine machine{Crew(2)};
  for (uint32_t i = 0; i < 50; ++i) {
    machine.run(2, 1, 20);
    machine.run(1, 2, 20);
  }
  CHECK(machine.crew.count() == 2);
}

TEST_CASE("crew: one more is tried later and later, and stays once it holds nobody up", "[platform]") {
  Machine machine{Crew(4)};
  machine.run(3, 3, 12);
  uint32_t tries = 0;
  for (uint32_t i = 0; i < 400; ++i) {  // 10 seconds
    const uint32_t before = machine.crew.count();
    machine.run(1, 3, 12);
    tries += machine.crew.count() > before;
  }
  CHECK(tries == 5);  // after 0.25, 0.5, 1, 2 and 4 seconds
  machine.run(200, 4, 12);
  CHECK(machine.crew.count() == 4);
}

TEST_CASE("crew: the last worker stays", "[platform]") {
  Machine machine{Crew(2)};
  machine.run(3, 0, 25);
  CHECK(machine.crew.count() == 1);
  machine.run(3, 0, 25);
  CHECK(machine.crew.count() == 1);
}

TEST_CASE("a pool that adapts runs on without a worker that is late, and does each job whole", "[platform]") {
  // A worker's number says which part it does, so all parts are done whoever does them.
  struct Job {
    ThreadPool pool{3, ThreadPool::Workers::Adapt};
    std::atomic<bool> late{true};
    std::atomic<uint32_t> parts{0}, workers{0};
    static void run(void* context, uint32_t worker) noexcept {
      Job& self = *static_cast<Job*>(context);
      if (worker == 2 && self.late) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      self.parts += 12 * (worker + 1) / self.pool.active() - 12 * worker / self.pool.active();
      self.pool.meet();
      if (worker == 0) self.workers = self.pool.active();
    }
  } job;
  uint32_t jobs = 0;
  const auto runs_with = [&](uint32_t workers) {
    for (; job.workers != workers; ++jobs) {
      job.pool.run(Job::run, &job);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  };
  CHECK(runs_with(3));
  CHECK(runs_with(2));
  job.late = false;
  CHECK(job.parts == 12 * jobs);
}
