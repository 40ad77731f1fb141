// Small kernels for tests of devices. A group handles 64 words.
#pragma once
#include "support/devices.h"

constexpr uint32_t kGroupWords = 64;

struct IndexTestBlock {  // y[i] = i * scale + base
  uint64_t y;
  uint32_t count, scale, base;
};
struct AddTestBlock {  // y[i] = a[i] + b[i]
  uint64_t a, b, y;
  uint64_t chain;  // the address of the launch's cell in a chain, which the device sets
  uint32_t count;
};

// The code of a kernel that is compiled for a GPU, null if there is none.
const greta::KernelCode* embedded_test_code(const greta::DeviceInfo& info, const char* name);

// The code of a kernel for this device: "index" or "add".
greta::KernelCode test_kernel_code(const greta::Device& device, const char* name);

struct TestKernels {
  greta::Device& device;
  greta::Kernel index, add;
  explicit TestKernels(greta::Device& owner) : device(owner) {
    REQUIRE(device.load(test_kernel_code(device, "index"), &index).ok());
    REQUIRE(device.load(test_kernel_code(device, "add"), &add).ok());
  }
  ~TestKernels() {
    device.unload(index);
    device.unload(add);
  }
  greta::Status write_index(greta::Stream& stream, const greta::Slice& y, uint32_t scale,
                            uint32_t base = 0) const;
  greta::Status add_words(greta::Stream& stream, const greta::Slice& a, const greta::Slice& b,
                          const greta::Slice& y) const;
};
