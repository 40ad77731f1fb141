// The least that a backend must do to run a kernel, and the one check that every backend's test runs
// on it: scaled_add over odd shapes gives the same bits as the C++ kernel and touches nothing else.
#pragma once
#include <vector>

#include "runtime/device.h"
#include "support/test_kernels.h"

namespace greta {

class SpikeDevice {
 public:
  virtual ~SpikeDevice() = default;
  virtual Status allocate(uint64_t bytes, uint64_t* address) = 0;
  virtual Status write(uint64_t address, const void* from, uint64_t bytes) = 0;
  virtual Status read(uint64_t address, void* to, uint64_t bytes) = 0;
  virtual Status run(const KernelCode& code, uint32_t groups, std::span<const uint8_t> block) = 0;
};

// Host memory, and kernels that are functions.
class HostSpikeDevice : public SpikeDevice {
 public:
  Status allocate(uint64_t bytes, uint64_t* address) override;
  Status write(uint64_t address, const void* from, uint64_t bytes) override;
  Status read(uint64_t address, void* to, uint64_t bytes) override;
  Status run(const KernelCode& code, uint32_t groups, std::span<const uint8_t> block) override;

 private:
  std::vector<std::vector<uint8_t>> buffers_;
};

struct ScaledAddCase {
  uint32_t count, page_values, seed;
  float scale;
};
std::vector<ScaledAddCase> scaled_add_cases();

// y and the canary words behind it, as they lie on the device after the run.
constexpr uint32_t kCanaries = 32, kPoison = 0x7fc0dead;
Status run_scaled_add(SpikeDevice& device, const KernelRow& row, const ScaledAddCase& shape,
                      std::vector<uint32_t>* y);

// The values by the formula in double, for one case.
std::vector<double> scaled_add_reference(const ScaledAddCase& shape);

// Runs all cases on `device` and compares with the C++ kernel, bit for bit (Catch2 assertions).
void check_scaled_add(SpikeDevice& device, const KernelRow& row);

}  // namespace greta
