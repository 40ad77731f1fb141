// How many of a pool's workers run its jobs. All workers of a job wait for its slowest. One whose processor
// another program has for half of the time halves the speed of all; without it the rest are faster.
#pragma once
#include <algorithm>
#include <cstdint>

namespace greta {

class Crew {
 public:
  explicit Crew(uint32_t workers) : workers_(workers), count_(workers) {}

  uint32_t count() const { return count_; }

  // How much of a wait for another worker counts. Another program that has a worker's processor keeps it for
  // a time slice, which is some milliseconds. Workers that share theirs with nobody wait for less.
  static uint64_t held_up_ns(uint64_t waited_ns) { return waited_ns < kTimeSliceNs ? 0 : waited_ns; }

  // A job ended at `now_ns` after `took_ns`, and each worker but the slowest waited for others for
  // `waited_ns` of these.
  void note(uint64_t now_ns, uint64_t took_ns, uint64_t waited_ns) {
    took_ns_ += took_ns;
    waited_ns_ += waited_ns;
    if (took_ns_ < kWindowNs) return;
    // Alone, the others would take (1 - waited) * count / (count - 1) of the time, if no memory held them up.
    const double waited = double(waited_ns_) / double(took_ns_);
    held_up_ = waited > std::max(kShare / count_, kLeastWait) ? held_up_ + 1 : 0;
    took_ns_ = waited_ns_ = 0;
    if (held_up_ >= (tries_ ? 1 : kWindows) && count_ > 1) {
      rest_ns_ = tries_ ? std::min(2 * rest_ns_, kMostRestNs) : kRestNs;
      take(count_ - 1, now_ns, rest_ns_, false);
    } else if (count_ < workers_ && now_ns >= next_try_ns_) {
      take(count_ + 1, now_ns, kRestNs, true);
    } else {
      tries_ = false;
    }
  }

 private:
  static constexpr uint64_t kWindowNs = 20'000'000;  // of jobs, for each decision
  static constexpr uint64_t kTimeSliceNs = 500'000;
  static constexpr uint32_t kWindows = 3;  // in a row, since a quiet machine has single ones, too
  static constexpr uint64_t kRestNs = 250'000'000, kMostRestNs = 4'000'000'000;  // until one more is tried
  // Of a worker's share of the time. Less than 1, since what the workers wait for is memory in part, of which
  // fewer of them get as much.
  static constexpr double kShare = 0.7;
  // One of many workers is a small share. Less waiting than this is nobody's fault: tenants of the host, say.
  static constexpr double kLeastWait = 0.2;

  void take(uint32_t count, uint64_t now_ns, uint64_t rest_ns, bool tries) {
    count_ = count;
    next_try_ns_ = now_ns + rest_ns;
    tries_ = tries;
    held_up_ = 0;
  }

  uint32_t workers_, count_;
  uint64_t took_ns_ = 0, waited_ns_ = 0;  // of the jobs since the last decision
  uint64_t next_try_ns_ = 0, rest_ns_ = kRestNs;
  uint32_t held_up_ = 0;  // windows in a row
  bool tries_ = false;    // the last decision was to try one more
};

}  // namespace greta
