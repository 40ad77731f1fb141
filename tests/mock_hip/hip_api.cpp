// The mock of libamdhip64.so: the functions of a HIP runtime that GRETA calls, for a machine without an AMD
// GPU. A module is a real code object, and every launch is checked against its metadata. What runs is the
// same kernel source, compiled for the host (lane_emulator.h), when the host waits for it (streams.h). The
// environment says what the runtime is and what fails (orders.h).
//
//   mock_hip_fault()    what the last refused call did wrong, in words; hipGetErrorString says it too
//   mock_hip_streams()  how many streams are open
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "runtime/gfx_family.h"
#include "tests/mock_hip/code_object.h"
#include "tests/mock_hip/launch.h"
#include "tests/mock_hip/memory.h"
#include "tests/mock_hip/orders.h"
#include "tests/mock_hip/streams.h"

#define API extern "C" __attribute__((visibility("default")))

namespace mock_hip {

constexpr int kFunctionSharedBytes = 1, kFunctionPrivateBytes = 3, kFunctionRegisters = 4;

static int version_number() { return int(number("MOCK_HIP_VERSION", 71526333)); }

unsigned units() { return unsigned(number("MOCK_HIP_UNITS", 8)); }

static thread_local std::string fault_text;
static thread_local int last_error = 0;
static thread_local int current_device = 0;

static int refuse(int error, const std::string& text) {
  fault_text = text;
  return last_error = error;
}

static bool has_device(int device) { return device >= 0 && size_t(device) < archs().size(); }

static std::string target_of(int device) {
  const std::string name = archs()[size_t(device)];
  return name.substr(0, name.find(':'));
}

struct Module {
  CodeObject object;
  std::vector<Function*> functions;
  ~Module() {
    for (Function* function : functions) delete function;
  }
};

static int (*system_event_handler)(const void*, void*) = nullptr;
static void* system_event_data = nullptr;

// What ROCr does at a page fault: without a handler it ends the process.
static std::string page_fault() {
  struct {
    uint32_t type = 0;
    uint64_t agent = 1, address = 0xdead000;
    uint32_t reason = 1;
  } event;
  if (!system_event_handler || system_event_handler(&event, system_event_data)) std::abort();
  return kHangs;
}

static int answer_of(const Stream& stream) {
  return stream.error ? refuse(stream.error, stream.wrong.empty() ? "not ready" : stream.wrong)
                      : int(kSuccess);
}

}  // namespace mock_hip

using namespace mock_hip;

// Every function begins with it: takes the lock, and fails if it was ordered to.
#define ENTER(name)                                                        \
  const std::lock_guard<std::recursive_mutex> runtime_lock(runtime_mutex); \
  if (const int ordered = ordered_failure(name)) return refuse(ordered, name " was told to fail")

// And those that a capture does not allow.
#define ENTER_OUTSIDE(name) \
  ENTER(name);              \
  if (forbidden_by_a_capture()) return refuse(kStreamCaptureUnsupported, name " during a capture")

API const char* mock_hip_fault() { return fault_text.c_str(); }
API size_t mock_hip_streams() {
  const std::lock_guard<std::recursive_mutex> runtime_lock(runtime_mutex);
  return stream_count();
}

API int hsa_amd_register_system_event_handler(int (*handler)(const void*, void*), void* data) {
  system_event_handler = handler;
  system_event_data = data;
  return 0;
}

API int hipInit(unsigned) {
  ENTER("hipInit");
  return has_device(0) ? kSuccess : refuse(kNoDevice, "there is no device");
}

API int hipGetDeviceCount(int* count) {
  ENTER("hipGetDeviceCount");
  *count = int(archs().size());
  return *count ? kSuccess : refuse(kNoDevice, "there is no device");
}

API int hipGetDevice(int* device) {
  *device = current_device;
  return has_device(0) ? kSuccess : refuse(kNoDevice, "there is no device");
}

API int hipSetDevice(int device) {
  ENTER("hipSetDevice");
  if (!has_device(device)) return refuse(kInvalidDevice, "there is no such device");
  current_device = device;
  return kSuccess;
}

API int hipRuntimeGetVersion(int* version) {
  *version = version_number();
  return kSuccess;
}

