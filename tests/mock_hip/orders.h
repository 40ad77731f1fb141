// What the environment tells the mock runtime to be and to do wrong. It is read again at every call, so that
// a test can change it.
//
//   MOCK_HIP_ARCH     gcnArchName of the devices, with commas between them (default
//   "gfx942:sramecc+:xnack-");
//                     "none": there is no device
//   MOCK_HIP_VERSION  what hipRuntimeGetVersion answers (default 71526333, which is 7.15.26333 of ROCm 10).
//                     Below 6.4 code objects of version 6 are refused; below 7.14 graphs of captures at the
//                     same time lack a node
//   MOCK_HIP_MEMORY   bytes of memory of each device (default 4 GiB)
//   MOCK_HIP_UNITS    compute units of each device (default 8)
//   MOCK_HIP_SHARED   bytes of shared memory of a group that each device says it has (default 64 KiB)
//   MOCK_HIP_WRONG_MATRICES  1: matrix instructions add no products
//   MOCK_HIP_SEED     in which order streams, waves and lanes run (default 0)
//   MOCK_HIP_THREADS  how many threads run a launch (default: as many as there are processors, at most 4)
//   MOCK_HIP_INTEGRATED  1: the devices are APUs
//   MOCK_HIP_FAIL     "function calls error": after so many calls, this function always fails with this
//                     number, or with "function calls error times" so many times; several with commas
//                     between them
//   MOCK_HIP_HANG     n: the n-th launch that runs from now on never ends
//   MOCK_HIP_DIES     over how many dies the groups of a cooperative launch are spread (default 1)
//   MOCK_HIP_RESIDENT how many groups of a cooperative launch stay side by side (default: all)
//   MOCK_HIP_GRID     what the last group of a cooperative launch does wrong: "stuck n": it ends behind
//                     meeting n of the groups; "lost n": it is not counted at meeting n; "further": it
//                     waits for one more
//   MOCK_HIP_FAULT    n: the n-th launch that runs from now on reads a page that is not there
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mock_hip {

// Values of hipError_t.
enum Error : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchTimeOut = 702,
  kHostMemoryAlreadyRegistered = 712,
  kLaunchFailure = 719,
  kCooperativeTooLarge = 720,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kUnknown = 999,
};

extern bool wrong_matrices;  // what launches are told (lane_emulator.cpp)

std::vector<std::string> archs();  // of the devices; empty if there is none
uint64_t number(const char* variable, uint64_t otherwise);
int ordered_failure(const char* function);  // the error with which this call must fail, or 0
enum class Launch { Runs, Hangs, Faults };
Launch next_launch();  // what becomes of the next launch that runs

}  // namespace mock_hip
