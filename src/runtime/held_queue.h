// Holds work back until what it waits for was given to the driver. In some drivers nothing overtakes a batch
// that waits; in others a wait concerns the last signal that the driver has seen. So batches of all streams
// go through one queue of the device, which gives them on in an order in which none waits for a later one.
//
// A backend derives its queue from this and gives the driver what take_ready() returns. Its types have these
// members:
//   Batch     Point done, reached at its end; std::vector<Point> waits, reached before it begins
//   Point     std::shared_ptr<Timeline> timeline; uint64_t value
//   Timeline  those of StreamProgress
//   Event     Point last, of the last signal that was recorded
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "platform/platform.h"

namespace greta {

// How far a stream has come. It is guarded by the mutex of the device's queue.
struct StreamProgress {
  uint64_t given = 0;      // the highest value of a batch that the stream gave to the queue
  uint64_t submitted = 0;  // the highest value that was given to the driver
  bool closed = false;     // the Stream is gone, so what was not submitted will never come
  std::thread::id owner_thread;
};

template <class Batch>
class HeldQueue {
 public:
  using Point = decltype(Batch::done);
  using Timeline = typename decltype(Point::timeline)::element_type;

  template <class Event>
  void set_event(Event& event, const Point& point) {
    const std::lock_guard<std::mutex> lock(mutex_);
    event.last = point;
  }
  template <class Event>
  Point event_point(const Event& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return event.last;
  }

 protected:
  // These four are called with the mutex locked.

  size_t held() const { return held_.size(); }
  // Takes a stream's batches, and leaves `batches` empty.
  void hold(std::vector<Batch>& batches) {
    const size_t before = held_.size();
    held_.insert(held_.end(), std::make_move_iterator(batches.begin()),
                 std::make_move_iterator(batches.end()));
    for (size_t i = before; i < held_.size(); ++i) held_[i].done.timeline->given = held_[i].done.value;
    batches.clear();
  }
  // The first batch whose signals were all given to the driver. It counts as given from now on, so that
  // others may follow it.
  std::optional<Batch> take_ready() {
    for (auto batch = held_.begin(); batch != held_.end(); ++batch) {
      const auto is_of_its_stream = [&](const Batch& other) {
        return other.done.timeline == batch->done.timeline;
      };
      if (std::any_of(held_.begin(), batch, is_of_its_stream) ||
          !std::all_of(batch->waits.begin(), batch->waits.end(), is_submitted))
        continue;
      std::optional<Batch> ready(std::move(*batch));
      held_.erase(batch);
      ready->done.timeline->submitted = ready->done.value;
      return ready;
    }
    return {};
  }
  // Drops what is held back of a stream that ends. Others wait for it no more.
  void forget(Timeline& timeline) {
    std::erase_if(held_, [&](const Batch& batch) { return batch.done.timeline.get() == &timeline; });
    timeline.closed = true;
  }

  uint64_t submitted_by(const Timeline& timeline) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return timeline.submitted;
  }
  // Waits until the point's batch was given to the driver, or will never be since its stream was closed.
  // `usable` tells whether the device still is.
  template <class Usable>
  Status wait_submitted(const Point& point, Usable usable) {
    constexpr uint64_t kPatienceNs = 60'000'000'000;  // for a signal that nobody submits
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t deadline = now_ns() + kPatienceNs;
    while (!is_submitted(point)) {
      if (waits_for_own_thread(*point.timeline))
        return fail(Code::Argument,
                    "wait: for an event whose signal this thread recorded but did not submit");
      if (now_ns() > deadline)
        return fail(Code::Device, "wait: no event of another stream came for %llu s",
                    (unsigned long long)(kPatienceNs / 1'000'000'000));
      changed_->wait_for(lock, std::chrono::milliseconds(100));
      GRETA_TRY(usable());
    }
    return {};
  }

  std::mutex mutex_;
  Unforked<std::condition_variable> changed_;  // batches were given to the driver, or a stream was closed

 private:
  static bool is_submitted(const Point& point) {
    return point.timeline->submitted >= point.value || point.timeline->closed;
  }
  // Whether a held batch of `timeline` waits for what this thread has not submitted.
  bool waits_for_own_thread(const Timeline& timeline) const {
    const auto is_own = [](const Point& wait) {
      return wait.timeline->given < wait.value && !wait.timeline->closed &&
             wait.timeline->owner_thread == std::this_thread::get_id();
    };
    return std::ranges::any_of(held_, [&](const Batch& batch) {
      return batch.done.timeline.get() == &timeline && std::ranges::any_of(batch.waits, is_own);
    });
  }

  std::deque<Batch> held_;  // batches that were given but not submitted, in order
};

}  // namespace greta
