// ROCm's HIP runtime, which is opened when a device is asked for. Nothing links against it.
#pragma once
#include "backends/hip/api.h"
#include "runtime/device.h"

namespace greta {

class HipLibrary {
 public:
  // Gives the library of `options`, or else the one that the process has loaded, or else the first of the
  // machine that can be used (runtimes.h). It is opened once and stays open until the process ends, since the
  // runtime has threads. Fails with Unsupported and the reasons if there is none.
  static Status get(const DeviceOptions& options, const HipLibrary** out);

  // Makes a status of a driver's answer to the call `what`: Memory if memory ran out, else Device.
  Status result(int error, const char* what) const;
  Status check_process() const { return process_.check(); }
  bool elsewhere() const { return process_.elsewhere(); }
  int version() const;            // 60443484 is 6.4.43484; 0 if the runtime tells none
  uint32_t device_count() const;  // 0 if there is none, or none that this user may open
  // Fails if there is no such device, and says why.
  Status check_index(uint32_t index, const SystemView& system) const;
  void text_of_version(char (&out)[64]) const;  // "HIP 6.4.43484"
  const char* path() const { return path_; }    // of its file

#define NEED(result, name, ...) result (*name)(__VA_ARGS__) = nullptr;
#define WANT(result, name, ...) result (*name)(__VA_ARGS__) = nullptr;
#include "backends/hip/symbols.def"

 private:
  Status open(const DeviceOptions& options);
  Status load(const char* name);
  Status check_version() const;

  Process process_;
  DynamicLibrary library_;
  char path_[256] = {};
};

// Makes a device the calling thread's current one while it lives. The thread may be one of the program that
// GRETA is built into, and have a device of its own. That program may also capture graphs: since HIP 7.0 a
// capture of any thread in the global mode forbids calls to all threads, and such a call spoils the capture.
// So the thread's mode is relaxed meanwhile, in which GRETA's calls and the captures do not concern each
// other.
class HipCurrent {
 public:
  HipCurrent(const HipLibrary& hip, int device);
  ~HipCurrent();
  HipCurrent(const HipCurrent&) = delete;
  HipCurrent& operator=(const HipCurrent&) = delete;
  int error() const { return error_; }

 private:
  const HipLibrary& hip_;
  int before_ = 0, error_ = 0, mode_before_ = kHipCaptureRelaxed;
  bool changed_ = false, relaxed_ = false;
};

}  // namespace greta
