#include "engine/serve/waiting_line.h"

namespace greta {

void WaitingLine::admit_front() {
  for (std::vector<Request*>& level : levels_)
    if (!level.empty()) {
      level.erase(level.begin());
      break;
    }
  ++admissions_;
  // Those of a level came in the order in which they stand, so the first ones have waited longest.
  for (size_t i = 1; i < kLevels; ++i)
    while (!levels_[i].empty() && admissions_ - levels_[i].front()->line_since() >= kPatience) {
      Request* request = levels_[i].front();
      levels_[i].erase(levels_[i].begin());
      request->join_line(admissions_);
      levels_[i - 1].push_back(request);
    }
}

}  // namespace greta
