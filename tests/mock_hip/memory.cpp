#include "tests/mock_hip/memory.h"

#include <map>
#include <mutex>

#include "tests/mock_hip/device_memory.h"
#include "tests/mock_hip/orders.h"

namespace mock_hip {

constexpr int kMostDevices = 8;
constexpr uint64_t kPinnedBytes = uint64_t(64) << 30;

static DeviceMemory of_device[kMostDevices], pinned;
static std::mutex registered_mutex;
static std::map<uintptr_t, uint64_t> registered;  // address to bytes

uint64_t device_bytes() { return number("MOCK_HIP_MEMORY", uint64_t(4) << 30); }

uint64_t free_bytes(int device) {
  const uint64_t all = device_bytes(), used = of_device[device].used_bytes();
  return all > used ? all - used : 0;
}

void* allocate_device(int device, uint64_t bytes) {
  return of_device[device].allocate(bytes, device_bytes());
}

bool release_device(void* pointer) {
  for (DeviceMemory& memory : of_device)
    if (memory.release(pointer)) return true;
  return false;
}

void* allocate_pinned(uint64_t bytes) { return pinned.allocate(bytes, kPinnedBytes); }
bool release_pinned(void* pointer) { return pinned.release(pointer); }

bool register_host(void* pointer, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(registered_mutex);
  return registered.emplace(reinterpret_cast<uintptr_t>(pointer), bytes).second;
}

bool unregister_host(void* pointer) {
  const std::lock_guard<std::mutex> lock(registered_mutex);
  return registered.erase(reinterpret_cast<uintptr_t>(pointer)) != 0;
}

bool is_device(const void* pointer, uint64_t bytes) {
  for (const DeviceMemory& memory : of_device)
    if (memory.contains(pointer, bytes)) return true;
  return false;
}

bool is_pinned(const void* pointer, uint64_t bytes) {
  if (pinned.contains(pointer, bytes)) return true;
  const std::lock_guard<std::mutex> lock(registered_mutex);
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  for (const auto& [first, size] : registered)
    if (address >= first && address - first <= size && bytes <= size - (address - first)) return true;
  return false;
}

bool is_device_visible(const void* pointer, uint64_t bytes) {
  return is_device(pointer, bytes) || is_pinned(pointer, bytes);
}

bool find_overrun() {
  bool found = pinned.find_overrun();
  for (DeviceMemory& memory : of_device) found |= memory.find_overrun();
  return found;
}

}  // namespace mock_hip
