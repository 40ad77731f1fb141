// What is known of a device's kernels: which are compiled, which the driver refuses, whether products by
// matrix instructions are right, and which were measured to be the fastest. A device has one such object,
// which all its models and executors share, so nothing is compiled or tried twice.
#pragma once
#include <condition_variable>
#include <list>
#include <mutex>
#include <vector>

#include "tune/tune.h"

namespace greta {

constexpr uint32_t kMaxCompilers = 16;  // threads that compile kernels at the same time

// It is thread-safe. Kernels stay loaded until it is destroyed, which is before the device and after all
// streams that run them.
class DeviceKernels {
 public:
  explicit DeviceKernels(Device& device) : device_(device) {}
  ~DeviceKernels();
  DeviceKernels(const DeviceKernels&) = delete;
  DeviceKernels& operator=(const DeviceKernels&) = delete;

  Device& device() { return device_; }
  RefusedKernels& refused() { return refused_; }
  const TuningTable& tuned() const { return tuned_; }
  void tune(TuningTable&& table) { tuned_ = std::move(table); }  // before models of the device are opened

  // Multiplies on the device, the first time, and excludes kernels with matrix instructions where it
  // multiplies wrong (check_matrices). The log is told so.
  Status try_matrices(const Log& log);

 private:
  friend class KernelSet;
  enum class State : uint8_t { Missing, AtWork, There };
  struct Entry {
    const KernelRow* row;  // rows of one code share a kernel
    std::vector<uint32_t> constants;
    Kernel kernel;
    State state = State::Missing;
  };
  struct Compilers;

  Entry& entry(const KernelRow& row, std::span<const uint32_t> constants);
  std::vector<Entry*> missing_of(std::span<Entry* const> wanted);
  // Does nothing if the kernel is there, or if another thread has it at work.
  Status compile(Entry& entry);
  Status compile(std::span<Entry* const> missing, const Progress& progress,
                 std::vector<const KernelRow*>* refused);
  Status wait_for_others(std::span<Entry* const> wanted, const Progress& progress);

  Device& device_;
  RefusedKernels refused_;
  TuningTable tuned_;
  std::mutex matrices_mutex_;
  bool tried_matrices_ = false;
  std::mutex mutex_;                         // of the entries and their states
  Unforked<std::condition_variable> ended_;  // a kernel is at work no more
  std::list<Entry> entries_;                 // a list, since addresses of kernels must stay
};

// The kernels that one executor's plans want. It is not thread-safe, and is destroyed before the kernels of
// its device.
class KernelSet {
 public:
  explicit KernelSet(DeviceKernels& all) : all_(all) {}
  KernelSet(const KernelSet&) = delete;
  KernelSet& operator=(const KernelSet&) = delete;
  // Gives the kernel of this code and these specialization constants, which are fields of the launch's block.
  // It can be used after compile().
  const Kernel* want(const KernelRow& row, std::span<const uint8_t> block);
  // Compiles the wanted kernels that are missing, in several threads, or waits for those who do. `progress`
  // is called about 20 times a second, and once more at the end if it was called at all. After a failure,
  // kernels that are still missing are no longer wanted.
  Status compile(const Progress& progress = {});
  // The rows whose kernels the driver refused at the last compile().
  std::span<const KernelRow* const> refused() const { return refused_; }
  // want() and compile() of one kernel.
  Status load(const KernelRow& row, std::span<const uint8_t> block, const Kernel** out);

 private:
  DeviceKernels& all_;
  std::vector<DeviceKernels::Entry*> wanted_;
  std::vector<const KernelRow*> refused_;
};

}  // namespace greta
