#include "spike/hip_device.h"

#include <cstring>

namespace greta {

#define HIP_TRY(call) GRETA_TRY(check(hip_.call, #call))

Status HipSymbols::load(const char* path) {
  GRETA_TRY(library.open(path));
#define NEED(name, ...)                                               \
  name = reinterpret_cast<int (*)(__VA_ARGS__)>(library.find(#name)); \
  if (!name) return fail(Code::Unsupported, "%s has no %s", path, #name);
#include "spike/hip_symbols.def"
#undef NEED
  fault = reinterpret_cast<const char* (*)()>(library.find("mock_hip_fault"));
  return {};
}

Status HipSpikeDevice::check(int error, const char* call) {
  if (!error) return {};
  return fail(Code::Device, "%s: hipError %d %s", call, error, hip_.fault ? hip_.fault() : "");
}

Status HipSpikeDevice::open(const char* library_path) {
  GRETA_TRY(hip_.load(library_path));
  int count = 0;
  if (hip_.hipInit(0) || hip_.hipGetDeviceCount(&count) || !count)
    return fail(Code::Unsupported, "%s: there is no HIP device", library_path);
  HIP_TRY(hipSetDevice(0));
  constexpr uint32_t kPropertiesBytes = 4096, kArchAt = 1160;  // hipDeviceProp_tR0600 and room to grow
  std::vector<char> properties(kPropertiesBytes);
  HIP_TRY(hipGetDevicePropertiesR0600(properties.data(), 0));
  arch_ = properties.data() + kArchAt;
  arch_ = arch_.substr(0, arch_.find(':'));
  constexpr unsigned kNonBlocking = 1;
  HIP_TRY(hipStreamCreateWithFlags(&stream_, kNonBlocking));
  return {};
}

HipSpikeDevice::~HipSpikeDevice() {
  if (!stream_) return;
  for (void* pointer : allocations_) (void)hip_.hipFree(pointer);
  (void)hip_.hipStreamDestroy(stream_);
}

Status HipSpikeDevice::allocate(uint64_t bytes, uint64_t* address) {
  void* pointer = nullptr;
  HIP_TRY(hipMalloc(&pointer, bytes));
  allocations_.push_back(pointer);
  *address = reinterpret_cast<uint64_t>(pointer);
  return {};
}

Status HipSpikeDevice::write(uint64_t address, const void* from, uint64_t bytes) {
  constexpr int kHostToDevice = 1;
  HIP_TRY(hipMemcpyAsync(reinterpret_cast<void*>(address), from, bytes, kHostToDevice, stream_));
  return {};
}

Status HipSpikeDevice::read(uint64_t address, void* to, uint64_t bytes) {
  constexpr int kDeviceToHost = 2;
  HIP_TRY(hipMemcpyAsync(to, reinterpret_cast<void*>(address), bytes, kDeviceToHost, stream_));
  HIP_TRY(hipStreamSynchronize(stream_));
  return {};
}

Status HipSpikeDevice::run(const KernelCode& code, uint32_t groups, std::span<const uint8_t> block) {
  std::vector<uint8_t> object;
  GRETA_TRY(within(unpack(code.code, &object), "%s", code.name));
  void* module = nullptr;
  HIP_TRY(hipModuleLoadData(&module, object.data()));
  void* function = nullptr;
  Status status = check(hip_.hipModuleGetFunction(&function, module, code.name), "hipModuleGetFunction");
  if (status.ok()) {
    size_t bytes = block.size();
    void* const kBuffer = reinterpret_cast<void*>(1);
    void* const kBytes = reinterpret_cast<void*>(2);
    void* const kEnd = reinterpret_cast<void*>(3);
    void* extra[] = {kBuffer, const_cast<uint8_t*>(block.data()), kBytes, &bytes, kEnd};
    const uint32_t* threads = code.group_size;
    const int error = hip_.hipModuleLaunchKernel(function, groups, 1, 1, threads[0], threads[1], threads[2],
                                                 0, stream_, nullptr, extra);
    status = check(error, "hipModuleLaunchKernel");
  }
  if (status.ok()) status = check(hip_.hipStreamSynchronize(stream_), "hipStreamSynchronize");
  (void)hip_.hipModuleUnload(module);
  return status;
}

}  // namespace greta