API int hipGetLastError() { return std::exchange(last_error, int(kSuccess)); }

API const char* hipGetErrorName(int error) {
  switch (error) {
#define NAME(value) \
  case k##value:    \
    return "hipError" #value;
    NAME(InvalidValue)
    NAME(OutOfMemory)
    NAME(NoDevice)
    NAME(InvalidDevice)
    NAME(InvalidImage)
    NAME(NoBinaryForGpu)
    NAME(InvalidHandle)
    NAME(NotFound)
    NAME(NotReady)
    NAME(IllegalAddress)
    NAME(LaunchTimeOut)
    NAME(HostMemoryAlreadyRegistered)
    NAME(LaunchFailure)
    NAME(StreamCaptureUnsupported)
    NAME(StreamCaptureInvalidated)
#undef NAME
    case kSuccess:
      return "hipSuccess";
  }
  return "hipErrorUnknown";
}

// The mock says in words what was wrong, where a real runtime has a sentence for each error.
API const char* hipGetErrorString(int error) {
  return error && !fault_text.empty() ? fault_text.c_str() : "no error";
}

// The properties of HIP 6 and newer; only the fields at these offsets are filled in.
API int hipGetDevicePropertiesR0600(void* properties, int device) {
  ENTER("hipGetDevicePropertiesR0600");
  if (!has_device(device)) return refuse(kInvalidDevice, "there is no such device");
  constexpr uint64_t kBytes = 1472;
  uint8_t* out = static_cast<uint8_t*>(properties);
  const auto put = [&](size_t offset, auto value) { std::memcpy(out + offset, &value, sizeof value); };
  std::memset(out, 0, kBytes);
  const std::string target = target_of(device);
  std::snprintf(reinterpret_cast<char*>(out), 256, "Mock GPU %s", target.c_str());
  put(288, device_bytes());
  put(296, number("MOCK_HIP_SHARED", 64 << 10));           // sharedMemPerBlock
  put(308, target.starts_with("gfx9") ? 64 : 32);          // warpSize
  put(320, 1024);                                          // maxThreadsPerBlock
  put(336, 0x7fffffff), put(340, 65536), put(344, 65536);  // maxGridSize
  put(388, int(units()));                                  // multiProcessorCount
  put(396, int(number("MOCK_HIP_INTEGRATED", 0)));
  put(584, 3 + device);  // pciBusID
  std::snprintf(reinterpret_cast<char*>(out + 1160), 256, "%s", archs()[size_t(device)].c_str());
  return kSuccess;
}

API int hipMemGetInfo(size_t* free, size_t* total) {
  ENTER("hipMemGetInfo");
  *free = free_bytes(current_device);
  *total = device_bytes();
  return kSuccess;
}

API int hipMalloc(void** pointer, size_t bytes) {
  ENTER_OUTSIDE("hipMalloc");
  *pointer = allocate_device(current_device, bytes);
  if (*pointer) return kSuccess;
  return refuse(kOutOfMemory, "hipMalloc: no room for " + std::to_string(bytes) + " bytes");
}

// Frees wait for all work, as those of the driver do.
API int hipFree(void* pointer) {
  ENTER_OUTSIDE("hipFree");
  (void)finish_all();
  return !pointer || release_device(pointer) ? kSuccess : refuse(kInvalidValue, "hipFree: not allocated");
}

API int hipHostMalloc(void** pointer, size_t bytes, unsigned) {
  ENTER_OUTSIDE("hipHostMalloc");
  *pointer = allocate_pinned(bytes);
  if (*pointer) return kSuccess;
  return refuse(kOutOfMemory, "hipHostMalloc: no room for " + std::to_string(bytes) + " bytes");
}

API int hipHostFree(void* pointer) {
  ENTER_OUTSIDE("hipHostFree");
  (void)finish_all();
  return !pointer || release_pinned(pointer) ? kSuccess : refuse(kInvalidValue, "hipHostFree: not allocated");
}

API int hipHostRegister(void* pointer, size_t bytes, unsigned) {
  ENTER_OUTSIDE("hipHostRegister");
  // Runtimes stall or hang on more.
  if (bytes > (size_t(1) << 30)) return refuse(kInvalidValue, "hipHostRegister: more than 1 GiB at once");
  if (register_host(pointer, bytes)) return kSuccess;
  return refuse(kHostMemoryAlreadyRegistered, "hipHostRegister: these pages are registered");
}

