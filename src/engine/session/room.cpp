// What may leave a full context.
#include "engine/session/session.h"

namespace greta {

Status forget_half(std::span<const int32_t> held, uint32_t keep, std::vector<int32_t>* instead) {
  instead->clear();
  if (keep >= held.size()) return {};
  const size_t leave = (held.size() - keep) / 2;
  if (leave == 0) return {};
  instead->assign(held.begin(), held.begin() + keep);
  instead->insert(instead->end(), held.begin() + std::ptrdiff_t(keep + leave), held.end());
  return {};
}

}  // namespace greta
