// A service answers many requests on one executor. Requests are added and read from any thread; one thread
// runs the steps: the host's, which calls run(), or one that the service makes.
#pragma once
#include <pthread.h>

#include "engine/serve/scheduler.h"

namespace greta {

struct ServiceOptions {
  SchedulerOptions scheduler;
  size_t events = 64;  // that a request may have unread until it pauses
  bool own_thread = false;
};

struct ServiceState {
  uint32_t waiting = 0, running = 0;
  uint32_t cached_pages = 0, kept_pages = 0, free_pages = 0, pages = 0;
  SchedulerCounts counts;
};

class Service {
 public:
  static Status open(std::shared_ptr<Executor> executor, const ServiceOptions& options,
                     std::unique_ptr<Service>* out);
  // Ends every request that has not ended as cancelled. A child of fork() must not call it.
  ~Service();

  Status add(RequestOptions&& options, std::shared_ptr<Request>* out);
  Status run();  // until stop(), on the calling thread
  void stop();   // run() returns after the step under way; requests stay as they are
  ServiceState state();
  const Model& model() const { return executor_->model(); }

 private:
  Service(std::shared_ptr<Executor> executor, const ServiceOptions& options);
  Status start_thread();
  void take_arrivals();
  void loop() noexcept;

  const Process process_;
  const std::shared_ptr<Executor> executor_;
  const ServiceOptions options_;
  const std::shared_ptr<Doorbell> bell_ = std::make_shared<Doorbell>();
  std::mutex mutex_;  // for what follows
  std::vector<std::shared_ptr<Request>> arrivals_;
  ServiceState state_;
  bool busy_ = false;  // a thread runs it
  size_t live_ = 0;    // requests of the scheduler
  std::atomic<bool> stop_ = false;
  Scheduler scheduler_;  // of the thread that runs it
  bool has_thread_ = false;
  pthread_t thread_ = {};
};

}  // namespace greta
