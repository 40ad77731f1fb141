#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "platform/platform.h"

using namespace greta;

namespace {

// Each worker writes its own slot, meets the others, and adds up what all have written. A worker that passes
// the meeting too early reads a number of the round before.
struct Rounds {
  ThreadPool* pool;
  uint32_t rounds;
  std::vector<uint64_t> slot;
  std::atomic<uint32_t> wrong{0};

  static void job(void* context, uint32_t worker) noexcept {
    Rounds& self = *static_cast<Rounds*>(context);
    for (uint32_t round = 1; round <= self.rounds; ++round) {
      self.slot[worker] = uint64_t(round) * (worker + 1);
      self.pool->meet();
      uint64_t sum = 0;
      for (uint64_t value : self.slot) sum += value;
      const uint64_t n = self.slot.size();
      if (sum != round * n * (n + 1) / 2) self.wrong.fetch_add(1);
      self.pool->meet();
    }
  }
};

void count_job(void* context, uint32_t) noexcept {
  static_cast<std::atomic<uint32_t>*>(context)->fetch_add(1);
}

// Waits until a thread sleeps.
void await_sleep(pid_t thread) {
  std::string text;
  do {
    std::this_thread::yield();
    std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread) + "/stat"), text);
    text.erase(0, text.rfind(')') + 2);
  } while (text.substr(0, 1) != "S");
}

}  // namespace

TEST_CASE("every worker runs each job once", "[platform]") {
  for (uint32_t workers : {0u, 1u, 2u, 3u, 8u}) {
    ThreadPool pool(workers);
    CHECK(pool.workers() == (workers ? workers : 1));
    std::atomic<uint32_t> count{0};
    for (uint32_t i = 0; i < 200; ++i) pool.run(count_job, &count);
    CHECK(count == 200 * pool.workers());
  }
}

TEST_CASE("workers see what was written before they met, with more workers than cores", "[platform]") {
  for (uint32_t workers : {1u, 2u, 3u, cpu_count() + 3}) {
    ThreadPool pool(workers);
    Rounds rounds{&pool, 300, std::vector<uint64_t>(pool.workers()), {}};
    pool.run(Rounds::job, &rounds);
    CHECK(rounds.wrong == 0);
  }
}

TEST_CASE("a pool wakes up after its workers have slept", "[platform]") {
  ThreadPool pool(3);
  std::atomic<uint32_t> count{0};
  for (uint32_t i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pool.run(count_job, &count);
  }
  CHECK(count == 15);
}

TEST_CASE("callers on several threads take turns", "[platform]") {
  ThreadPool pool(3);
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> callers;
  for (uint32_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (uint32_t i = 0; i < 20; ++i) {
        Rounds rounds{&pool, 5, std::vector<uint64_t>(pool.workers()), {}};
        pool.run(Rounds::job, &rounds);
        wrong += rounds.wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("a pool that was never used closes", "[platform]") {
  for (uint32_t i = 0; i < 20; ++i) ThreadPool pool(4);
}

TEST_CASE("a thread that runs one job after the other does not keep others from the pool", "[platform]") {
  struct Beside {
    ThreadPool pool{1};
    std::atomic<pid_t> caller = 0;
    std::atomic<int> turns = 0;
    std::thread other;
  } beside;
  const auto first = [](void* context, uint32_t) noexcept {
    Beside& self = *static_cast<Beside*>(context);
    self.other = std::thread([&self] {
      self.caller = gettid();
      self.pool.run([](void* of, uint32_t) noexcept { ++static_cast<Beside*>(of)->turns; }, &self);
    });
    while (!self.caller) std::this_thread::yield();
    await_sleep(self.caller);
  };
  int seen = -1;
  const auto second = [](void* context, uint32_t) noexcept {
    auto& [from, to] = *static_cast<std::pair<Beside*, int*>*>(context);
    *to = from->turns;
  };
  std::pair<Beside*, int*> both(&beside, &seen);
  beside.pool.run(first, &beside);
  beside.pool.run(second, &both);
  beside.other.join();
  CHECK(seen == 1);
}
