// A HIP device that runs one kernel at a time: enough for the spike, not a backend. The block goes
// by value into the kernel's arguments.
#pragma once
#include <string>
#include <vector>

#include "spike/spike_device.h"

namespace greta {

struct HipSymbols {
  DynamicLibrary library;
#define NEED(name, ...) int (*name)(__VA_ARGS__) = nullptr;
#include "spike/hip_symbols.def"
#undef NEED
  const char* (*fault)() = nullptr;  // the mock's own: what the last refused call did wrong
  Status load(const char* path);
};

class HipSpikeDevice : public SpikeDevice {
 public:
  ~HipSpikeDevice() override;
  Status open(const char* library_path);             // Unsupported without the library or a device
  const std::string& arch() const { return arch_; }  // gcnArchName up to the first ':'

  Status allocate(uint64_t bytes, uint64_t* address) override;
  Status write(uint64_t address, const void* from, uint64_t bytes) override;
  Status read(uint64_t address, void* to, uint64_t bytes) override;
  Status run(const KernelCode& code, uint32_t groups, std::span<const uint8_t> block) override;

 private:
  Status check(int error, const char* call);

  HipSymbols hip_;
  std::string arch_;
  void* stream_ = nullptr;
  std::vector<void*> allocations_;
};

}  // namespace greta
