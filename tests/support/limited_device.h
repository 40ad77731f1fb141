// Wraps a device so that it has no large buffers and takes no mapped pages, as some GPUs. Its pools give
// every tensor a buffer of its own.
#pragma once
#include "support/forwarding_device.h"

namespace greta::test {

class LimitedDevice : public ForwardingDevice {
 public:
  LimitedDevice(Device& inner, uint64_t largest) : ForwardingDevice(inner) {
    info_.max_allocation_bytes = largest;
    info_.imports_host = false;
    info_.own_buffers = true;
  }
  void lift() { lifted_ = true; }  // from now on larger buffers are allocated, though info() does not say so

  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override {
    if (memory == Memory::Device && bytes > info_.max_allocation_bytes && !lifted_)
      return fail(Code::Memory, "cannot allocate %llu bytes: the largest buffer has %llu",
                  (unsigned long long)bytes, (unsigned long long)info_.max_allocation_bytes);
    return inner_.allocate(bytes, memory, out);
  }
  Status import_host(const void*, uint64_t, Buffer*) override {
    return fail(Code::Unsupported, "no host memory is taken in place");
  }

 private:
  bool lifted_ = false;
};

}  // namespace greta::test
