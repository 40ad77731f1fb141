// The mock device's memory: host memory, with a record of what is allocated, filled with a pattern
// that no kernel may take for data.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>

namespace mock_hip {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* allocate(uint64_t bytes, uint64_t capacity);  // null when all blocks together would exceed `capacity`
  bool release(void* pointer);                        // false if it was not allocated
  bool contains(const void* pointer, uint64_t bytes) const;
  uint64_t used_bytes() const;
  bool find_overrun();  // true if something was written behind the end of a block since the last call

 private:
  mutable std::mutex mutex_;
  std::map<uintptr_t, uint64_t> blocks_;  // address to bytes
  uint64_t used_ = 0;
};

}  // namespace mock_hip
