// A service answers many requests on one executor. Requests are added and read from any thread; one thread
// runs the steps: the host's, which calls run(), or one that the service makes.
#pragma once
#include <pthread.h>

#include <functional>

#include "engine/serve/scheduler.h"

namespace greta {

struct ServiceOptions {
  SchedulerOptions scheduler;
  PlaceLimits places;  // `all` is scheduler.requests
  size_t events = 64;  // that a request may have unread until it pauses
  Wake wake;           // of each request, which has a request_user of its own
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

  // A place for a request, which is taken before its options are read.
  Status take_place(uint64_t salt, std::unique_ptr<Places::Place>* out) { return places_->take(salt, out); }
  Status add(RequestOptions&& options, std::unique_ptr<Places::Place> place, std::shared_ptr<Request>* out);
  Status run();  // until stop(), on the calling thread, after a thread that was told to stop
  void stop();   // run() returns after the step under way; requests stay as they are
  ServiceState state();
  // How many tokens of a prompt the prefix cache has. It waits for the step under way.
  uint32_t cached_tokens(const RequestOptions& options);
  // Forgets a text's pages of the prefix cache. Gives for how many tokens. It waits for the step under way.
  Status forget(uint64_t salt, std::span<const int32_t> tokens, uint32_t* out_tokens);
  const Model& model() const { return executor_->model(); }

 private:
  Service(std::shared_ptr<Executor> executor, const ServiceOptions& options);
  Status start_thread();
  void sort_out_cancelled(std::vector<std::shared_ptr<Request>>* out);
  void end_cancelled(std::vector<std::shared_ptr<Request>>* requests);
  struct Question {
    const std::function<void()>& work;
    bool answered = false;
  };
  void between_steps(const std::function<void()>& work);
  void take_arrivals();
  void hand_over();
  void loop();
  void end_run();

  const Process process_;
  const std::shared_ptr<Executor> executor_;
  const ServiceOptions options_;
  const std::shared_ptr<Doorbell> bell_ = std::make_shared<Doorbell>();
  const std::shared_ptr<Places> places_;
  std::mutex mutex_;  // for what follows
  std::condition_variable idle_;
  std::vector<std::shared_ptr<Request>> arrivals_;
  std::vector<Question*> questions_;  // answered by the thread that runs it
  ServiceState state_;
  SchedulerCounts never_scheduled_;  // of requests that have ended before the scheduler knew them
  bool busy_ = false;                // a thread runs it
  bool stop_ = false;                // and shall end, or the next one shall
  Scheduler scheduler_;              // of the thread that runs it, like what follows
  std::vector<std::shared_ptr<Request>> cancelled_;
  bool has_thread_ = false;
  pthread_t thread_ = {};
};

}  // namespace greta
