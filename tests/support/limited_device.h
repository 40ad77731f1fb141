// Wraps a device so that it has no large buffers and takes no mapped pages, as some GPUs. Its pools give
// every tensor a buffer of its own.
#pragma once
#include "runtime/runtime.h"

namespace greta::test {

class LimitedDevice : public Device {
 public:
  LimitedDevice(Device& inner, uint64_t largest) : inner_(inner), info_(inner.info()) {
    info_.max_allocation_bytes = largest;
    info_.imports_host = false;
    info_.own_buffers = true;
  }
  void lift() { lifted_ = true; }  // from now on larger buffers are allocated, though info() does not say so

  const DeviceInfo& info() const override { return info_; }
  uint64_t memory_free() const override { return inner_.memory_free(); }
  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override {
    if (memory == Memory::Device && bytes > info_.max_allocation_bytes && !lifted_)
      return fail(Code::Memory, "cannot allocate %llu bytes: the largest buffer has %llu",
                  (unsigned long long)bytes, (unsigned long long)info_.max_allocation_bytes);
    return inner_.allocate(bytes, memory, out);
  }
  Status import_host(const void*, uint64_t, Buffer*) override {
    return fail(Code::Unsupported, "no host memory is taken in place");
  }
  void release(Buffer& buffer) override { inner_.release(buffer); }
  Status load(const KernelCode& code, Kernel* out) override { return inner_.load(code, out); }
  void unload(Kernel& kernel) override { inner_.unload(kernel); }
  Status create_stream(Stream** out) override { return inner_.create_stream(out); }
  Status create_event(Event* out, bool timed) override { return inner_.create_event(out, timed); }
  Status elapsed_ns(const Event& from, const Event& to, uint64_t* out) override {
    return inner_.elapsed_ns(from, to, out);
  }
  void destroy(Event& event) override { inner_.destroy(event); }
  void destroy(Graph& graph) override { inner_.destroy(graph); }

 private:
  Device& inner_;
  DeviceInfo info_;
  bool lifted_ = false;
};

}  // namespace greta::test
