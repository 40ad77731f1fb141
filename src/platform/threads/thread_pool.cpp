#include "platform/threads/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "platform/machine/cpu_features.h"
#include "platform/threads/fair_mutex.h"
#include "platform/threads/hidden_signals.h"

namespace greta {

// A pause takes 40 to 140 cycles, so a worker looks for the next job for about 50 us before it sleeps. That
// is longer than the gap between two steps, and short enough not to use up a CPU quota.
constexpr uint32_t kIdleSpins = 2000;
// The worker that is waited for comes soon, unless another process runs on its processor. Then yielding early
// is what brings it back: on two busy cores 500 was more than a half faster than 4000.
constexpr uint32_t kMeetSpins = 500;

static void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits until done(): it spins at most `spins` times, then yields the processor between looks.
template <class Done>
static void spin_then_yield(uint32_t spins, Done done) {
  for (uint32_t i = 0; i < spins; ++i) {
    if (done()) return;
    pause_briefly();
  }
  while (!done()) std::this_thread::yield();
}

struct ThreadPool::State {
  FairMutex turn;  // held by the caller of run()

  // The job is written by the caller before `generation` grows and read by workers after that.
  void (*job)(void* context, uint32_t worker) noexcept = nullptr;
  void* context = nullptr;
  bool stop = false;

  uint32_t workers = 1, idle_spins = 0, meet_spins = 0;
  // POSIX's threads, since a std::thread that is not joined would end the process.
  struct Worker {
    State* state;
    uint32_t number;
    pthread_t thread;
    static void* start(void* self) noexcept {
      static_cast<Worker*>(self)->state->work(static_cast<Worker*>(self)->number);
      return nullptr;
    }
  };
  std::vector<Worker> threads;  // [workers - 1]

  // Different workers use these all the time, so each has a cache line of its own.
  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<uint32_t> running{0};
  alignas(64) std::atomic<uint32_t> arrived{0};
  alignas(64) std::atomic<uint32_t> phase{0};

  alignas(64) std::atomic<uint32_t> sleepers{0};
  std::mutex sleep;
  std::condition_variable wake;

  void start_job();
  void await_job(uint32_t seen);
  void work(uint32_t worker) noexcept;
};

// A worker counts itself as a sleeper before it looks at `generation` for the last time, and the caller grows
// `generation` before it looks for sleepers. Both are sequentially consistent, so one of them sees the other.
void ThreadPool::State::start_job() {
  running.store(workers - 1, std::memory_order_relaxed);
  generation.fetch_add(1);
  if (!sleepers.load()) return;
  {
    const std::lock_guard<std::mutex> lock(sleep);
  }
  wake.notify_all();
}

void ThreadPool::State::await_job(uint32_t seen) {
  for (uint32_t i = 0; i < idle_spins; ++i) {
    if (generation.load(std::memory_order_acquire) != seen) return;
    pause_briefly();
  }
  std::unique_lock<std::mutex> lock(sleep);
  sleepers.fetch_add(1);
  wake.wait(lock, [&] { return generation.load() != seen; });
  sleepers.fetch_sub(1);
}

void ThreadPool::State::work(uint32_t worker) noexcept {
  for (uint32_t seen = 0;; ++seen) {
    await_job(seen);
    if (stop) return;
    job(context, worker);
    running.fetch_sub(1, std::memory_order_release);
  }
}

ThreadPool::ThreadPool(uint32_t workers) : workers_(1), state_(std::make_unique<State>()) {
  workers = std::max(workers, 1u);
  State& state = *state_;
  // With more workers than processors, a spinning worker only keeps the one that it waits for from running.
  const bool crowded = workers > cpu_count();
  state.idle_spins = crowded ? 1 : kIdleSpins;
  state.meet_spins = crowded ? 1 : kMeetSpins;
  state.threads.resize(workers - 1);

  const HiddenSignals hidden;
  while (workers_ < workers) {
    // If the system refuses another thread, the pool has fewer workers, and workers() says how many.
    State::Worker& worker = state.threads[workers_ - 1];
    worker.state = &state;
    worker.number = workers_;
    if (pthread_create(&worker.thread, nullptr, State::Worker::start, &worker) != 0) break;
    pthread_setname_np(worker.thread, "greta");
    ++workers_;
  }
  state.workers = workers_;
}

ThreadPool::~ThreadPool() {
  if (process_.elsewhere()) {  // the threads are the parent's, and joining them would wait for ever
    (void)state_.release();
    return;
  }
  state_->stop = true;
  state_->start_job();
  for (uint32_t i = 1; i < workers_; ++i) pthread_join(state_->threads[i - 1].thread, nullptr);
}

void ThreadPool::run(void (*job)(void* context, uint32_t worker) noexcept, void* context) {
  State& state = *state_;
  const std::lock_guard<FairMutex> turn(state.turn);
  if (workers_ == 1) return job(context, 0);
  state.job = job;
  state.context = context;
  state.start_job();
  job(context, 0);
  spin_then_yield(state.meet_spins, [&] { return state.running.load(std::memory_order_acquire) == 0; });
}

void ThreadPool::meet() {
  if (workers_ == 1) return;
  State& state = *state_;
  const uint32_t phase = state.phase.load(std::memory_order_acquire);
  if (state.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == workers_) {
    state.arrived.store(0, std::memory_order_relaxed);
    state.phase.store(phase + 1, std::memory_order_release);
    return;
  }
  spin_then_yield(state.meet_spins, [&] { return state.phase.load(std::memory_order_acquire) != phase; });
}

}  // namespace greta
