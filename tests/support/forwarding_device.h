// A device that passes everything on to another one, for tests that change a part of it.
#pragma once
#include "runtime/runtime.h"

namespace greta::test {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(Device& inner) : inner_(inner), info_(inner.info()) {}
  const DeviceInfo& info() const override { return info_; }
  uint64_t memory_free() const override { return inner_.memory_free(); }
  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override {
    return inner_.allocate(bytes, memory, out);
  }
  Status share_host(void* pages, uint64_t bytes, Buffer* out) override {
    return inner_.share_host(pages, bytes, out);
  }
  Status import_host(const void* pages, uint64_t bytes, Buffer* out) override {
    return inner_.import_host(pages, bytes, out);
  }
  void release(Buffer& buffer) override { inner_.release(buffer); }
  Status load(const KernelCode& code, Kernel* out) override { return inner_.load(code, out); }
  void unload(Kernel& kernel) override { inner_.unload(kernel); }
  Status create_stream(Stream** out) override { return inner_.create_stream(out); }
  Status create_event(Event* out, bool timed) override { return inner_.create_event(out, timed); }
  Status elapsed_ns(const Event& from, const Event& to, uint64_t* out) override {
    return inner_.elapsed_ns(from, to, out);
  }
  Status host_ns(const Event& event, uint64_t* out, uint64_t* error_ns) override {
    return inner_.host_ns(event, out, error_ns);
  }
  Status describe_code(const KernelCode& code, std::string* out) override {
    return inner_.describe_code(code, out);
  }
  void destroy(Event& event) override { inner_.destroy(event); }
  void destroy(Graph& graph) override { inner_.destroy(graph); }

 protected:
  Device& inner_;
  DeviceInfo info_;  // what it says of itself
};

}  // namespace greta::test
