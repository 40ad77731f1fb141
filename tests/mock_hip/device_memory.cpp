#include "tests/mock_hip/device_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace mock_hip {

constexpr uint64_t kAlignment = 256;
constexpr uint8_t kPoison = 0xcd;
constexpr uint64_t kGuardBytes = 256;  // behind each block

DeviceMemory::~DeviceMemory() {
  for (const auto& block : blocks_) std::free(reinterpret_cast<void*>(block.first));
}

void* DeviceMemory::allocate(uint64_t bytes, uint64_t capacity) {
  std::lock_guard lock(mutex_);
  if (bytes == 0 || used_ > capacity || bytes > capacity - used_) return nullptr;
  const uint64_t all = (bytes + kGuardBytes + kAlignment - 1) / kAlignment * kAlignment;
  void* pointer = std::aligned_alloc(kAlignment, all);
  if (!pointer) return nullptr;
  std::memset(pointer, kPoison, all);
  blocks_[reinterpret_cast<uintptr_t>(pointer)] = bytes;
  used_ += bytes;
  return pointer;
}

bool DeviceMemory::release(void* pointer) {
  std::lock_guard lock(mutex_);
  const auto block = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
  if (block == blocks_.end()) return false;
  used_ -= block->second;
  blocks_.erase(block);
  std::free(pointer);
  return true;
}

bool DeviceMemory::contains(const void* pointer, uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return false;
  --block;
  const uint64_t offset = address - block->first;
  return offset <= block->second && bytes <= block->second - offset;
}

uint64_t DeviceMemory::used_bytes() const {
  std::lock_guard lock(mutex_);
  return used_;
}

bool DeviceMemory::find_overrun() {
  std::lock_guard lock(mutex_);
  bool found = false;
  for (const auto& [address, bytes] : blocks_) {
    auto* guard = reinterpret_cast<uint8_t*>(address + bytes);
    if (std::all_of(guard, guard + kGuardBytes, [](uint8_t byte) { return byte == kPoison; })) continue;
    std::memset(guard, kPoison, kGuardBytes);
    found = true;
  }
  return found;
}

}  // namespace mock_hip
