#include "tests/mock_hip/lane_emulator.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/mock_hip/fiber.h"
#include "tests/mock_hip/matrix_builtins.h"
#include "tests/mock_hip/resident_grid.h"

namespace mock_hip {

bool wrong_matrices = false;  // matrix_builtins.h

// A lane's stack. Their tops lie in different sets of the processor's caches.
constexpr uint64_t kStackBytes = 64 * 1024, kStackStride = kStackBytes + 5 * 64;

enum class State : uint8_t { Ready, AtWave, AtBarrier, BodyEnded, Ended };

struct Lane {
  Fiber fiber;
  State state = State::Ended;
  bool started = false;
  unsigned meets = 0;  // at a barrier: so many of the group's threads meet there, the first ones
};

struct WaveOfLanes {
  unsigned first, size;
  WaveFunction function = nullptr;  // where its lanes are, if they are at a wave operation
  bool at_barrier = false;
  Wave meeting = {};
};

struct ResidentGrid;

// What a thread of the host has to run groups. A lane that stops switches to the next that can run by itself,
// so a meeting costs one switch for each lane.
struct Group {
  std::vector<Lane> lanes{kMaxThreads};
  std::unique_ptr<uint8_t[]> stacks{new uint8_t[kMaxThreads * kStackStride]};
  Fiber outside;  // the thread itself
  LaunchShape shape = {};
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
  unsigned index[3] = {};
  const char* fault = nullptr;

