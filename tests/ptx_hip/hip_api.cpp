// A stand-in for libamdhip64.so over the CUDA driver. It shows one GPU of wave32, "gfx1100", and runs the PTX
// of the kernels of that target. So GRETA's HIP kernels and backend run in truly parallel hardware where
// there is no AMD GPU. What runs so says nothing of AMD's hardware, and its times are no times of an AMD GPU.
//
// A module is the real code object. For a kernel in it, its PTX is read from the file NAME.ptx in the folder
// PTX_HIP_FOLDER, or else in the folder `ptx` beside this library. The driver compiles it when it is asked
// for. As a driver would, it refuses kernels that have no PTX, which are those with matrix instructions.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "backends/hip/api.h"
#include "tests/mock_hip/code_object.h"
#include "tests/ptx_hip/cuda.h"

#define API extern "C" __attribute__((visibility("default")))

namespace ptx_hip {

static Cuda open_cuda() {
  Cuda driver;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  driver.found = library != nullptr;
#define DRIVER(name, symbol, ...)                                                                    \
  driver.name = library ? reinterpret_cast<int (*)(__VA_ARGS__)>(dlsym(library, #symbol)) : nullptr; \
  driver.found = driver.found && driver.name;
  PTX_HIP_DRIVER
#undef DRIVER
  if (driver.found) driver.found = driver.init(0) == 0;
  return driver;
}

const Cuda& cuda() {
  static const Cuda driver = open_cuda();
  return driver;
}

constexpr int kNoDevice = 100, kNotFound = 500;
constexpr uint64_t kSharedBytes = 48 * 1024;  // of a group, without asking for more

static std::string folder() {
  if (const char* named = std::getenv("PTX_HIP_FOLDER")) return named;
  Dl_info own;
  if (!dladdr(reinterpret_cast<void*>(&folder), &own)) return "ptx";
  const std::string path = own.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + "ptx";
}

struct Module {
  mock_hip::CodeObject object;
  std::vector<void*> modules;  // CUDA's, one for each kernel that was asked for
};

// Compiles a kernel's PTX. What the driver's compiler says of a refused one goes to standard error.
static int compile(Module& module, const char* name, void** function) {
  std::ifstream file(folder() + "/" + name + ".ptx");
  if (!file) {
    std::fprintf(stderr, "ptx_hip: there is no %s/%s.ptx\n", folder().c_str(), name);
    return kNotFound;
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  char log[4096] = "";
  int options[] = {kCudaErrorLog, kCudaErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  void* loaded = nullptr;
  if (const int error = cuda().load_module(&loaded, text.c_str(), 2, options, values)) {
    std::fprintf(stderr, "ptx_hip: %s: error %d: %s\n", name, error, log);
    return error;
  }
  module.modules.push_back(loaded);
  return cuda().function(function, loaded, name);
}

}  // namespace ptx_hip

using namespace ptx_hip;
using greta::HipProperties;

API int hipRuntimeGetVersion(int* version) {
  *version = 71526333;
  return 0;
}

API int hipGetDeviceCount(int* count) {
  *count = 0;
  if (!cuda().found) return kNoDevice;
  if (const int error = cuda().device_count(count)) return error;
  return *count ? 0 : kNoDevice;
}

API const char* hipGetErrorName(int error) {
  const char* name = nullptr;
  return cuda().found && !cuda().error_name(error, &name) && name ? name : "unknown error";
}
API const char* hipGetErrorString(int error) {
  const char* text = nullptr;
  return cuda().found && !cuda().error_text(error, &text) && text ? text : "unknown error";
}
API int hipGetLastError() { return 0; }

// A thread of a HIP program begins with device 0; one of CUDA's driver begins with none.
static thread_local int current = -1;

API int hipSetDevice(int index) {
  int device = 0;
  if (const int error = cuda().device(&device, index)) return error;
  void* context = nullptr;
  if (const int error = cuda().retain_context(&context, device)) return error;
  current = index;
  return cuda().set_context(context);
}
API int hipGetDevice(int* device) {
  if (current < 0)
    if (const int error = hipSetDevice(0)) return error;
  *device = current;
  return 0;
}

API int hipGetDevicePropertiesR0600(HipProperties* properties, int index) {
  int device = 0, units = 0;
  size_t bytes = 0;
  if (const int error = cuda().device(&device, index)) return error;
  if (const int error = cuda().device_memory(&bytes, device)) return error;
  if (const int error = cuda().device_attribute(&units, kCudaUnits, device)) return error;
  HipProperties own = {};
  char name[200] = "";
  (void)cuda().device_name(name, sizeof name, device);
  std::snprintf(own.name, sizeof own.name, "%s as a stand-in", name);
  std::snprintf(own.arch, sizeof own.arch, "gfx1100");
  own.memory_bytes = bytes;
  own.shared_bytes = kSharedBytes;
  own.lanes = 32;
  own.max_threads = 1024;
  own.max_grid[0] = 0x7fffffff;
  own.max_grid[1] = own.max_grid[2] = 65535;
  own.units = units;
  std::memcpy(properties, &own, 1472);  // the size of HIP 6's structure
  return 0;
}

API int hipMemGetInfo(size_t* free_bytes, size_t* all) { return cuda().memory_info(free_bytes, all); }
API int hipMalloc(void** pointer, size_t bytes) { return cuda().allocate(pointer, bytes); }
API int hipFree(void* pointer) { return pointer ? cuda().release(pointer) : 0; }
API int hipHostMalloc(void** pointer, size_t bytes, unsigned) {
  constexpr unsigned kPortableAndMapped = 3;
  return cuda().allocate_host(pointer, bytes, kPortableAndMapped);
}
API int hipHostFree(void* pointer) { return pointer ? cuda().release_host(pointer) : 0; }
API int hipHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return cuda().register_host(pointer, bytes, flags);
}
API int hipHostUnregister(void* pointer) { return cuda().unregister_host(pointer); }
API int hipHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return cuda().host_address(device, host, flags);
}

API int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  return cuda().create_stream(stream, flags);
}
API int hipStreamDestroy(void* stream) { return cuda().destroy_stream(stream); }
API int hipStreamWaitEvent(void* stream, void* event, unsigned) {
  return cuda().wait_event(stream, event, 0);
}
API int hipMemcpyAsync(void* to, const void* from, size_t bytes, int, void* stream) {
  return cuda().copy(to, from, bytes, stream);
}
API int hipMemsetD32Async(void* to, int word, size_t count, void* stream) {
  return cuda().fill(to, unsigned(word), count, stream);
}

API int hipEventCreateWithFlags(void** event, unsigned flags) { return cuda().create_event(event, flags); }
API int hipEventDestroy(void* event) { return cuda().destroy_event(event); }
API int hipEventRecord(void* event, void* stream) { return cuda().record_event(event, stream); }
API int hipEventQuery(void* event) { return cuda().query_event(event); }
API int hipEventElapsedTime(float* ms, void* from, void* to) { return cuda().elapsed(ms, from, to); }

API int hipModuleLoadData(void** out, const void* bytes) {
  Module* const module = new Module;
  const std::string wrong = module->object.parse(static_cast<const uint8_t*>(bytes));
  if (!wrong.empty()) {
    delete module;
    return greta::kHipInvalidImage;
  }
  // NVIDIA's GPUs lack AMD's matrix instructions.
  for (const mock_hip::KernelMetadata& kernel : module->object.kernels)
    if ((kernel.name + "_").find("_wmma_") != std::string::npos) {
      delete module;
      return greta::kHipNoBinaryForGpu;
    }
  *out = module;
  return 0;
}
API int hipModuleUnload(void* handle) {
  Module* const module = static_cast<Module*>(handle);
  for (void* loaded : module->modules) (void)cuda().unload_module(loaded);
  delete module;
  return 0;
}
API int hipModuleGetFunction(void** function, void* handle, const char* name) {
  Module& module = *static_cast<Module*>(handle);
  return module.object.find(name) ? compile(module, name, function) : kNotFound;
}

API int hipModuleLaunchKernel(void* function, unsigned groups_x, unsigned groups_y, unsigned groups_z,
                              unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared,
                              void* stream, void** parameters, void** extra) {
  void* copied[5] = {};  // CUDA's list ends with 0, HIP's with 3; the other marks are the same
  for (int i = 0; extra && i < 4 && extra[i] != greta::kHipLaunchEnd; ++i) copied[i] = extra[i];
  return cuda().launch(function, groups_x, groups_y, groups_z, threads_x, threads_y, threads_z, shared,
                       stream, parameters, extra ? copied : nullptr);
}

// A kernel's parameters begin at the same places in both.
API int hipModuleLaunchCooperativeKernel(void* function, unsigned groups_x, unsigned groups_y,
                                         unsigned groups_z, unsigned threads_x, unsigned threads_y,
                                         unsigned threads_z, unsigned shared, void* stream,
                                         void** parameters) {
  return cuda().launch_cooperative(function, groups_x, groups_y, groups_z, threads_x, threads_y, threads_z,
                                   shared, stream, parameters);
}
API int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* groups, void* function, int threads,
                                                           size_t shared) {
  return cuda().occupancy(groups, function, threads, shared);
}

API int hipStreamBeginCapture(void* stream, int mode) { return cuda().begin_capture(stream, mode); }
API int hipStreamEndCapture(void* stream, void** graph) { return cuda().end_capture(stream, graph); }
API int hipGraphInstantiate(void** executable, void* graph, void**, char*, size_t) {
  return cuda().instantiate(executable, graph, 0);
}
API int hipGraphLaunch(void* executable, void* stream) { return cuda().launch_graph(executable, stream); }
API int hipGraphDestroy(void* graph) { return cuda().destroy_graph(graph); }
API int hipGraphExecDestroy(void* executable) { return cuda().destroy_executable(executable); }
