#include "engine/serve/waiting_line.h"

#include <utility>

namespace greta {

void WaitingLine::admit_front() {
  for (std::vector<Request*>& level : levels_)
    if (!level.empty()) {
      level.erase(level.begin());
      break;
    }
  ++admissions_;
  changed_ = true;
  // Those of a level came in the order in which they stand, so the first ones have waited longest.
  for (size_t i = 1; i < kLevels; ++i)
    while (!levels_[i].empty() && admissions_ - levels_[i].front()->line_since() >= kPatience) {
      Request* request = levels_[i].front();
      levels_[i].erase(levels_[i].begin());
      request->join_line(admissions_);
      levels_[i - 1].push_back(request);
    }
}

void WaitingLine::number() {
  if (!std::exchange(changed_, false)) return;
  uint32_t before = 0;
  for (const std::vector<Request*>& level : levels_)
    for (Request* request : level) request->set_line_place(before++);
}

}  // namespace greta
