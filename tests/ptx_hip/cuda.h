// The part of the CUDA driver's binary interface that the stand-in calls.
#pragma once
#include <cstddef>

namespace ptx_hip {

// DRIVER(name, symbol, argument types): every function, by the name that this file gives it.
#define PTX_HIP_DRIVER                                                                              \
  DRIVER(init, cuInit, unsigned)                                                                    \
  DRIVER(device_count, cuDeviceGetCount, int*)                                                      \
  DRIVER(device, cuDeviceGet, int*, int)                                                            \
  DRIVER(device_name, cuDeviceGetName, char*, int, int)                                             \
  DRIVER(device_memory, cuDeviceTotalMem_v2, size_t*, int)                                          \
  DRIVER(device_attribute, cuDeviceGetAttribute, int*, int, int)                                    \
  DRIVER(retain_context, cuDevicePrimaryCtxRetain, void**, int)                                     \
  DRIVER(set_context, cuCtxSetCurrent, void*)                                                       \
  DRIVER(error_name, cuGetErrorName, int, const char**)                                             \
  DRIVER(error_text, cuGetErrorString, int, const char**)                                           \
  DRIVER(memory_info, cuMemGetInfo_v2, size_t*, size_t*)                                            \
  DRIVER(allocate, cuMemAlloc_v2, void**, size_t)                                                   \
  DRIVER(release, cuMemFree_v2, void*)                                                              \
  DRIVER(allocate_host, cuMemHostAlloc, void**, size_t, unsigned)                                   \
  DRIVER(release_host, cuMemFreeHost, void*)                                                        \
  DRIVER(register_host, cuMemHostRegister_v2, void*, size_t, unsigned)                              \
  DRIVER(unregister_host, cuMemHostUnregister, void*)                                               \
  DRIVER(host_address, cuMemHostGetDevicePointer_v2, void**, void*, unsigned)                       \
  DRIVER(create_stream, cuStreamCreate, void**, unsigned)                                           \
  DRIVER(destroy_stream, cuStreamDestroy_v2, void*)                                                 \
  DRIVER(wait_event, cuStreamWaitEvent, void*, void*, unsigned)                                     \
  DRIVER(copy, cuMemcpyAsync, void*, const void*, size_t, void*)                                    \
  DRIVER(fill, cuMemsetD32Async, void*, unsigned, size_t, void*)                                    \
  DRIVER(create_event, cuEventCreate, void**, unsigned)                                             \
  DRIVER(destroy_event, cuEventDestroy_v2, void*)                                                   \
  DRIVER(record_event, cuEventRecord, void*, void*)                                                 \
  DRIVER(query_event, cuEventQuery, void*)                                                          \
  DRIVER(elapsed, cuEventElapsedTime, float*, void*, void*)                                         \
  DRIVER(load_module, cuModuleLoadDataEx, void**, const void*, unsigned, int*, void**)              \
  DRIVER(unload_module, cuModuleUnload, void*)                                                      \
  DRIVER(function, cuModuleGetFunction, void**, void*, const char*)                                 \
  DRIVER(launch, cuLaunchKernel, void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
         unsigned, void*, void**, void**)                                                           \
  DRIVER(launch_cooperative, cuLaunchCooperativeKernel, void*, unsigned, unsigned, unsigned, unsigned, \
         unsigned, unsigned, unsigned, void*, void**)                                               \
  DRIVER(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor, int*, void*, int, size_t)          \
  DRIVER(begin_capture, cuStreamBeginCapture_v2, void*, int)                                        \
  DRIVER(end_capture, cuStreamEndCapture, void*, void**)                                            \
  DRIVER(instantiate, cuGraphInstantiateWithFlags, void**, void*, unsigned long long)               \
  DRIVER(launch_graph, cuGraphLaunch, void*, void*)                                                 \
  DRIVER(destroy_graph, cuGraphDestroy, void*)                                                      \
  DRIVER(destroy_executable, cuGraphExecDestroy, void*)

struct Cuda {
#define DRIVER(name, symbol, ...) int (*name)(__VA_ARGS__) = nullptr;
  PTX_HIP_DRIVER
#undef DRIVER
  bool found = false;  // the driver, and all of these in it
};

const Cuda& cuda();  // opens libcuda.so.1 at the first call

constexpr int kCudaUnits = 16;  // attribute: multiprocessors
constexpr int kCudaInfoLog = 3, kCudaInfoLogBytes = 4, kCudaErrorLog = 5, kCudaErrorLogBytes = 6;

}  // namespace ptx_hip
