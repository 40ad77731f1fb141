// The lane emulator itself: what meets, meets; what a kernel may not do is reported.
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "tests/mock_hip/lane_emulator.h"

using namespace mock_hip;

static std::string run(const LaunchShape& shape, void (*body)(void*), void* argument = nullptr) {
  const char* fault = run_grid(shape, body, argument);
  return fault ? fault : "";
}

// Sums 1 .. threads: shuffles within a wave, then through shared memory across waves.
struct Sum {
  unsigned wave, shared[kMaxThreads], result[8];
};

static void sum_group(void* argument) {
  Sum& sum = *static_cast<Sum*>(argument);
  const unsigned thread = thread_in_group(), lane = thread % sum.wave;
  int value = int(thread + 1);
  for (unsigned step = sum.wave / 2; step; step /= 2) value += shuffle_from(int((lane ^ step) * 4), value);
  if (lane == 0) sum.shared[thread / sum.wave] = unsigned(value);
  meet_group();
  if (thread) return;
  for (unsigned w = 0; w < 256 / sum.wave; ++w) sum.result[group_index(0)] += sum.shared[w];
}

TEST_CASE("shuffles and barriers meet, whatever the order of lanes", "[spike]") {
  for (unsigned wave : {32u, 64u})
    for (unsigned seed = 0; seed < 4; ++seed) {
      Sum sum = {wave, {}, {}};
      REQUIRE(run({{3, 1, 1}, 256, wave, seed}, sum_group, &sum) == "");
      for (unsigned g = 0; g < 3; ++g) CHECK(sum.result[g] == 256 * 257 / 2);
      CHECK(sum.result[3] == 0);
    }
}

// Tells all orders of joining apart.
struct Bracket {
  static uint64_t of(uint64_t a, uint64_t b) { return a * 1000003 + b; }
};

static void join_lanes(void* argument) {
  auto* values = static_cast<std::vector<uint64_t>*>(argument);
  uint64_t value = thread_in_group() + 1;
  meet_wave(join_wave<Bracket, uint64_t>, &value, &(*values)[thread_in_group()]);
}

static uint64_t bracket_of(uint64_t first, uint64_t count) {
  if (count == 1) return first + 1;
  return Bracket::of(bracket_of(first, count / 2), bracket_of(first + count / 2, count / 2));
}

TEST_CASE("a wave joins its values in pairs of neighbours", "[spike]") {
  for (unsigned wave : {32u, 64u})
    for (unsigned seed = 0; seed < 4; ++seed) {
      std::vector<uint64_t> values(128);
      REQUIRE(run({{1, 1, 1}, 128, wave, seed}, join_lanes, &values) == "");
      for (unsigned i = 0; i < 128; ++i) CHECK(values[i] == bracket_of(i / wave * wave, wave));
    }
  std::vector<uint64_t> values(128);
  CHECK(run({{1, 1, 1}, 40, 32, 0}, join_lanes, &values) == "lanes are absent where a wave joins its values");
  CHECK(run(
            {{1, 1, 1}, 64, 32, 0},
            [](void* argument) {
              if (thread_in_group() != 33) join_lanes(argument);
            },
            &values) == "lanes are absent where a wave joins its values");
}

static void note_turn(void* argument) {
  static_cast<std::vector<unsigned>*>(argument)->push_back(group_index(0) * 100 + thread_in_group());
}

TEST_CASE("a seed chooses the order of groups and of lanes", "[spike]") {
  std::vector<unsigned> numbered, turns[4];
  for (unsigned group = 0; group < 3; ++group)
    for (unsigned thread = 0; thread < 64; ++thread) numbered.push_back(group * 100 + thread);
  for (unsigned seed = 0; seed < 4; ++seed) {
    REQUIRE(run({{3, 1, 1}, 64, 32, seed}, note_turn, &turns[seed]) == "");
    CHECK(std::is_permutation(turns[seed].begin(), turns[seed].end(), numbered.begin(), numbered.end()));
  }
  CHECK(turns[0] == numbered);
  CHECK(turns[1] == std::vector<unsigned>(numbered.rbegin(), numbered.rend()));
  CHECK(turns[2] != turns[0]);
  CHECK(turns[3] != turns[1]);
  CHECK(turns[3] != turns[2]);
}

