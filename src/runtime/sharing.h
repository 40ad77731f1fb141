// What a device may offer beside Device: to work on what its host has opened, and to share memory and numbers
// that grow with others, in the process or by file descriptors. Models need none of it. A device or stream
// that offers it is one of these classes, too.
#pragma once
#include "runtime/device.h"

namespace greta {

// What the host has opened: Vulkan's handles. The lock is held around each call of the driver that names the
// queue.
struct HostHandles {
  void (*get_instance_proc_addr)() = nullptr;
  void* instance = nullptr;
  void* physical_device = nullptr;
  void* device = nullptr;
  void* queue = nullptr;
  uint32_t queue_family = 0;
  std::span<const char* const> extensions;  // of the device, that are enabled
  void (*lock)(void* user) = nullptr;
  void (*unlock)(void* user) = nullptr;
  void* lock_user = nullptr;
};

// Memory as a file descriptor, which belongs to who has it.
struct ExportedMemory {
  int descriptor = -1;
  uint32_t memory_type = 0;       // its index in Vulkan
  uint64_t allocation_bytes = 0;  // which may be more than the buffer has
};

// A number that grows, which others may know too.
struct SharedTimeline {
  void* handle = nullptr;
};

class SharingDevice {
 public:
  virtual ~SharingDevice() = default;
  // Buffers are released as any others.
  virtual Status allocate_shared(uint64_t bytes, Buffer* out) = 0;
  virtual Status export_memory(const Buffer& buffer, ExportedMemory* out) = 0;  // of allocate_shared
  // Takes the descriptor if it succeeds.
  virtual Status import_memory(const ExportedMemory& memory, uint64_t bytes, Buffer* out) = 0;
  // A VkBuffer of the host's device, which stays the host's.
  virtual Status adopt_buffer(uint64_t buffer, uint64_t bytes, Buffer* out) = 0;
  virtual Status create_shared(SharedTimeline* out) = 0;
  virtual Status export_timeline(const SharedTimeline& timeline, int* out_descriptor) = 0;
  virtual Status import_timeline(int descriptor, SharedTimeline* out) = 0;  // likewise
  virtual Status adopt_timeline(uint64_t semaphore, SharedTimeline* out) = 0;
  // No work that was given one of its values may be under way.
  virtual void destroy_shared(SharedTimeline& timeline) = 0;
  virtual Status value_of(const SharedTimeline& timeline, uint64_t* out) = 0;
  // Waits without end, since what comes from outside may take any time.
  virtual Status wait_shared(const SharedTimeline& timeline, uint64_t value) = 0;
};

class SharingStream {
 public:
  virtual ~SharingStream() = default;
  // The timeline gets the value when all that was recorded before is done.
  virtual Status signal_shared(const SharedTimeline& timeline, uint64_t value) = 0;
  // What is recorded from here on begins when it has the value, which others may give it.
  virtual Status wait_for_shared(const SharedTimeline& timeline, uint64_t value) = 0;
};

// Opens a device of the host's, which is one of Vulkan (backends/vulkan/adoption.cpp). Fails with Unsupported
// where the build has no backend for it.
Status adopt_device(const HostHandles& handles, const DeviceOptions& options, Device** out);

}  // namespace greta
