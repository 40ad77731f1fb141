#include "engine/serve/host_pages.h"

namespace greta {

HostPages::HostPages(Executor& executor, uint64_t bytes)
    : executor_(executor),
      pages_(executor.page_bytes(), executor.kept_state_bytes() ? bytes / 2 : bytes),
      states_(executor.kept_state_bytes(), bytes - pages_.most()) {}

Status HostPages::allocate(Shelf& shelf, uint32_t slot) {
  if (shelf.slots[slot].buffer().bytes) return {};
  return shelf.slots[slot].allocate(executor_.model().first_device(), shelf.bytes, Memory::Readback);
}

Status HostPages::keep(const Executor::CachePage& page, uint32_t slot) {
  return guarded([&]() -> Status {
    GRETA_TRY(allocate(pages_, slot));
    return executor_.save_page(page, pages_.slots[slot].all());
  });
}

Status HostPages::bring_back(uint32_t slot, const Executor::CachePage& page) {
  return guarded([&] { return executor_.load_page(pages_.slots[slot].all(), page); });
}

Status HostPages::keep_state(uint32_t state, uint32_t slot) {
  return guarded([&]() -> Status {
    GRETA_TRY(allocate(states_, slot));
    return executor_.save_state(state, states_.slots[slot].all());
  });
}

Status HostPages::bring_state_back(uint32_t slot, uint32_t state) {
  return guarded([&] { return executor_.load_state(states_.slots[slot].all(), state); });
}

Status HostPages::bytes_of(Shelf& shelf, uint32_t slot, std::span<uint8_t>* out) {
  return guarded([&]() -> Status {
    GRETA_TRY(allocate(shelf, slot));
    GRETA_TRY(executor_.wait_all());
    *out = {static_cast<uint8_t*>(shelf.slots[slot].buffer().mapped), size_t(shelf.bytes)};
    return {};
  });
}

}  // namespace greta
