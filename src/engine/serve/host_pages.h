// The host's memory for pages of the prefix cache that left the device. A slot has room for one page, in
// memory that the device copies to and from by itself, so that no step waits for it. A slot's memory is
// allocated when it is first used.
#pragma once
#include <algorithm>

#include "engine/executor/executor.h"

namespace greta {

// The most slots, 8 Mi tokens: the index of pages has memory for each slot from the beginning.
constexpr uint32_t kMaxHostPages = 131072;

class HostPages {
 public:
  HostPages(Executor& executor, uint64_t bytes)
      : executor_(executor),
        slots_(size_t(std::min(bytes / executor.page_bytes(), uint64_t(kMaxHostPages))) + 1) {}
  ~HostPages() { (void)executor_.wait_all(); }  // no copy is under way when the memory goes
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;

  uint32_t count() const { return uint32_t(slots_.size()) - 1; }
  uint32_t spare() const { return count(); }  // a slot that only passes pages on to files and back
  // Both submit a copy. What it needs of the page or the slot may be used again at once, by what is submitted
  // later.
  Status keep(const Executor::CachePage& page, uint32_t slot);
  Status bring_back(uint32_t slot, const Executor::CachePage& page);
  // What a slot holds, when all copies are made.
  Status bytes_of(uint32_t slot, std::span<uint8_t>* out);

 private:
  Status allocate(uint32_t slot);

  Executor& executor_;
  std::vector<DeviceMemory> slots_;
};

}  // namespace greta
