#include "engine/serve/mailbox.h"

#include <chrono>

namespace greta {

void Mailbox::put(RequestEvent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  events_.push_back(std::move(event));
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
    // A longer wait would overflow the clock.
    constexpr uint64_t kLongest = uint64_t(3600) * 1'000'000'000;
    if (timeout_ns > kLongest)
      came_.wait(lock, ready);
    else
      came_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), ready);
    if (events_.empty()) return false;
    *out = std::move(events_.front());
    events_.pop_front();
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
