#include "engine/serve/service.h"

namespace greta {

Service::Service(std::shared_ptr<Executor> executor, const ServiceOptions& options)
    : executor_(std::move(executor)), options_(options), scheduler_(*executor_, options.scheduler) {
  arrivals_.reserve(options.scheduler.requests);
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

Status Service::add(RequestOptions&& options, std::shared_ptr<Request>* out) {
  GRETA_TRY(process_.check());
  const ExecutorPlan& plan = executor_->plan();
  if (options.tokens.size() > uint64_t(plan.pages) * kPageTokens)
    return fail(Code::Full, "a prompt of %zu tokens, and the cache of all requests has room for %u",
                options.tokens.size(), plan.pages * kPageTokens);
  std::shared_ptr<Request> request;
  GRETA_TRY(Request::open(model(), plan.context, options_.events, bell_, std::move(options), &request));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (live_ + arrivals_.size() >= options_.scheduler.requests)
      return fail(Code::Full, "%zu requests wait or run, and the service takes no more",
                  options_.scheduler.requests);
    arrivals_.push_back(request);
  }
  bell_->ring();
  *out = std::move(request);
  return {};
}

void Service::take_arrivals() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (std::shared_ptr<Request>& request : arrivals_) scheduler_.add(std::move(request));
  arrivals_.clear();
  live_ = scheduler_.live();
  const PagePool& pages = executor_->pages();
  state_.running = scheduler_.running();
  state_.waiting = uint32_t(live_) - std::min(uint32_t(live_), state_.running);
  state_.cached_pages = scheduler_.index().idle_pages();
  state_.kept_pages = scheduler_.index().kept_pages();
  state_.free_pages = pages.free_pages();
  state_.pages = executor_->plan().pages;
  state_.counts = scheduler_.counts();
}

ServiceState Service::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ServiceState state = state_;
  state.waiting += uint32_t(arrivals_.size());
  return state;
}

Status Service::run() {
  GRETA_TRY(process_.check());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (busy_) return fail(Code::Argument, "a thread runs this service already");
    busy_ = true;
  }
  loop();
  const std::lock_guard<std::mutex> lock(mutex_);
  busy_ = false;
  return {};
}

void Service::loop() noexcept {
  while (!stop_.exchange(false)) {
    take_arrivals();
    if (!scheduler_.step()) bell_->wait();
  }
  take_arrivals();
}

void Service::stop() {
  stop_ = true;
  bell_->ring();
}

}  // namespace greta
