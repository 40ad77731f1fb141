#include "engine/serve/host_pages.h"

namespace greta {

Status HostPages::allocate(uint32_t slot) {
  if (slots_[slot].buffer().bytes) return {};
  return slots_[slot].allocate(executor_.model().first_device(), executor_.page_bytes(), Memory::Readback);
}

Status HostPages::keep(const Executor::CachePage& page, uint32_t slot) {
  return guarded([&]() -> Status {
    GRETA_TRY(allocate(slot));
    return executor_.save_page(page, slots_[slot].all());
  });
}

Status HostPages::bring_back(uint32_t slot, const Executor::CachePage& page) {
  return guarded([&] { return executor_.load_page(slots_[slot].all(), page); });
}

Status HostPages::bytes_of(uint32_t slot, std::span<uint8_t>* out) {
  return guarded([&]() -> Status {
    GRETA_TRY(allocate(slot));
    GRETA_TRY(executor_.wait_all());
    *out = {static_cast<uint8_t*>(slots_[slot].buffer().mapped), size_t(executor_.page_bytes())};
    return {};
  });
}

}  // namespace greta
