// Threads that start a job together. The caller is worker 0. The others wait for the next job by spinning for
// a short while, then sleep. After the pool is made it allocates and throws nothing.
//
// A pool that adapts leaves workers out of its jobs while another program has their processor (crew.h).
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "platform/threads/process.h"

namespace greta {

class ThreadPool {
 public:
  enum class Workers { All, Adapt };
  // Starts workers - 1 threads; 0 counts as 1.
  explicit ThreadPool(uint32_t workers, Workers who = Workers::All);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t workers() const { return workers_; }

  // Runs job(context, worker) once on each active worker and returns when all are done. Concurrent calls take
  // turns.
  // A child of fork() must not call it, since it has no workers.
  void run(void (*job)(void* context, uint32_t worker) noexcept, void* context);

  // Called inside a job: how many workers run it, which are 0 .. active() - 1.
  uint32_t active() const;
  // Called inside a job: every active worker waits here until all have come.
  void meet();

 private:
  struct State;
  Process process_;
  uint32_t workers_;
  bool adapts_;
  std::unique_ptr<State> state_;
};

}  // namespace greta
