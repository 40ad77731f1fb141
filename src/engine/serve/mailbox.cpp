#include "engine/serve/mailbox.h"

#include <cxxabi.h>

#include <chrono>
#include <utility>

namespace greta {

void Mailbox::put(RequestEvent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool first = events_.empty();
  untold_ |= first;
  using Kind = RequestEvent::Kind;
  if (!first && event.kind == Kind::Progress && events_.back().kind == Kind::Progress) events_.pop_back();
  events_.push(std::move(event));
  unread_.store(events_.size(), std::memory_order_relaxed);
  if (events_.size() == capacity_ / 2 + 1) crowded_since_ns_ = now_ns();
  came_.notify_all();
}

void Mailbox::tell() {
  if (std::exchange(untold_, false)) call_wake();
}

void Mailbox::end(const RequestResult& result) {
  bool all_read = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_read = events_.empty();
    result_ = result;
    ended_ = true;
    came_.notify_all();
  }
  untold_ |= all_read;
  tell();
}

// An exception would end somebody else's work, so it is ignored.
void Mailbox::call_wake() {
  if (!wake_.call) return;
  const std::lock_guard<std::recursive_mutex> lock(wake_mutex_);
  if (silent_) return;
  try {
    wake_.call(wake_.user, wake_.request_user);
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
  }
}

void Mailbox::silence() {
  const std::lock_guard<std::recursive_mutex> lock(wake_mutex_);
  silent_ = true;
}

void Mailbox::wait(std::unique_lock<std::mutex>& lock, uint64_t timeout_ns) {
  const auto ready = [&] { return ended_ || !events_.empty(); };
  const Cancellable cancellable;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point now = Clock::now();
  // A time beyond the end of the clock does not come.
  if (timeout_ns > uint64_t(std::chrono::nanoseconds(Clock::time_point::max() - now).count()))
    came_.wait(lock, ready);
  else
    came_.wait_until(lock, now + std::chrono::nanoseconds(timeout_ns), ready);
}

bool Mailbox::take(uint64_t timeout_ns, RequestEvent* out, uint32_t* unread) {
  bool waited_for = false;  // the writer may wait for this
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (timeout_ns) wait(lock, timeout_ns);  // who only looks is spared the system's clock and its sleep
    if (events_.empty()) return false;
    events_.pop(out);
    unread_.store(events_.size(), std::memory_order_relaxed);
    if (unread) *unread = uint32_t(events_.size()) + ended_;
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
