// Threads that start a job together. The caller is worker 0; the others spin a little for the
// next job, then sleep. Nothing is allocated and nothing thrown after the pool is made.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "platform/process.h"

namespace greta {

class ThreadPool {
 public:
  explicit ThreadPool(uint32_t workers);  // at least 1; starts workers - 1 threads
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t workers() const { return workers_; }

  // Runs job(context, worker) once on each worker and returns when all are done. One caller at a
  // time: concurrent calls take turns. Not in a child of fork(), which has no workers.
  void run(void (*job)(void* context, uint32_t worker) noexcept, void* context);

  // Inside a job: every worker waits here until all have come. Spins, then yields.
  void meet();

 private:
  struct State;
  Process process_;
  uint32_t workers_;
  std::unique_ptr<State> state_;
};

}  // namespace greta
