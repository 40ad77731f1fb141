// The mock of libamdhip64.so: the functions of a HIP runtime that GRETA calls, for a machine without
// an AMD GPU. A module is a real code object, and every launch is checked against its metadata; what
// runs is the same kernel source, compiled for the host (lane_emulator.h). All work is done at once,
// so a stream is only a name.
//
//   MOCK_HIP_ARCH       gcnArchName of the device (default "gfx942:sramecc+:xnack-"); "none": no device
//   MOCK_HIP_SEED       order of waves and lanes (default 0)
//   mock_hip_fault()    what the last refused call did wrong, in words
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/gfx_family.h"
#include "tests/mock_hip/code_object.h"
#include "tests/mock_hip/device_memory.h"
#include "tests/mock_hip/kernel_registry.h"
#include "tests/mock_hip/lane_emulator.h"

#define API extern "C" __attribute__((visibility("default")))

namespace mock_hip {

// Values of hipError_t.
enum Error {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kNoBinaryForGpu = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kLaunchFailure = 719,
};

constexpr uint64_t kDeviceBytes = uint64_t(4) << 30;
constexpr uint64_t kMaxSharedBytes = 64 * 1024;
static DeviceMemory memory(kDeviceBytes);
static thread_local std::string fault_text;

static int refuse(Error error, const std::string& text) {
  fault_text = text;
  return error;
}

static std::string arch_name() {
  const char* name = std::getenv("MOCK_HIP_ARCH");
  return name ? name : "gfx942:sramecc+:xnack-";
}
static bool has_device() { return arch_name() != "none"; }
static std::string arch_target() {
  const std::string name = arch_name();
  return name.substr(0, name.find(':'));
}

struct Function {
  const KernelMetadata* metadata;
  const HostKernel* host;
};

struct Module {
  CodeObject object;
  std::vector<Function*> functions;
  ~Module() {
    for (Function* function : functions) delete function;
  }
};

}  // namespace mock_hip

using namespace mock_hip;

API const char* mock_hip_fault() { return fault_text.c_str(); }

API int hipInit(unsigned) { return has_device() ? kSuccess : refuse(kNoDevice, "MOCK_HIP_ARCH is none"); }

API int hipGetDeviceCount(int* count) {
  *count = has_device() ? 1 : 0;
  return has_device() ? kSuccess : refuse(kNoDevice, "MOCK_HIP_ARCH is none");
}

API int hipSetDevice(int device) {
  return device == 0 && has_device() ? kSuccess : refuse(kInvalidDevice, "there is one device, number 0");
}

API int hipRuntimeGetVersion(int* version) {
  *version = 60443484;
  return kSuccess;
}

API const char* hipGetErrorString(int error) {
  switch (error) {
    case kSuccess:
      return "no error";
    case kInvalidValue:
      return "invalid argument";
    case kOutOfMemory:
      return "out of memory";
    case kNoDevice:
      return "no ROCm-capable device is detected";
    case kNoBinaryForGpu:
      return "no kernel image is available for execution on the device";
    case kNotFound:
      return "named symbol not found";
    case kLaunchFailure:
      return "unspecified launch failure";
  }
  return "unknown error";
}

// The properties of HIP 6 and newer; only the fields at these offsets are filled in.
API int hipGetDevicePropertiesR0600(void* properties, int device) {
  if (device != 0 || !has_device()) return refuse(kInvalidDevice, "there is one device, number 0");
  constexpr uint64_t kBytes = 1472;
  constexpr uint64_t kNameAt = 0, kMemoryAt = 288, kSharedAt = 296, kWaveAt = 308, kArchAt = 1160;
  uint8_t* out = static_cast<uint8_t*>(properties);
  std::memset(out, 0, kBytes);
  std::snprintf(reinterpret_cast<char*>(out + kNameAt), 256, "Mock GPU %s", arch_target().c_str());
  std::snprintf(reinterpret_cast<char*>(out + kArchAt), 256, "%s", arch_name().c_str());
  const uint64_t shared = kMaxSharedBytes;
  const int wave = arch_target().rfind("gfx9", 0) == 0 ? 64 : 32;
  std::memcpy(out + kMemoryAt, &kDeviceBytes, sizeof kDeviceBytes);
  std::memcpy(out + kSharedAt, &shared, sizeof shared);
  std::memcpy(out + kWaveAt, &wave, sizeof wave);
  return kSuccess;
}

API int hipMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *free_bytes = memory.free_bytes();
  *total_bytes = memory.capacity();
  return kSuccess;
}

API int hipMalloc(void** pointer, size_t bytes) {
  *pointer = memory.allocate(bytes);
  if (*pointer) return kSuccess;
  return refuse(kOutOfMemory, "hipMalloc: no room for " + std::to_string(bytes) + " bytes");
}

API int hipFree(void* pointer) {
  return !pointer || memory.release(pointer) ? kSuccess : refuse(kInvalidValue, "hipFree: not allocated");
}

API int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void*) {
  constexpr int kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3;
  if ((kind == kHostToDevice || kind == kDeviceToDevice) && !memory.contains(to, bytes))
    return refuse(kInvalidValue, "hipMemcpyAsync: the destination is not device memory");
  if ((kind == kDeviceToHost || kind == kDeviceToDevice) && !memory.contains(from, bytes))
    return refuse(kInvalidValue, "hipMemcpyAsync: the source is not device memory");
  std::memmove(to, from, bytes);
  return kSuccess;
}