TEST_CASE("several threads of the host run each group once", "[spike]") {
  for (unsigned repeat = 0; repeat < 50; ++repeat) {
    std::vector<std::atomic<unsigned>> runs(6 * 5 * 4);
    const auto count = [](void* argument) {
      meet_group();
      if (thread_in_group() == 7)
        ++(*static_cast<std::vector<std::atomic<unsigned>>*>(
            argument))[(group_index(2) * 5 + group_index(1)) * 6 + group_index(0)];
    };
    REQUIRE(run({{6, 5, 4}, 32, 32, repeat % 3, 4}, count, &runs) == "");
    for (const auto& of_group : runs) CHECK(of_group == 1);
  }
  CHECK(run({{100, 1, 1}, 64, 32, 0, 4}, [](void*) {
          if (group_index(0) == 50 && thread_in_group() == 1) meet_group();
        }) == "some threads of a group ended while others wait at a barrier");
}

// Each thread gives its number to its neighbour in the next wave, without a barrier between.
static void forget_barrier(void* argument) {
  auto* values = static_cast<std::vector<unsigned>*>(argument);
  const unsigned thread = thread_in_group();
  (*values)[thread] = thread;
  (*values)[128 + thread] = (*values)[(thread + 64) % 128];
}

TEST_CASE("a forgotten barrier shows as a wrong result", "[spike]") {
  std::vector<unsigned> values(256, 999);
  REQUIRE(run({{1, 1, 1}, 128, 64, 0}, forget_barrier, &values) == "");
  bool wrong = false;
  for (unsigned i = 0; i < 128; ++i) wrong |= values[128 + i] != (i + 64) % 128;
  CHECK(wrong);
}

TEST_CASE("divergent barriers and wave operations are faults", "[spike]") {
  const LaunchShape shape = {{1, 1, 1}, 64, 32, 0};
  CHECK(run(shape, [](void*) {
          if (thread_in_group() < 5) meet_group();
        }) == "some threads of a group ended while others wait at a barrier");
  CHECK(run(shape, [](void*) {
          if (thread_in_group() % 2)
            meet_group();
          else
            shuffle_from(0, 1);
        }) == "lanes of one wave are at a barrier and at a wave operation");
  CHECK(run(shape, [](void*) {
          int in = 0, out = 0;
          if (thread_in_group() % 2)
            shuffle_from(0, 1);
          else
            meet_wave([](Wave&) {}, &in, &out);
        }) == "lanes of one wave are at different wave operations");
  CHECK(run({{1, 1, 1}, 2048, 32, 0}, [](void*) {}) == "a group has 1 to 1024 threads");
  CHECK(run(shape, [](void*) { meet_group(); }) == "");  // and it still works
}

TEST_CASE("a wild address is a fault, in one thread or in several", "[spike]") {
  const auto follow = [](void* argument) {
    meet_group();
    if (group_index(0) == 5 && thread_in_group() == 33) {
      volatile int& value = **static_cast<volatile int**>(argument);
      value = value + 1;
    }
    meet_group();
  };
  for (unsigned workers : {1u, 4u})
    for (uintptr_t wild : {uintptr_t(64), uintptr_t(0xdeadbeefdeadbee0)}) {
      const LaunchShape shape = {{9, 1, 1}, 64, 32, 0, workers};
      int real = 0;
      int* address = reinterpret_cast<int*>(wild);
      CHECK(run(shape, follow, &address) == "a lane reads or writes where there is no memory");
      address = &real;
      CHECK(run(shape, follow, &address) == "");
      CHECK(real == 1);
    }
}