API int hipHostUnregister(void* pointer) {
  ENTER_OUTSIDE("hipHostUnregister");
  (void)finish_all();
  return unregister_host(pointer) ? kSuccess : refuse(kInvalidValue, "hipHostUnregister: not registered");
}

API int hipHostGetDevicePointer(void** seen, void* pointer, unsigned) {
  ENTER("hipHostGetDevicePointer");
  if (!is_pinned(pointer, 1)) return refuse(kInvalidValue, "hipHostGetDevicePointer: not pinned");
  *seen = pointer;
  return kSuccess;
}

API int hipStreamCreateWithFlags(void** stream, unsigned) {
  ENTER_OUTSIDE("hipStreamCreateWithFlags");
  *stream = new_stream(current_device);
  return kSuccess;
}

API int hipStreamDestroy(void* stream) {
  ENTER_OUTSIDE("hipStreamDestroy");
  const int error = finish(*static_cast<Stream*>(stream));
  if (!error) delete_stream(static_cast<Stream*>(stream));  // others may wait for the signals of a broken one
  return error;
}

API int hipStreamSynchronize(void* handle) {
  ENTER_OUTSIDE("hipStreamSynchronize");
  Stream& stream = *static_cast<Stream*>(handle);
  const int error = finish(stream);
  return stream.error ? answer_of(stream) : error;
}

API int hipStreamWaitEvent(void* handle, void* event, unsigned) {
  ENTER("hipStreamWaitEvent");
  if (const std::shared_ptr<Signal>& last = static_cast<Event*>(event)->last)
    give(*static_cast<Stream*>(handle), {{}, last, {}, nullptr});
  return kSuccess;
}

// Memory that is not pinned is copied at once, after all work of the stream.
API int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* handle) {
  ENTER("hipMemcpyAsync");
  constexpr int kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3;
  if ((kind == kHostToDevice || kind == kDeviceToDevice) && !is_device(to, bytes))
    return refuse(kInvalidValue, "hipMemcpyAsync: the destination is not device memory");
  if ((kind == kDeviceToHost || kind == kDeviceToDevice) && !is_device(from, bytes))
    return refuse(kInvalidValue, "hipMemcpyAsync: the source is not device memory");
  Stream& stream = *static_cast<Stream*>(handle);
  const auto copy = [=] {
    std::memmove(to, from, bytes);
    return std::string();
  };
  if (is_device_visible(to, bytes) && is_device_visible(from, bytes)) {
    give(stream, {copy, {}, {}, nullptr});
    return kSuccess;
  }
  if (stream.capture) return refuse(kStreamCaptureUnsupported, "a copy of memory that is not pinned");
  if (finish(stream)) return answer_of(stream);
  copy();
  return kSuccess;
}

API int hipMemsetD32Async(void* to, int word, size_t count, void* handle) {
  ENTER("hipMemsetD32Async");
  if (!is_device_visible(to, count * 4)) return refuse(kInvalidValue, "hipMemsetD32Async: not device memory");
  const auto fill = [=] {
    for (size_t i = 0; i < count; ++i) std::memcpy(static_cast<char*>(to) + 4 * i, &word, 4);
    return std::string();
  };
  give(*static_cast<Stream*>(handle), {fill, {}, {}, nullptr});
  return kSuccess;
}

API int hipEventCreateWithFlags(void** event, unsigned flags) {
  ENTER_OUTSIDE("hipEventCreateWithFlags");
  constexpr unsigned kWithoutTime = 2;
  auto* made = new Event;
  made->timed = !(flags & kWithoutTime);
  *event = made;
  return kSuccess;
}

API int hipEventDestroy(void* event) {
  ENTER("hipEventDestroy");
  delete static_cast<Event*>(event);
  return kSuccess;
}

API int hipEventRecord(void* event, void* handle) {
  ENTER_OUTSIDE("hipEventRecord");
  auto signal = std::make_shared<Signal>();
  signal->stream = static_cast<Stream*>(handle);
  static_cast<Event*>(event)->last = signal;
  give(*signal->stream, {{}, {}, signal, nullptr});
  return kSuccess;
}

