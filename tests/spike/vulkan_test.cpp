// The GLSL form of the test kernel on every Vulkan device of the machine (lavapipe where there is no GPU).
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "runtime/runtime.h"
#include "spike/spike_device.h"

using namespace greta;

// A backend's device as the spike sees one: host memory with an address, one launch at a time.
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
    Stream* opened = nullptr;
    GRETA_TRY(device_.load(code, &kernel));
    GRETA_TRY(device_.create_stream(&opened));
    const std::unique_ptr<Stream> stream(opened);
    GRETA_TRY(stream->dispatch(kernel, {groups, 1, 1}, block, {}));
    GRETA_TRY(stream->wait());
    device_.unload(kernel);
    return {};
  }

 private:
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

TEST_CASE("the GLSL kernel gives the bits of the C++ kernel on every Vulkan device", "[spike]") {
  const KernelRow* row = find_test_kernel("scaled_add_spike", "vulkan", "");
  if (!row) SKIP("this build has no Vulkan kernels");
  uint32_t usable = 0;
  for (const Backend* backend : backends()) {
    if (strcmp(backend->name, "vulkan")) continue;
    for (uint32_t index = 0; index < backend->count({}); ++index) {
      DeviceInfo info;
      if (!backend->describe(index, {}, &info).ok()) continue;
      Device* opened = nullptr;
      const Status status = backend->open(index, {}, &opened);
      CAPTURE(info.name, error_text());
      REQUIRE(status.ok());
      const std::unique_ptr<Device> device(opened);
      BackendSpikeDevice spike(*device);
      check_scaled_add(spike, *row);
      ++usable;
    }
  }
  if (!usable) SKIP("no usable Vulkan device: " << error_text());
}