  std::vector<unsigned> lane_order;  // of the lanes of a wave
  std::vector<unsigned> wave_order;
  std::vector<WaveOfLanes> waves;
  unsigned wave_turn = 0, lane_turn = 0;  // which of the orders run now
  unsigned running = 0;                   // the lane whose fiber runs now
  unsigned ended = 0;
  bool in_lanes = false;  // whether one of their fibers runs
  unsigned body_threads = 0;  // how many threads meet at a barrier of the kernel
  const char* body_name = nullptr;
  const HostKernel* host_body = nullptr;
  ResidentGrid* resident = nullptr;
  unsigned order = 0, begun = 0;  // of the group in it, and how many groups of launches it has begun
};

static thread_local Group* group = nullptr;

unsigned thread_in_group() { return group->running; }
unsigned group_index(unsigned axis) { return group->index[axis]; }
unsigned group_count(unsigned axis) { return group->shape.groups[axis]; }
const void* argument_block() { return group->argument; }

// 0 .. count - 1 in an order that the seed chooses.
static void set_order(unsigned seed, unsigned count, std::vector<unsigned>* order) {
  order->resize(count);
  for (unsigned i = 0; i < count; ++i) (*order)[i] = seed == 1 ? count - 1 - i : i;
  uint64_t random = seed;
  for (unsigned i = count; seed > 1 && i > 1; --i) {
    random = random * 6364136223846793005 + 1442695040888963407;
    std::swap((*order)[i - 1], (*order)[(random >> 33) % i]);
  }
}

// All lanes of the wave have stopped: computes what they met for. Returns false if they cannot go on now.
static bool finish_meeting(Group& g, WaveOfLanes& wave) {
  if (!wave.function) return false;
  if (wave.at_barrier) {
    g.fault = "lanes of one wave are at a barrier and at a wave operation";
    return false;
  }
  wave.meeting.fault = nullptr;
  wave.function(wave.meeting);
  g.fault = wave.meeting.fault;
  wave.function = nullptr;
  for (unsigned i = wave.first; i < wave.first + wave.size; ++i)
    if (g.lanes[i].state == State::AtWave) g.lanes[i].state = State::Ready;
  return !g.fault;
}

// All lanes of the wave have stopped. Where they have ended a body of decode_stages, they go on together.
static bool finish_body(Group& g, WaveOfLanes& wave) {
  unsigned ended = 0;
  for (unsigned i = wave.first; i < wave.first + wave.size; ++i)
    ended += g.lanes[i].state == State::BodyEnded;
  if (!ended) return false;
  if (ended < wave.size) {
    g.fault = "some lanes of a wave ended a body while others wait at a barrier";
    return false;
  }
  for (unsigned i = wave.first; i < wave.first + wave.size; ++i) g.lanes[i].state = State::Ready;
  return true;
}

// All waves have stopped, at a barrier or at their end. Returns false if the group has ended.
static bool finish_barrier(Group& g) {
  if (g.ended == g.shape.threads) return false;
  if (g.ended) {
    g.fault = "some threads of a group ended while others wait at a barrier";
    return false;
  }
  // Some of decode_stages's threads may meet while the others wait for all.
  unsigned count = g.shape.threads;
  for (unsigned i = 0; i < g.shape.threads; ++i) count = std::min(count, g.lanes[i].meets);
  for (unsigned i = 0; i < count; ++i) {
    if (g.lanes[i].meets != count) {
      g.fault = "threads of a group are at different barriers";
      return false;
    }
    g.lanes[i].state = State::Ready;
  }
  for (WaveOfLanes& wave : g.waves) wave.at_barrier = wave.at_barrier && wave.first >= count;
  return true;
}

// Chooses the lane that runs next, or null for none.
static Lane* next_lane(Group& g) {
  for (;;) {
    WaveOfLanes& wave = g.waves[g.wave_order[g.wave_turn]];
    while (g.lane_turn < g.lane_order.size()) {
      const unsigned i = g.lane_order[g.lane_turn++];
      if (i < wave.size && g.lanes[wave.first + i].state == State::Ready) {
        g.running = wave.first + i;
        return &g.lanes[g.running];
      }
    }
    g.lane_turn = 0;
    if (finish_meeting(g, wave) || finish_body(g, wave)) continue;
    if (g.fault) return nullptr;
    if (++g.wave_turn < g.waves.size()) continue;
    g.wave_turn = 0;
    if (!finish_barrier(g)) return nullptr;
  }
}

// Leaves the lane that runs now, until it is its turn again.
static void pass_on(Group& g, Lane& lane) {
  Lane* next = next_lane(g);
  if (next != &lane) Fiber::switch_to(lane.fiber, next ? next->fiber : g.outside);
}

static void meet_threads(unsigned count) {
  Group& g = *group;
  Lane& lane = g.lanes[g.running];
  lane.state = State::AtBarrier;
  lane.meets = count;
  g.waves[g.running / g.shape.wave].at_barrier = true;
  pass_on(g, lane);
}

void meet_group() { meet_threads(group->body_threads); }

void meet_wave(WaveFunction function, const void* in, void* out) {
  Group& g = *group;
  Lane& lane = g.lanes[g.running];
  WaveOfLanes& wave = g.waves[g.running / g.shape.wave];
  if (wave.function && wave.function != function) {
    g.fault = "lanes of one wave are at different wave operations";
    Fiber::switch_to(lane.fiber, g.outside);
  }
  wave.function = function;
  wave.meeting.in[g.running - wave.first] = in;
  wave.meeting.out[g.running - wave.first] = out;
  lane.state = State::AtWave;
  pass_on(g, lane);
}

// The life of a lane: one thread of a group after the other.
static void live() {
  Fiber::arrive();
  for (;;) {
    Group& g = *group;
    g.body(g.argument);
    Lane& lane = g.lanes[g.running];
    WaveOfLanes& wave = g.waves[g.running / g.shape.wave];
    lane.state = State::Ended;
    wave.meeting.in[g.running - wave.first] = nullptr;
    ++g.ended;
    pass_on(g, lane);
  }
}

static const char* run_group(Group& g) {
  g.body_threads = g.shape.threads;
  for (unsigned i = 0; i < g.shape.threads; ++i) {
    Lane& lane = g.lanes[i];
    lane.state = State::Ready;
    lane.meets = 0;
    if (!lane.started) lane.fiber.start(&g.stacks[i * kStackStride], kStackBytes, live);
    lane.started = true;
  }
  for (WaveOfLanes& wave : g.waves) {
    wave.function = nullptr;
    wave.at_barrier = false;
  }
  g.wave_turn = g.lane_turn = g.ended = 0;
  g.fault = nullptr;
  if (Lane* first = next_lane(g)) {
    g.in_lanes = true;
    Fiber::switch_to(g.outside, first->fiber);
    g.in_lanes = false;
  }
  if (g.fault)  // lanes are left in the middle of the kernel
    for (Lane& lane : g.lanes) lane.started = false;
  return g.fault;
}

// While one lives, a lane that reads or writes where there is no memory ends its grid. It is made for each
// grid, since others set and restore the handler too.
class FaultWatch {
 public:
  FaultWatch() {
    const std::lock_guard<std::mutex> lock(mutex_);
    struct sigaction action = {};
    action.sa_sigaction = end_group;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;  // the handler does not return from a lane
    if (!count_++) sigaction(SIGSEGV, &action, &before_);
  }
  ~FaultWatch() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!--count_) sigaction(SIGSEGV, &before_, nullptr);
  }

 private:
  // A fault outside of lanes happens again, for who handled it before.
  static void end_group(int number, siginfo_t*, void*) {
    if (!group || !group->in_lanes) return (void)sigaction(number, &before_, nullptr);
    group->fault = "a lane reads or writes where there is no memory";
    Fiber::switch_to(group->lanes[group->running].fiber, group->outside);
  }

  inline static std::mutex mutex_;
  inline static unsigned count_ = 0;
  inline static struct sigaction before_;
};