API int hipEventQuery(void* event) {
  ENTER_OUTSIDE("hipEventQuery");
  const std::shared_ptr<Signal> signal = static_cast<Event*>(event)->last;
  if (!signal || signal->done) return kSuccess;
  (void)step_towards(*signal->stream);
  if (signal->done) return kSuccess;
  if (signal->stream->error) return answer_of(*signal->stream);
  return refuse(kNotReady, "not ready");
}

API int hipEventElapsedTime(float* ms, void* from, void* to) {
  ENTER("hipEventElapsedTime");
  const auto *first = static_cast<Event*>(from), *last = static_cast<Event*>(to);
  if (!first->timed || !last->timed || !first->last || !last->last)
    return refuse(kInvalidHandle, "hipEventElapsedTime: an event has no time");
  if (!first->last->done || !last->last->done) return refuse(kNotReady, "not ready");
  *ms = float((double(last->last->at_ns) - double(first->last->at_ns)) / 1e6);
  return kSuccess;
}

API int hipModuleLoadData(void** module, const void* image) {
  ENTER_OUTSIDE("hipModuleLoadData");
  auto loaded = std::make_unique<Module>();
  std::string wrong = loaded->object.parse(static_cast<const uint8_t*>(image));
  constexpr size_t kAbiVersionAt = 8;
  constexpr uint8_t kCodeObject6 = 4;
  if (wrong.empty() && static_cast<const uint8_t*>(image)[kAbiVersionAt] >= kCodeObject6 &&
      version_number() < 60400000)
    wrong = "code object 6 needs HIP 6.4";
  const std::string target = target_of(current_device);
  if (wrong.empty() && !greta::runs_on(loaded->object.target, target))
    wrong = "a code object for " + loaded->object.target + " on a " + target;
  if (!wrong.empty()) return refuse(kNoBinaryForGpu, "hipModuleLoadData: " + wrong);
  *module = loaded.release();
  return kSuccess;
}

API int hipModuleUnload(void* module) {
  ENTER_OUTSIDE("hipModuleUnload");
  (void)finish_all();
  delete static_cast<Module*>(module);
  return kSuccess;
}

API int hipModuleGetFunction(void** function, void* module, const char* name) {
  ENTER("hipModuleGetFunction");
  auto* from = static_cast<Module*>(module);
  const KernelMetadata* metadata = from->object.find(name);
  if (!metadata) return refuse(kNotFound, std::string("hipModuleGetFunction: no kernel ") + name);
  const HostKernel* host = find_kernel(name, from->object.target.c_str());
  if (!host) return refuse(kNotFound, std::string("hipModuleGetFunction: no host build of ") + name);
  from->functions.push_back(new Function{metadata, host});
  *function = from->functions.back();
  return kSuccess;
}

API int hipFuncGetAttribute(int* value, int attribute, const void* function) {
  ENTER("hipFuncGetAttribute");
  const KernelMetadata& metadata = *static_cast<const Function*>(function)->metadata;
  const uint64_t of[] = {0, metadata.shared_bytes, 0, metadata.private_bytes, metadata.vgprs};
  if (attribute != kFunctionSharedBytes && attribute != kFunctionPrivateBytes &&
      attribute != kFunctionRegisters)
    return refuse(kInvalidValue, "hipFuncGetAttribute: an attribute");
  *value = int(of[attribute]);
  return kSuccess;
}

static int give_launch(void* handle, KernelLaunch launch) {
  const auto run = [launch = std::move(launch)]() -> std::string {
    const Launch order = next_launch();
    wrong_matrices = number("MOCK_HIP_WRONG_MATRICES", 0) != 0;
    if (order == Launch::Hangs) return kHangs;
    return order == Launch::Faults ? page_fault() : run_launch(launch);
  };
  give(*static_cast<Stream*>(handle), {run, {}, {}, nullptr});
  return kSuccess;
}

