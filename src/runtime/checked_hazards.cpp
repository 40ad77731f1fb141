#include "runtime/checked_hazards.h"

#include <algorithm>

namespace greta {

using Number = unsigned long long;  // for %llu

static bool overlap(const BufferUse& a, const BufferUse& b) {
  return a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

static const char* verb(const BufferUse& use) {
  return use.mode == Access::kReadWrite ? "reads and writes" : use.writes() ? "writes" : "reads";
}

Status Hazards::check(const Work& work, std::span<const BufferUse> uses) const {
  for (const BufferUse& use : uses) {
    for (const Past& past : past_) {
      if (!use.writes() && !past.use.writes()) continue;
      if (past.waited && !work.captured) continue;
      if (!overlap(use, past.use)) continue;
      return fail(Code::Device,
                  "missing barrier: %s %s bytes [%llu, %llu) of buffer %llu, %s before it %s [%llu, %llu)",
                  describe(work).text, verb(use), Number(use.offset), Number(use.offset + use.bytes),
                  Number(use.buffer->number), describe(past.work).text, verb(past.use),
                  Number(past.use.offset), Number(past.use.offset + past.use.bytes));
    }
  }
  return {};
}

void Hazards::add(const Work& work, std::span<const BufferUse> uses) {
  for (const BufferUse& use : uses) past_.push_back({work, use});
}

void Hazards::waited() {
  std::erase_if(past_, [](const Past& past) { return !past.work.captured; });
  for (Past& past : past_) past.waited = true;
}

}  // namespace greta
