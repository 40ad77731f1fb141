// Buffers: device memory, pinned host memory, and registered host pages.
#include <algorithm>

#include "backends/hip/hip.h"

namespace greta {

using Number = unsigned long long;  // for %llu

constexpr uint64_t kSizeStep = 64;  // of a buffer in bytes: a wide load of the last values stays inside

uint64_t HipDevice::memory_free() const {
  if (!may_free()) return 0;
  const HipCurrent current(hip, index());
  size_t free = 0, total = 0;
  if (hip.hipMemGetInfo(&free, &total) != kHipSuccess) return 0;
  return hip_memory_free(*properties_, card_, system_root_.c_str(), free, total);
}

Status HipDevice::allocate_memory(uint64_t bytes, Memory memory, HipBuffer* out, uint64_t* address) {
  const HipCurrent current(hip, index());
  if (memory == Memory::Device) {
    GRETA_TRY(result(hip.hipMalloc(&out->pointer, bytes), "hipMalloc"));
    *address = reinterpret_cast<uint64_t>(out->pointer);
    return {};
  }
  GRETA_TRY(result(hip.hipHostMalloc(&out->pointer, bytes, 0), "hipHostMalloc"));
  void* seen = nullptr;
  GRETA_TRY(result(hip.hipHostGetDevicePointer(&seen, out->pointer, 0), "hipHostGetDevicePointer"));
  *address = reinterpret_cast<uint64_t>(seen);
  return {};
}

Status HipDevice::allocate(uint64_t bytes, Memory memory, Buffer* out) {
  GRETA_TRY(usable());
  GRETA_TRY(check_allocation(info_, bytes));
  auto made = std::make_unique<HipBuffer>();
  made->memory = memory;
  uint64_t address = 0;
  const Status status = allocate_memory(round_up(bytes, kSizeStep), memory, made.get(), &address);
  if (!status.ok()) {
    free_memory(*made);
    return allocation_failed(*this, bytes, memory, status);
  }
  *out = {made.get(), address, memory == Memory::Device ? nullptr : made->pointer, bytes};
  (void)made.release();
  return {};
}

// Registers whole pages, from the one that the first byte lies in.
Status HipDevice::import_host(const void* pages, uint64_t bytes, Buffer* out) {
  GRETA_TRY(usable());
  if (!pages || !bytes) return fail(Code::Argument, "import_host: no pages");
  if (!info_.unified_memory)
    return fail(Code::Unsupported, "%s has memory of its own: weights are copied to it", info_.name);
  const uint64_t begin = reinterpret_cast<uint64_t>(pages), from = begin / page_bytes() * page_bytes();
  const uint64_t size = round_up(begin + bytes, page_bytes()) - from;
  if (bytes > kHipMostImported || size > kHipMostImported)
    return fail(Code::Memory, "cannot import %llu bytes: %s takes %s at once", Number(bytes), info_.name,
                SizeText(kHipMostImported).text);
  const HipCurrent current(hip, index());
  auto made = std::make_unique<HipBuffer>();
  made->imported = true;
  made->memory = Memory::Upload;
  const auto import = [&](void** seen) -> Status {
    void* const first = reinterpret_cast<void*>(from);
    GRETA_TRY(result(hip.hipHostRegister(first, size, kHipHostRegisterMapped), "hipHostRegister"));
    made->pointer = first;
    return result(hip.hipHostGetDevicePointer(seen, first, 0), "hipHostGetDevicePointer");
  };
  void* seen = nullptr;
  const Status status = import(&seen);
  if (!status.ok()) {
    free_memory(*made);
    return within(status, "cannot import %llu bytes", Number(bytes));
  }
  *out = {made.get(), reinterpret_cast<uint64_t>(seen) + (begin - from), const_cast<void*>(pages), bytes};
  (void)made.release();
  return {};
}

void HipDevice::free_memory(const HipBuffer& buffer) {
  if (!buffer.pointer || !may_free()) return;
  const HipCurrent current(hip, index());
  if (buffer.imported)
    (void)hip.hipHostUnregister(buffer.pointer);
  else if (buffer.memory == Memory::Device)
    (void)hip.hipFree(buffer.pointer);
  else
    (void)hip.hipHostFree(buffer.pointer);
}

void HipDevice::release(Buffer& buffer) {
  auto* state = static_cast<HipBuffer*>(buffer.handle);
  if (!state) return;
  free_memory(*state);
  delete state;
  buffer = {};
}

}  // namespace greta
