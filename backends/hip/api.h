// The part of HIP's binary interface that the backend uses, as HIP 6 and 7 have it.
// tests/hip/headers_test.cpp compares it with their headers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace greta {

// Values of hipError_t.
enum HipError : int {
  kHipSuccess = 0,
  kHipInvalidValue = 1,
  kHipOutOfMemory = 2,
  kHipInvalidImage = 200,
  kHipNoBinaryForGpu = 209,
  kHipUncorrectableMemory = 214,
  kHipNotReady = 600,
  kHipIllegalAddress = 700,
  kHipLaunchTimeOut = 702,
  kHipLaunchFailure = 719,
  kHipCaptureUnsupported = 900,  // another thread captures, and this call is not allowed meanwhile
  kHipCaptureInvalidated = 901,
  kHipUnknown = 999,
};

constexpr int kHipHostToDevice = 1, kHipDeviceToHost = 2, kHipDeviceToDevice = 3, kHipAnyToAny = 4;
constexpr unsigned kHipNonBlockingStream = 1;
constexpr unsigned kHipEventWithoutTime = 2;
constexpr unsigned kHipHostRegisterMapped = 2;
// Of hipFuncGetAttribute: shared memory of a group, memory of a thread (spilled registers too), registers.
constexpr int kHipFunctionSharedBytes = 1, kHipFunctionPrivateBytes = 3, kHipFunctionRegisters = 4;
constexpr int kHipCaptureOfThread = 1;  // a capture concerns the calls of its own thread
constexpr int kHipCaptureRelaxed = 2;   // of a thread: captures of others forbid it nothing

// The marks in the last argument of hipModuleLaunchKernel.
inline void* const kHipLaunchBuffer = reinterpret_cast<void*>(1);
inline void* const kHipLaunchBytes = reinterpret_cast<void*>(2);
inline void* const kHipLaunchEnd = reinterpret_cast<void*>(3);

// hipDeviceProp_tR0600. Only fields that are used have names.
struct HipProperties {
  char name[256];
  uint8_t unused_256[32];
  uint64_t memory_bytes;  // 288
  uint64_t shared_bytes;  // 296: of a group
  uint32_t unused_304;
  int lanes;  // 308: of a wave
  uint8_t unused_312[8];
  int max_threads;  // 320: of a group
  uint8_t unused_324[12];
  int max_grid[3];  // 336: groups in each direction
  uint8_t unused_348[40];
  int units;  // 388
  uint32_t unused_392;
  int integrated;  // 396: the device's memory is the host's
  uint8_t unused_400[184];
  int pci_bus, pci_device, pci_domain;  // 584
  uint8_t unused_596[564];
  char arch[256];                    // 1160: gcnArchName, "gfx942:sramecc+:xnack-"
  uint8_t unused_1416[4096 - 1416];  // room for what later versions append
};

// hsa_amd_event_t, for a memory fault.
struct HsaEvent {
  uint32_t type;
  uint64_t agent;
  uint64_t address;      // of a memory fault
  uint32_t reason_mask;  // of a memory fault
};
constexpr uint32_t kHsaMemoryFault = 0, kHsaHardwareException = 1, kHsaMemoryError = 2;

}  // namespace greta
