// The host's memory for pages of the prefix cache that left the device, and for states of models whose layers
// keep them. A slot has room for one page or one state, in memory that the device copies to and from by
// itself, so that no step waits for it. A slot's memory is allocated when it is first used.
#pragma once
#include <algorithm>

#include "engine/executor/executor.h"

namespace greta {

// The most slots, 8 Mi tokens: the index of pages has memory for each slot from the beginning.
constexpr uint32_t kMaxHostPages = 131072;

class HostPages {
 public:
  // Of `bytes`, states have what pages leave: a half, or more where pages are small.
  HostPages(Executor& executor, uint64_t bytes);
  ~HostPages() { (void)executor_.wait_all(); }  // no copy is under way when the memory goes
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;

  uint32_t count() const { return pages_.count(); }
  uint32_t states() const { return states_.count(); }
  // Slots that only pass a page or a state on to a file and back.
  uint32_t spare() const { return count(); }
  uint32_t spare_state() const { return states(); }
  // All submit a copy. What it needs of the device or the slot may be used again at once, by what is
  // submitted later.
  Status keep(const Executor::CachePage& page, uint32_t slot);
  Status bring_back(uint32_t slot, const Executor::CachePage& page);
  Status keep_state(uint32_t state, uint32_t slot);
  Status bring_state_back(uint32_t slot, uint32_t state);
  // What a slot holds, when all copies are made.
  Status bytes_of(uint32_t slot, std::span<uint8_t>* out) { return bytes_of(pages_, slot, out); }
  Status bytes_of_state(uint32_t slot, std::span<uint8_t>* out) { return bytes_of(states_, slot, out); }

 private:
  struct Shelf {
    uint64_t bytes = 0;  // of a slot
    std::vector<DeviceMemory> slots;
    Shelf(uint64_t of_slot, uint64_t room)
        : bytes(of_slot),
          slots(of_slot ? size_t(std::min(room / of_slot, uint64_t(kMaxHostPages))) + 1 : 1) {}
    uint32_t count() const { return uint32_t(slots.size()) - 1; }
    uint64_t most() const { return count() * bytes; }
  };
  Status allocate(Shelf& shelf, uint32_t slot);
  Status bytes_of(Shelf& shelf, uint32_t slot, std::span<uint8_t>* out);

  Executor& executor_;
  Shelf pages_, states_;
};

}  // namespace greta
