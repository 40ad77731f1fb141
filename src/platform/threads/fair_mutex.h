// A mutex that threads get in the order in which they asked for it. std::mutex lets a thread that gives it
// back and asks again overtake those that sleep.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace greta {

class FairMutex {
 public:
  void lock() {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t number = asked_++;
    turn_.wait(lock, [&] { return served_ == number; });
  }
  void unlock() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (++served_ != asked_) turn_.notify_all();  // few wait: the threads that run executors
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  uint64_t asked_ = 0, served_ = 0;
};

}  // namespace greta