API int hipStreamCreateWithFlags(void** stream, unsigned) {
  *stream = new char;
  return kSuccess;
}

API int hipStreamDestroy(void* stream) {
  delete static_cast<char*>(stream);
  return kSuccess;
}

API int hipStreamSynchronize(void*) { return kSuccess; }

API int hipModuleLoadData(void** module, const void* image) {
  auto* loaded = new Module;
  std::string wrong = loaded->object.parse(static_cast<const uint8_t*>(image));
  if (wrong.empty() && !greta::runs_on(loaded->object.target, arch_target()))
    wrong = "a code object for " + loaded->object.target + " on a " + arch_target();
  if (!wrong.empty()) {
    delete loaded;
    return refuse(kNoBinaryForGpu, "hipModuleLoadData: " + wrong);
  }
  *module = loaded;
  return kSuccess;
}

API int hipModuleUnload(void* module) {
  delete static_cast<Module*>(module);
  return kSuccess;
}

API int hipModuleGetFunction(void** function, void* module, const char* name) {
  auto* from = static_cast<Module*>(module);
  const KernelMetadata* metadata = from->object.find(name);
  if (!metadata) return refuse(kNotFound, std::string("hipModuleGetFunction: no kernel ") + name);
  const HostKernel* host = find_kernel(name, from->object.target.c_str());
  if (!host) return refuse(kNotFound, std::string("hipModuleGetFunction: no host build of ") + name);
  from->functions.push_back(new Function{metadata, host});
  *function = from->functions.back();
  return kSuccess;
}

namespace mock_hip {

// Copies the kernel's argument out of either form of a launch; returns what is wrong with it, or "".
static std::string read_block(const KernelMetadata& kernel, void** parameters, void** extra,
                              std::vector<uint64_t>* block) {
  const KernelArgument* own = nullptr;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.kind.rfind("hidden_", 0) == 0) return "the kernel takes hidden arguments";
    if (own || argument.kind != "by_value" || argument.offset)
      return "the kernel takes more than one block by value";
    own = &argument;
  }
  if (!own) return "the kernel takes no block";
  block->assign((own->bytes + 7) / 8, 0xeeeeeeeeeeeeeeee);
  if (parameters) {
    std::memcpy(block->data(), parameters[0], own->bytes);
    return "";
  }
  constexpr uintptr_t kBuffer = 1, kBytes = 2, kEnd = 3;
  const void* buffer = nullptr;
  uint64_t bytes = 0;
  for (; extra && reinterpret_cast<uintptr_t>(extra[0]) != kEnd; extra += 2) {
    if (reinterpret_cast<uintptr_t>(extra[0]) == kBuffer) buffer = extra[1];
    if (reinterpret_cast<uintptr_t>(extra[0]) == kBytes) bytes = *static_cast<size_t*>(extra[1]);
  }
  if (!buffer || bytes != own->bytes)
    return "a block of " + std::to_string(bytes) + " bytes, the code object takes " +
           std::to_string(own->bytes);
  std::memcpy(block->data(), buffer, bytes);
  return "";
}

static std::string check_shape(const Function& function, const LaunchShape& shape, unsigned dynamic_shared) {
  const KernelMetadata& metadata = *function.metadata;
  if (!shape.groups[0] || !shape.groups[1] || !shape.groups[2]) return "an empty grid";
  if (shape.threads > metadata.max_threads)
    return "a group of " + std::to_string(shape.threads) + " threads, the code object allows " +
           std::to_string(metadata.max_threads);
  if (shape.threads != function.host->threads)
    return "a group of " + std::to_string(shape.threads) + " threads, the kernel is written for " +
           std::to_string(function.host->threads);
  if (metadata.shared_bytes + dynamic_shared > kMaxSharedBytes) return "more than 64 KiB of shared memory";
  return "";
}

static std::string check_addresses(const HostKernel& host, const std::vector<uint64_t>& block) {
  if (host.block_bytes > block.size() * 8) return "the host build takes a larger block than the code object";
  for (unsigned i = 0; i < host.address_count; ++i)
    if (block[i] && !memory.contains(reinterpret_cast<void*>(block[i]), 1))
      return "address " + std::to_string(i) + " of the block is not in device memory";
  return "";
}

}  // namespace mock_hip

API int hipModuleLaunchKernel(void* handle, unsigned groups_x, unsigned groups_y, unsigned groups_z,
                              unsigned threads_x, unsigned threads_y, unsigned threads_z,
                              unsigned shared_bytes, void*, void** parameters, void** extra) {
  const Function& function = *static_cast<Function*>(handle);
  const char* seed = std::getenv("MOCK_HIP_SEED");
  const LaunchShape shape = {{groups_x, groups_y, groups_z},
                             threads_x * threads_y * threads_z,
                             unsigned(function.metadata->wave),
                             seed ? unsigned(std::atoi(seed)) : 0};
  std::vector<uint64_t> block;
  std::string wrong = check_shape(function, shape, shared_bytes);
  if (wrong.empty()) wrong = read_block(*function.metadata, parameters, extra, &block);
  if (wrong.empty()) wrong = check_addresses(*function.host, block);
  if (!wrong.empty()) return refuse(kInvalidValue, function.metadata->name + ": " + wrong);
  if (const char* fault = run_grid(shape, function.host->run, block.data()))
    return refuse(kLaunchFailure, function.metadata->name + ": " + fault);
  return kSuccess;
}
