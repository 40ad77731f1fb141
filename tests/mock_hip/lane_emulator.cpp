#include "tests/mock_hip/lane_emulator.h"

#include <vector>

#include "tests/mock_hip/fiber.h"

namespace mock_hip {

enum class State : uint8_t { Ready, AtWave, AtBarrier, Ended };

struct Lane {
  Fiber fiber;
  State state = State::Ready;
  WaveFunction function = nullptr;
  const void* in = nullptr;
  void* out = nullptr;
};

struct Group {
  std::vector<Lane> lanes{kMaxThreads};
  LaunchShape shape = {};
  unsigned index[3] = {};
  const void* argument = nullptr;
  unsigned running = 0;  // the lane whose fiber runs now
};

static thread_local Group* group = nullptr;

unsigned thread_in_group() { return group->running; }
unsigned group_index(unsigned axis) { return group->index[axis]; }
const void* argument_block() { return group->argument; }

void meet_group() {
  group->lanes[group->running].state = State::AtBarrier;
  Fiber::yield();
}

void meet_wave(WaveFunction function, const void* in, void* out) {
  Lane& lane = group->lanes[group->running];
  lane.function = function;
  lane.in = in;
  lane.out = out;
  lane.state = State::AtWave;
  Fiber::yield();
}

// Runs each ready lane of first .. end - 1 to its next meeting point.
static void run_ready_lanes(unsigned first, unsigned end) {
  for (unsigned k = first; k < end; ++k) {
    const unsigned i = group->shape.seed % 2 ? first + end - 1 - k : k;
    Lane& lane = group->lanes[i];
    if (lane.state != State::Ready) continue;
    group->running = i;
    lane.fiber.resume();
    if (lane.fiber.done()) lane.state = State::Ended;
  }
}

// Runs a wave until all its lanes have ended or wait at a barrier.
static const char* run_wave(unsigned first, unsigned end) {
  for (;;) {
    run_ready_lanes(first, end);
    Wave wave = {end - first, {}, {}};
    WaveFunction function = nullptr;
    bool at_barrier = false;
    for (unsigned i = first; i < end; ++i) {
      const Lane& lane = group->lanes[i];
      at_barrier |= lane.state == State::AtBarrier;
      if (lane.state != State::AtWave) continue;
      if (function && function != lane.function) return "lanes of one wave are at different wave operations";
      function = lane.function;
      wave.in[i - first] = lane.in;
      wave.out[i - first] = lane.out;
    }
    if (!function) return nullptr;
    if (at_barrier) return "lanes of one wave are at a barrier and at a wave operation";
    function(wave);
    for (unsigned i = first; i < end; ++i)
      if (group->lanes[i].state == State::AtWave) group->lanes[i].state = State::Ready;
  }
}

static const char* run_group(void (*body)(void*), void* argument) {
  const LaunchShape& shape = group->shape;
  const unsigned waves = (shape.threads + shape.wave - 1) / shape.wave;
  for (unsigned i = 0; i < shape.threads; ++i) {
    group->lanes[i].state = State::Ready;
    group->lanes[i].fiber.start(body, argument);
  }
  for (;;) {
    for (unsigned k = 0; k < waves; ++k) {
      const unsigned first = (k + shape.seed) % waves * shape.wave;
      const unsigned end = first + shape.wave < shape.threads ? first + shape.wave : shape.threads;
      if (const char* fault = run_wave(first, end)) return fault;
    }
    unsigned waiting = 0, ended = 0;
    for (unsigned i = 0; i < shape.threads; ++i) {
      waiting += group->lanes[i].state == State::AtBarrier;
      ended += group->lanes[i].state == State::Ended;
    }
    if (ended == shape.threads) return nullptr;
    if (ended && waiting) return "some threads of a group ended while others wait at a barrier";
    for (unsigned i = 0; i < shape.threads; ++i) group->lanes[i].state = State::Ready;
  }
}

const char* run_grid(const LaunchShape& shape, void (*body)(void*), void* argument) {
  if (shape.threads == 0 || shape.threads > kMaxThreads) return "a group has 1 to 1024 threads";
  if (shape.wave == 0 || shape.wave > kMaxWave) return "a wave has 1 to 64 lanes";
  static thread_local Group own;
  group = &own;
  group->shape = shape;
  group->argument = argument;
  for (unsigned z = 0; z < shape.groups[2]; ++z)
    for (unsigned y = 0; y < shape.groups[1]; ++y)
      for (unsigned x = 0; x < shape.groups[0]; ++x) {
        group->index[0] = x, group->index[1] = y, group->index[2] = z;
        if (const char* fault = run_group(body, argument)) return fault;
      }
  return nullptr;
}

struct ShuffleIn {
  unsigned from;
  int value;
};

static void shuffle_wave(const Wave& wave) {
  for (unsigned i = 0; i < wave.size; ++i) {
    if (!wave.in[i]) continue;
    const void* from = wave.in[static_cast<const ShuffleIn*>(wave.in[i])->from % wave.size];
    *static_cast<int*>(wave.out[i]) = from ? static_cast<const ShuffleIn*>(from)->value : 0;
  }
}

int shuffle_from(int byte_address, int value) {
  const ShuffleIn in = {unsigned(byte_address) / 4, value};
  int out = 0;
  meet_wave(shuffle_wave, &in, &out);
  return out;
}

}  // namespace mock_hip