API int hipModuleLaunchKernel(void* function, unsigned groups_x, unsigned groups_y, unsigned groups_z,
                              unsigned threads_x, unsigned threads_y, unsigned threads_z,
                              unsigned shared_bytes, void* handle, void** parameters, void** extra) {
  ENTER("hipModuleLaunchKernel");
  KernelLaunch launch;
  const std::string wrong =
      make_launch(*static_cast<Function*>(function), {groups_x, groups_y, groups_z},
                  threads_x * threads_y * threads_z, shared_bytes, parameters, extra, &launch);
  return wrong.empty() ? give_launch(handle, std::move(launch)) : refuse(kInvalidValue, wrong);
}

API int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* groups, void*, int, size_t) {
  ENTER("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor");
  *groups = 1;
  return kSuccess;
}

API int hipModuleLaunchCooperativeKernel(void* function, unsigned groups_x, unsigned groups_y,
                                         unsigned groups_z, unsigned threads_x, unsigned threads_y,
                                         unsigned threads_z, unsigned shared_bytes, void* handle,
                                         void** parameters) {
  ENTER("hipModuleLaunchCooperativeKernel");
  const unsigned groups = groups_x * groups_y * groups_z;
  if (groups > units()) return refuse(kCooperativeTooLarge, "more groups than stay side by side");
  KernelLaunch launch;
  const std::string wrong =
      make_launch(*static_cast<Function*>(function), {groups_x, groups_y, groups_z},
                  threads_x * threads_y * threads_z, shared_bytes, parameters, nullptr, &launch);
  if (!wrong.empty()) return refuse(kInvalidValue, wrong);
  launch.resident = unsigned(number("MOCK_HIP_RESIDENT", groups));
  return give_launch(handle, std::move(launch));
}

API int hipThreadExchangeStreamCaptureMode(int* mode) {
  ENTER("hipThreadExchangeStreamCaptureMode");
  *mode = exchange_capture_mode(*mode);
  return kSuccess;
}

API int hipStreamBeginCapture(void* handle, int mode) {
  ENTER_OUTSIDE("hipStreamBeginCapture");
  begin_capture(*static_cast<Stream*>(handle), mode);
  return kSuccess;
}

API int hipStreamEndCapture(void* handle, void** graph) {
  const std::lock_guard<std::recursive_mutex> runtime_lock(runtime_mutex);
  std::unique_ptr<Graph> captured(end_capture(*static_cast<Stream*>(handle)));
  *graph = nullptr;
  if (const int ordered = ordered_failure("hipStreamEndCapture")) return refuse(ordered, "was told to fail");
  // Before 7.14 nodes of captures at the same time have equal numbers, and some are dropped.
  if (captured && captured->overlapped && version_number() < 71400000 && !captured->tasks.empty())
    captured->tasks.pop_back();
  if (captured && !captured->invalid) return *graph = captured.release(), kSuccess;
  return refuse(kStreamCaptureInvalidated, "hipStreamEndCapture: the capture is invalid");
}

API int hipGraphInstantiate(void** exec, void* graph, void**, char*, size_t) {
  ENTER_OUTSIDE("hipGraphInstantiate");
  auto* made = new Exec;
  made->tasks = static_cast<Graph*>(graph)->tasks;
  *exec = made;
  return kSuccess;
}

API int hipGraphDestroy(void* graph) {
  ENTER_OUTSIDE("hipGraphDestroy");
  delete static_cast<Graph*>(graph);
  return kSuccess;
}

API int hipGraphLaunch(void* handle, void* stream_handle) {
  ENTER_OUTSIDE("hipGraphLaunch");
  auto* exec = static_cast<Exec*>(handle);
  Stream& stream = *static_cast<Stream*>(stream_handle);
  for (size_t i = 0; i < exec->tasks.size(); ++i) {
    Task task = exec->tasks[i];
    if (i + 1 == exec->tasks.size()) task.last_of = exec, ++exec->in_flight;
    give(stream, std::move(task));
  }
  return kSuccess;
}

// The driver frees what a graph that still runs needs, so the mock does not let that pass.
API int hipGraphExecDestroy(void* handle) {
  ENTER_OUTSIDE("hipGraphExecDestroy");
  auto* exec = static_cast<Exec*>(handle);
  if (exec->in_flight) {
    std::fputs("mock_hip: a graph that still runs is destroyed\n", stderr);
    std::abort();
  }
  delete exec;
  return kSuccess;
}