struct Grid {
  LaunchShape shape;
  void (*body)(void*);
  void* argument;
  std::atomic<uint64_t> next{0};  // group that runs next
  std::atomic<const char*> fault{nullptr};
  uint64_t groups() const { return uint64_t(shape.groups[0]) * shape.groups[1] * shape.groups[2]; }
};

// Sets up this thread to run groups of a grid.
static Group& group_of_thread(const Grid& grid) {
  static thread_local Group own;
  Group& g = own;
  group = &g;
  g.shape = grid.shape;
  g.body = grid.body;
  g.argument = grid.argument;
  const unsigned waves = (g.shape.threads + g.shape.wave - 1) / g.shape.wave;
  set_order(g.shape.seed, g.shape.wave, &g.lane_order);
  set_order(g.shape.seed, waves, &g.wave_order);
  g.waves.clear();
  for (unsigned first = 0; first < g.shape.threads; first += g.shape.wave) {
    const unsigned size = g.shape.threads - first < g.shape.wave ? g.shape.threads - first : g.shape.wave;
    g.waves.push_back({first, size});
    g.waves.back().meeting.size = g.shape.wave;
  }
  return g;
}

// Runs the groups that are left, as one of several workers.
static void run_groups(Grid& grid) {
  Group& g = group_of_thread(grid);
  const uint64_t row = g.shape.groups[0], plane = row * g.shape.groups[1], all = grid.groups();
  for (uint64_t turn; !grid.fault && (turn = grid.next++) < all;) {
    const uint64_t i = g.shape.seed % 2 ? all - 1 - turn : turn;
    g.index[0] = unsigned(i % row);
    g.index[1] = unsigned(i % plane / row);
    g.index[2] = unsigned(i / plane);
    if (const char* fault = run_group(g)) grid.fault = fault;
  }
}

// Threads that stay, since a thread's fibers do.
class Helpers {
 public:
  ~Helpers() {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // Runs the grid on this thread and on `count` others, or on this one alone if the others are at work.
  void run(Grid& grid, unsigned count) {
    std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn || count == 0) return run_groups(grid);
    {
      std::lock_guard lock(mutex_);
      while (threads_.size() < count) threads_.emplace_back([this] { help(); });
      grid_ = &grid;
      wanted_ = count;
    }
    changed_.notify_all();
    run_groups(grid);
    std::unique_lock lock(mutex_);
    wanted_ = 0;  // whoever has not begun comes too late
    idle_.wait(lock, [&] { return working_ == 0; });
  }

 private:
  void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || wanted_ > 0; });
      if (ending_) return;
      --wanted_;
      ++working_;
      Grid& grid = *grid_;
      lock.unlock();
      run_groups(grid);
      lock.lock();
      --working_;
      idle_.notify_all();
    }
  }

  std::mutex turn_, mutex_;
  std::condition_variable changed_, idle_;
  std::vector<std::thread> threads_;
  Grid* grid_ = nullptr;
  unsigned wanted_ = 0, working_ = 0;  // helpers that shall begin, and that have
  bool ending_ = false;
};

const char* run_grid(const LaunchShape& shape, void (*body)(void*), void* argument) {
  if (shape.threads == 0 || shape.threads > kMaxThreads) return "a group has 1 to 1024 threads";
  if (shape.wave == 0 || shape.wave > kMaxWave) return "a wave has 1 to 64 lanes";
  static Helpers helpers;
  const FaultWatch watch;
  Grid grid = {shape, body, argument};
  const uint64_t most = grid.groups() - 1;
  helpers.run(grid, most < shape.workers ? unsigned(most) : shape.workers - 1);
  return grid.fault;
}

