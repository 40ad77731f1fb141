// A backend's device as the spike sees one.
#pragma once
#include <cstring>
#include <memory>

#include "runtime/runtime.h"
#include "spike/spike_device.h"

namespace greta {

// Memory that the host sees, with an address, and one launch at a time.
class BackendSpikeDevice final : public SpikeDevice {
 public:
  explicit BackendSpikeDevice(Device& device) : device_(device) {}
  ~BackendSpikeDevice() override {
    for (Buffer& buffer : buffers_) device_.release(buffer);
  }
  Status allocate(uint64_t bytes, uint64_t* address) override {
    Buffer buffer;
    GRETA_TRY(device_.allocate(bytes, Memory::Readback, &buffer));
    buffers_.push_back(buffer);
    *address = buffer.address;
    return {};
  }
  Status write(uint64_t address, const void* from, uint64_t bytes) override {
    return with(address, bytes, [&](uint8_t* mapped) { memcpy(mapped, from, bytes); });
  }
  Status read(uint64_t address, void* to, uint64_t bytes) override {
    return with(address, bytes, [&](const uint8_t* mapped) { memcpy(to, mapped, bytes); });
  }
  Status run(const KernelCode& code, uint32_t groups, std::span<const uint8_t> block) override {
    Kernel kernel;
    GRETA_TRY(device_.load(code, &kernel));
    const Status status = launch(kernel, groups, block);
    device_.unload(kernel);
    return status;
  }

 private:
  Status launch(const Kernel& kernel, uint32_t groups, std::span<const uint8_t> block) {
    Stream* opened = nullptr;
    GRETA_TRY(device_.create_stream(&opened));
    const std::unique_ptr<Stream> stream(opened);
    GRETA_TRY(stream->dispatch(kernel, {groups, 1, 1}, block, {}));
    return stream->wait();
  }
  template <class Use>
  Status with(uint64_t address, uint64_t bytes, const Use& use) {
    for (const Buffer& buffer : buffers_) {
      if (address < buffer.address || address + bytes > buffer.address + buffer.bytes) continue;
      use(static_cast<uint8_t*>(buffer.mapped) + (address - buffer.address));
      return {};
    }
    return fail(Code::Argument, "%llu bytes at %llx lie in no buffer", (unsigned long long)bytes,
                (unsigned long long)address);
  }

  Device& device_;
  std::vector<Buffer> buffers_;
};

}  // namespace greta
