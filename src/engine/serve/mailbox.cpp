#include "engine/serve/mailbox.h"

#include <chrono>

namespace greta {

void Mailbox::put(RequestEvent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  events_.push_back(std::move(event));
  if (events_.size() == capacity_ / 2 + 1) crowded_since_ns_ = now_ns();
  came_.notify_all();
}

void Mailbox::end(const RequestResult& result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  result_ = result;
  ended_ = true;
  came_.notify_all();
}

bool Mailbox::take(uint64_t timeout_ns, RequestEvent* out) {
  bool waited_for = false;  // the writer may wait for this
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto ready = [&] { return ended_ || !events_.empty(); };
    const Cancellable cancellable;
    using Clock = std::chrono::steady_clock;
    const Clock::time_point now = Clock::now();
    // A time beyond the end of the clock does not come.
    if (timeout_ns > uint64_t(std::chrono::nanoseconds(Clock::time_point::max() - now).count()))
      came_.wait(lock, ready);
    else
      came_.wait_until(lock, now + std::chrono::nanoseconds(timeout_ns), ready);
    if (events_.empty()) return false;
    *out = std::move(events_.front());
    events_.pop_front();
    crowded_since_ns_ = now_ns();
    waited_for = events_.size() + 1 == capacity_ || events_.size() == capacity_ / 2;
  }
  if (waited_for) writer_->ring();
  return true;
}

bool Mailbox::ended(RequestResult* out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!ended_ || !events_.empty()) return false;
  *out = result_;
  return true;
}

}  // namespace greta