// A grid whose groups have a thread each, of which one runs at a time.
struct ResidentGrid {
  Grid& grid;
  const unsigned groups;
  const Residence residence;
  uint64_t random;
  std::mutex mutex = {};
  std::vector<std::condition_variable> turned{groups};
  std::vector<unsigned> staying = {};  // groups that have begun and not ended
  unsigned begun = 0, turn = ~0u;      // the group that runs now

  // Gives the turn to some group that stays. Groups begin where there is room.
  void pass_turn() {
    while (begun < groups && staying.size() < residence.groups) staying.push_back(begun++);
    random = random * 6364136223846793005 + 1442695040888963407;
    if (staying.empty()) return;
    turn = staying[(random >> 33) % staying.size()];
    turned[turn].notify_one();
  }
  void await_turn(std::unique_lock<std::mutex>& lock, unsigned own) {
    turned[own].wait(lock, [&] { return turn == own; });
  }
  void run_one(unsigned own) {
    std::unique_lock lock(mutex);
    await_turn(lock, own);
    if (!grid.fault) {
      lock.unlock();
      Group& g = group_of_thread(grid);
      g.resident = this;
      g.order = g.index[0] = own;
      g.index[1] = g.index[2] = 0;
      const char* const fault = run_group(g);
      lock.lock();
      if (fault && !grid.fault) grid.fault = fault;
    }
    std::erase(staying, own);
    pass_turn();
  }
};

const char* run_resident_grid(const LaunchShape& shape, const Residence& residence, void (*body)(void*),
                              void* argument) {
  const FaultWatch watch;
  Grid grid = {shape, body, argument};
  ResidentGrid all = {grid, unsigned(grid.groups()), residence, shape.seed};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < all.groups; ++i) threads.emplace_back([&all, i] { all.run_one(i); });
  {
    const std::lock_guard lock(all.mutex);
    all.pass_turn();
  }
  for (std::thread& thread : threads) thread.join();
  return grid.fault;
}

unsigned group_in_grid() { return group->order; }
const void* grid_block() { return group->resident->grid.argument; }
unsigned resident_groups() { return group->resident->groups; }
unsigned die_of_group() { return group->order % group->resident->residence.dies; }

void let_others_run() {
  Group& g = *group;
  ResidentGrid& all = *g.resident;
  std::unique_lock lock(all.mutex);
  all.pass_turn();
  all.await_turn(lock, g.order);
  if (!all.grid.fault) return;
  lock.unlock();
  g.fault = all.grid.fault;
  Fiber::switch_to(g.lanes[g.running].fiber, g.outside);
}

void all_threads_meet() { meet_threads(group->shape.threads); }

void set_group(unsigned x, unsigned y, unsigned z, unsigned threads, const void* block) {
  Group& g = *group;
  g.index[0] = x;
  g.index[1] = y;
  g.index[2] = z;
  g.body_threads = threads;
  g.argument = const_cast<void*>(block);
  if (g.running == 0 && ++g.begun % 4 == 0) let_others_run();
}

void run_body(const char* kernel) {
  Group& g = *group;
  if (kernel != g.body_name)
    g.host_body = g.resident->residence.find(kernel, g.shape.wave == 64 ? "gfx942" : "gfx1100");
  g.body_name = kernel;
  Lane& lane = g.lanes[g.running];
  if (!g.host_body) {
    g.fault = "a body has no host build";
    Fiber::switch_to(lane.fiber, g.outside);
  }
  g.host_body->run(g.argument);
  WaveOfLanes& wave = g.waves[g.running / g.shape.wave];
  lane.state = State::BodyEnded;
  wave.meeting.in[g.running - wave.first] = nullptr;
  pass_on(g, lane);
}

// What the last group does wrong, by MOCK_HIP_GRID: "stuck 3", "lost 3" or "further".
static bool is_ordered(const char* what, unsigned meeting) {
  const char* order = std::getenv("MOCK_HIP_GRID");
  if (!order || group->order + 1 != group->resident->groups) return false;
  const size_t length = std::strlen(what);
  return !std::strncmp(order, what, length) && (!meeting || unsigned(std::atoi(order + length)) == meeting);
}
bool loses_arrival(unsigned meeting) { return is_ordered("lost ", meeting); }
bool is_stuck(unsigned meeting) { return is_ordered("stuck ", meeting); }
unsigned further_stages() { return is_ordered("further", 0); }
unsigned most_polls(unsigned polls) { return std::min(polls, 3000u); }

struct ShuffleIn {
  unsigned from;
  int value;
};

static void shuffle_wave(Wave& wave) {
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
