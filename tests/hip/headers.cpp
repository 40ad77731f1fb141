// Compares what the backend declares of HIP with HIP's own headers, at compile time. Compiled once for each
// folder of GRETA_HIP_HEADERS.
#define __HIP_PLATFORM_AMD__
#define __HIP_DISABLE_CPP_FUNCTIONS__
#include <hip/hip_runtime_api.h>
#include <hsa/hsa_ext_amd.h>

#include <cstddef>
#include <type_traits>

#include "backends/hip/api.h"

namespace greta {

// Whether two types are passed alike: pointers of any kind, or numbers of one size.
template <class A, class B>
constexpr bool passed_alike() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>)
    return std::is_void_v<A> && std::is_void_v<B>;
  else
    return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}

template <class Ours, class Theirs>
struct CalledAlike : std::false_type {};
template <class Result, class... Arguments, class TheirResult, class... TheirArguments>
  requires(sizeof...(Arguments) == sizeof...(TheirArguments))
struct CalledAlike<Result(Arguments...), TheirResult(TheirArguments...)>
    : std::bool_constant<passed_alike<Result, TheirResult>() &&
                         (passed_alike<Arguments, TheirArguments>() && ...)> {};

#define NEED(result, name, ...) \
  static_assert(CalledAlike<result(__VA_ARGS__), decltype(::name)>::value, #name " has another signature");
#define WANT(result, name, ...) NEED(result, name, __VA_ARGS__)
#include "backends/hip/symbols.def"

using Theirs = hipDeviceProp_tR0600;
static_assert(sizeof(Theirs) <= sizeof(HipProperties));
#define SAME_PLACE(ours, theirs)                                            \
  static_assert(offsetof(HipProperties, ours) == offsetof(Theirs, theirs)); \
  static_assert(sizeof(HipProperties::ours) == sizeof(Theirs::theirs))
SAME_PLACE(name, name);
SAME_PLACE(memory_bytes, totalGlobalMem);
SAME_PLACE(shared_bytes, sharedMemPerBlock);
SAME_PLACE(lanes, warpSize);
SAME_PLACE(max_threads, maxThreadsPerBlock);
SAME_PLACE(max_grid, maxGridSize);
SAME_PLACE(units, multiProcessorCount);
SAME_PLACE(integrated, integrated);
SAME_PLACE(pci_bus, pciBusID);
SAME_PLACE(pci_device, pciDeviceID);
SAME_PLACE(pci_domain, pciDomainID);
SAME_PLACE(arch, gcnArchName);

static_assert(kHipSuccess == int(hipSuccess) && kHipInvalidValue == int(hipErrorInvalidValue));
static_assert(kHipOutOfMemory == int(hipErrorOutOfMemory) && kHipInvalidImage == int(hipErrorInvalidImage));
static_assert(kHipNoBinaryForGpu == int(hipErrorNoBinaryForGpu) && kHipNotReady == int(hipErrorNotReady));
static_assert(kHipFunctionSharedBytes == int(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
static_assert(kHipFunctionPrivateBytes == int(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
static_assert(kHipFunctionRegisters == int(HIP_FUNC_ATTRIBUTE_NUM_REGS));
static_assert(kHipUncorrectableMemory == int(hipErrorECCNotCorrectable));
static_assert(kHipIllegalAddress == int(hipErrorIllegalAddress) && kHipUnknown == int(hipErrorUnknown));
static_assert(kHipLaunchTimeOut == int(hipErrorLaunchTimeOut));
static_assert(kHipLaunchFailure == int(hipErrorLaunchFailure));
static_assert(kHipHostToDevice == hipMemcpyHostToDevice && kHipDeviceToHost == hipMemcpyDeviceToHost);
static_assert(kHipDeviceToDevice == hipMemcpyDeviceToDevice && kHipAnyToAny == hipMemcpyDefault);
static_assert(kHipNonBlockingStream == hipStreamNonBlocking && kHipEventWithoutTime == hipEventDisableTiming);
static_assert(kHipHostRegisterMapped == hipHostRegisterMapped);
static_assert(kHipCaptureOfThread == hipStreamCaptureModeThreadLocal);
static_assert(kHipCaptureRelaxed == hipStreamCaptureModeRelaxed);
static_assert(kHipCaptureUnsupported == int(hipErrorStreamCaptureUnsupported));
static_assert(kHipCaptureInvalidated == int(hipErrorStreamCaptureInvalidated));

static_assert(offsetof(HsaEvent, type) == offsetof(hsa_amd_event_t, event_type));
static_assert(offsetof(HsaEvent, agent) == offsetof(hsa_amd_event_t, memory_fault.agent));
static_assert(offsetof(HsaEvent, address) == offsetof(hsa_amd_event_t, memory_fault.virtual_address));
static_assert(offsetof(HsaEvent, reason_mask) == offsetof(hsa_amd_event_t, memory_fault.fault_reason_mask));
static_assert(kHsaMemoryFault == HSA_AMD_GPU_MEMORY_FAULT_EVENT);
static_assert(kHsaHardwareException == HSA_AMD_GPU_HW_EXCEPTION_EVENT);
static_assert(kHsaMemoryError == HSA_AMD_GPU_MEMORY_ERROR_EVENT);

}  // namespace greta
