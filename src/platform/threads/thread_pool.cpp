#include "platform/threads/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "platform/machine/cpu_features.h"
#include "platform/threads/clock.h"
#include "platform/threads/crew.h"
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

// Waits until done(): it spins at most `spins` times, then yields the processor between looks. Adds how long
// it did that, as far as it was held up.
template <class Done>
static void spin_then_yield(uint32_t spins, std::atomic<uint64_t>* held_up_ns, Done done) {
  for (uint32_t i = 0; i < spins; ++i) {
    if (done()) return;
    pause_briefly();
  }
  const uint64_t begin = now_ns();
  while (!done()) std::this_thread::yield();
  held_up_ns->fetch_add(Crew::held_up_ns(now_ns() - begin), std::memory_order_relaxed);
}

struct ThreadPool::State {
  FairMutex turn;  // held by the caller of run()

  // The job is written by the caller before it is posted. Only its workers read it after that.
  void (*job)(void* context, uint32_t worker) noexcept = nullptr;
  void* context = nullptr;
  bool stop = false;
  uint32_t active = 1;
  Crew crew{1};

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
  alignas(64) std::atomic<uint64_t> posted{0};  // the number of the job << 32 | how many workers run it
  alignas(64) std::atomic<uint32_t> running{0};
  alignas(64) std::atomic<uint32_t> arrived{0};
  alignas(64) std::atomic<uint32_t> phase{0};

  alignas(64) std::atomic<uint64_t> held_up_ns{0};  // of all workers in this job
  alignas(64) std::atomic<uint32_t> sleepers{0};
  std::mutex sleep;
  std::condition_variable wake;

  void start_job(uint32_t on);
  uint64_t await_job(uint64_t seen);
  void work(uint32_t worker) noexcept;
};

// A worker counts itself as a sleeper before it looks at `posted` for the last time, and the caller changes
// `posted` before it looks for sleepers. Both are sequentially consistent, so one of them sees the other.
void ThreadPool::State::start_job(uint32_t on) {
  active = on;
  running.store(on - 1, std::memory_order_relaxed);
  posted.store(((posted.load(std::memory_order_relaxed) >> 32) + 1) << 32 | on);
  if (!sleepers.load()) return;
  {
    const std::lock_guard<std::mutex> lock(sleep);
  }
  wake.notify_all();
}

// The next value of `posted`.
uint64_t ThreadPool::State::await_job(uint64_t seen) {
  uint64_t now = seen;
  for (uint32_t i = 0; i < idle_spins; ++i) {
    now = posted.load(std::memory_order_acquire);
    if (now != seen) return now;
    pause_briefly();
  }
  std::unique_lock<std::mutex> lock(sleep);
  sleepers.fetch_add(1);
  wake.wait(lock, [&] { return (now = posted.load()) != seen; });
  sleepers.fetch_sub(1);
  return now;
}

void ThreadPool::State::work(uint32_t worker) noexcept {
  for (uint64_t seen = 0;;) {
    seen = await_job(seen);
    if (worker >= uint32_t(seen)) continue;  // The job is for others, and may have changed already.
    if (stop) return;
    job(context, worker);
    running.fetch_sub(1, std::memory_order_release);
  }
}

ThreadPool::ThreadPool(uint32_t workers, Workers who)
    : workers_(1), adapts_(who == Workers::Adapt), state_(std::make_unique<State>()) {
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
  state.crew = Crew(workers_);
}

ThreadPool::~ThreadPool() {
  if (process_.elsewhere()) {  // the threads are the parent's, and joining them would wait for ever
    (void)state_.release();
    return;
  }
  state_->stop = true;
  state_->start_job(workers_);
  for (uint32_t i = 1; i < workers_; ++i) pthread_join(state_->threads[i - 1].thread, nullptr);
}

void ThreadPool::run(void (*job)(void* context, uint32_t worker) noexcept, void* context) {
  State& state = *state_;
  const std::lock_guard<FairMutex> turn(state.turn);
  if (workers_ == 1) return job(context, 0);
  const uint32_t active = adapts_ ? state.crew.count() : workers_;
  const uint64_t begin = adapts_ ? now_ns() : 0;
  state.job = job;
  state.context = context;
  state.held_up_ns.store(0, std::memory_order_relaxed);
  if (active == 1)
    state.active = 1;
  else
    state.start_job(active);
  job(context, 0);
  if (active > 1)
    spin_then_yield(state.meet_spins, &state.held_up_ns,
                    [&] { return state.running.load(std::memory_order_acquire) == 0; });
  if (!adapts_) return;
  const uint64_t end = now_ns(), held_up = state.held_up_ns.load(std::memory_order_relaxed);
  state.crew.note(end, end - begin, held_up / std::max(active - 1, 1u));
}

uint32_t ThreadPool::active() const { return state_->active; }

void ThreadPool::meet() {
  State& state = *state_;
  if (state.active == 1) return;
  const uint32_t phase = state.phase.load(std::memory_order_acquire);
  if (state.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == state.active) {
    state.arrived.store(0, std::memory_order_relaxed);
    state.phase.store(phase + 1, std::memory_order_release);
    return;
  }
  spin_then_yield(state.meet_spins, &state.held_up_ns,
                  [&] { return state.phase.load(std::memory_order_acquire) != phase; });
}

}  // namespace greta
