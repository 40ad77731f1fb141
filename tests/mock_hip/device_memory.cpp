#include "tests/mock_hip/device_memory.h"

#include <cstdlib>
#include <cstring>

namespace mock_hip {

constexpr uint64_t kAlignment = 256;
constexpr int kPoison = 0xcd;

DeviceMemory::~DeviceMemory() {
  for (const auto& block : blocks_) std::free(reinterpret_cast<void*>(block.first));
}

void* DeviceMemory::allocate(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes == 0 || bytes > capacity_ - used_) return nullptr;
  void* pointer = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (!pointer) return nullptr;
  std::memset(pointer, kPoison, bytes);
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

uint64_t DeviceMemory::free_bytes() const {
  std::lock_guard lock(mutex_);
  return capacity_ - used_;
}

}  // namespace mock_hip
