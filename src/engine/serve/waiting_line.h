// The order in which requests are admitted. Within a priority nobody is overtaken. A request of a lower
// priority moves up one level, behind those who are there, after kPatience admissions; so none waits for
// ever.
#pragma once
#include "engine/serve/request.h"

namespace greta {

class WaitingLine {
 public:
  static constexpr uint64_t kPatience = 16;
  static constexpr uint32_t kLevels = 2 * kMaxPriority + 1;

  explicit WaitingLine(size_t capacity) {
    for (std::vector<Request*>& level : levels_) level.reserve(capacity);
  }

  void add(Request* request) {
    request->join_line(admissions_);
    levels_[level_of(*request)].push_back(request);
    changed_ = true;
  }
  // Puts a request that was admitted before in front of its priority.
  void put_back(Request* request) {
    std::vector<Request*>& level = levels_[level_of(*request)];
    level.insert(level.begin(), request);
    changed_ = true;
  }
  Request* front() const {  // who is admitted next; null: nobody waits
    for (const std::vector<Request*>& level : levels_)
      if (!level.empty()) return level.front();
    return nullptr;
  }
  void admit_front();
  template <class Gone>
  void remove_if(Gone gone) {
    for (std::vector<Request*>& level : levels_) changed_ |= std::erase_if(level, gone) > 0;
  }
  void number();  // tells each request how many are before it
  size_t size() const {
    size_t all = 0;
    for (const std::vector<Request*>& level : levels_) all += level.size();
    return all;
  }

 private:
  static size_t level_of(const Request& request) { return size_t(kMaxPriority - request.options().priority); }

  std::vector<Request*> levels_[kLevels];  // the highest priority first; with capacity for all requests
  uint64_t admissions_ = 0;
  bool changed_ = false;  // since number()
};

}  // namespace greta
