// The mock device's memory: host memory, with a record of what is allocated, filled with a pattern
// that no kernel may take for data.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>

namespace mock_hip {

class DeviceMemory {
 public:
  explicit DeviceMemory(uint64_t capacity) : capacity_(capacity) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* allocate(uint64_t bytes);  // null when the capacity is used up
  bool release(void* pointer);     // false if it was not allocated
  bool contains(const void* pointer, uint64_t bytes) const;
  uint64_t capacity() const { return capacity_; }
  uint64_t free_bytes() const;

 private:
  mutable std::mutex mutex_;
  std::map<uintptr_t, uint64_t> blocks_;  // address to bytes
  uint64_t capacity_, used_ = 0;
};

}  // namespace mock_hip
