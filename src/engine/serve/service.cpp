#include "engine/serve/service.h"

namespace greta {

Service::Service(std::shared_ptr<Executor> executor, const ServiceOptions& options)
    : executor_(std::move(executor)),
      options_(options),
      places_(std::make_shared<Places>(options.places)),
      scheduler_(*executor_, options.scheduler) {
  for (auto* list : {&arrivals_, &cancelled_}) list->reserve(options.scheduler.requests);
}

Status Service::open(std::shared_ptr<Executor> executor, const ServiceOptions& options,
                     std::unique_ptr<Service>* out) {
  std::unique_ptr<Service> service(new Service(std::move(executor), options));
  if (options.own_thread) GRETA_TRY(service->start_thread());
  *out = std::move(service);
  return {};
}

Status Service::start_thread() {
  const HiddenSignals hidden;
  const auto start = [](void* self) noexcept -> void* {
    static_cast<Service*>(self)->loop();
    static_cast<Service*>(self)->end_run();
    return nullptr;
  };
  busy_ = has_thread_ = pthread_create(&thread_, nullptr, start, this) == 0;
  if (!has_thread_)
    return fail(Code::Memory, "the system gives no thread: run the service on one of the program's");
  pthread_setname_np(thread_, "greta-serve");
  return {};
}

Service::~Service() {
  stop();
  if (has_thread_) pthread_join(thread_, nullptr);
  take_arrivals();
  scheduler_.end_all();
}

Status Service::add(RequestOptions&& options, std::unique_ptr<Places::Place> place,
                    std::shared_ptr<Request>* out) {
  GRETA_TRY(process_.check());
  const ExecutorPlan& plan = executor_->plan();
  const uint64_t room = uint64_t(plan.pages) * kPageTokens;
  if (options.tokens.size() > room)
    return with_numbers(
        fail(Code::Full, "a prompt of %zu tokens, and the cache of all requests has room for %llu",
             options.tokens.size(), static_cast<unsigned long long>(room)),
        {options.tokens.size(), room});
  options.wake.call = options_.wake.call;
  options.wake.user = options_.wake.user;
  std::shared_ptr<Request> request;
  GRETA_TRY(Request::open(model(), plan.context, options_.events, bell_, std::move(options), &request));
  request->hold(std::move(place));
  std::vector<std::shared_ptr<Request>> cancelled;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (arrivals_.size() == options_.scheduler.requests) {  // no thread takes them, and some are cancelled
      cancelled.reserve(arrivals_.size());
      sort_out_cancelled(&cancelled);
    }
    request->set_line_place(state_.waiting + uint32_t(arrivals_.size()));  // until it joins the line
    arrivals_.push_back(request);
  }
  end_cancelled(&cancelled);
  bell_->ring();
  *out = std::move(request);
  return {};
}

// Those hold no place, so they are beside the requests that the scheduler has room for.
void Service::sort_out_cancelled(std::vector<std::shared_ptr<Request>>* out) {
  std::erase_if(arrivals_, [&](std::shared_ptr<Request>& request) {
    if (!request->ends_soon()) return false;
    out->push_back(std::move(request));  // it has room
    return true;
  });
}

// Their readers are told, so no lock is held.
void Service::end_cancelled(std::vector<std::shared_ptr<Request>>* requests) {
  for (const std::shared_ptr<Request>& request : *requests) {
    const Status status = guarded([&] { return request->end(request->ends_for()); });
    if (!status.ok()) request->fail(status);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      never_scheduled_.note_end(*request);
    }
    request->announce();
  }
  requests->clear();
}

void Service::take_arrivals() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    sort_out_cancelled(&cancelled_);
    hand_over();
  }
  end_cancelled(&cancelled_);
}

// Where the scheduler is full for a moment, some of its requests are cancelled and leave with its next step.
void Service::hand_over() {
  for (Question* question : questions_) {
    question->work();
    question->answered = true;
  }
  if (!questions_.empty()) idle_.notify_all();
  questions_.clear();
  const size_t taken = std::min(arrivals_.size(), options_.scheduler.requests - scheduler_.live());
  for (size_t i = 0; i < taken; ++i) scheduler_.add(std::move(arrivals_[i]));
  arrivals_.erase(arrivals_.begin(), arrivals_.begin() + std::ptrdiff_t(taken));
  const uint32_t live = uint32_t(scheduler_.live());
  const PagePool& pages = executor_->pages();
  state_.running = scheduler_.running();
  state_.waiting = live - std::min(live, state_.running);
  state_.cached_pages = scheduler_.index().idle_pages();
  state_.kept_pages = scheduler_.index().kept_pages();
  state_.free_pages = pages.free_pages();
  state_.pages = executor_->plan().pages;
  state_.counts = scheduler_.counts();
}

// Where nothing runs the service, nothing changes its cache while the lock is held.
void Service::between_steps(const std::function<void()>& work) {
  Question question{work};
  std::unique_lock<std::mutex> lock(mutex_);
  if (busy_) {
    questions_.push_back(&question);
    bell_->ring();
    idle_.wait(lock, [&] { return question.answered || !busy_; });
    std::erase(questions_, &question);
  }
  if (!question.answered) work();
}

uint32_t Service::cached_tokens(const RequestOptions& options) {
  const std::span<const int32_t> tokens = options.tokens;
  if (options.state) return uint32_t(std::min(options.state->tokens.size(), tokens.size() - 1));
  uint32_t cached = 0;
  if (Request::adopts(options))
    between_steps([&] { cached = scheduler_.cached_tokens(options.cache_salt(), tokens); });
  return cached;
}

Status Service::forget(uint64_t salt, std::span<const int32_t> tokens, uint32_t* out_tokens) {
  Status status;
  between_steps(
      [&] { status = guarded([&] { return *out_tokens = scheduler_.forget(salt, tokens), Status{}; }); });
  return status;
}

ServiceState Service::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ServiceState state = state_;
  state.waiting += uint32_t(arrivals_.size());
  const SchedulerCounts& more = never_scheduled_;
  for (size_t i = 0; i < kStopReasons; ++i) state.counts.ended[i] += more.ended[i];
  state.counts.failed += more.failed;
  state.counts.prompt_tokens += more.prompt_tokens;
  state.counts.generated_tokens += more.generated_tokens;
  return state;
}

Status Service::run() {
  GRETA_TRY(process_.check());
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const Cancellable cancellable;
    while (busy_) {
      if (!stop_) return fail(Code::Argument, "a thread runs this service already");
      idle_.wait(lock);
    }
    busy_ = true;
  }
  struct End {  // also where the thread is cancelled
    Service& service;
    ~End() { service.end_run(); }
  } end{*this};
  loop();
  return {};
}

void Service::end_run() {
  const std::lock_guard<std::mutex> lock(mutex_);
  busy_ = stop_ = false;
  idle_.notify_all();
}

void Service::loop() {
  const auto stopped = [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stop_;
  };
  while (!stopped()) {
    take_arrivals();
    if (!scheduler_.step()) bell_->wait();
  }
  take_arrivals();
}

void Service::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  bell_->ring();
}

}  // namespace greta
