// Measures how fast this device multiplies and adds, in the arithmetic that its kernels for prompts use.
#include "tune/harness.h"

namespace greta {

// Groups for each unit: more than run at once, so that the last ones leave no unit idle for long. A unit of a
// processor runs one at a time, and may emulate a matrix unit.
constexpr uint32_t kGroupsOfUnit = 64, kGroupsOfProcessor = 8;
// The fewest products that a group is given. Every row's kernel does at least this many in a pass of its
// loop.
constexpr uint32_t kFirstWidth = 64 * 32 * kProductsDepth;
constexpr uint32_t kGrowth = 4, kMostWidth = 1u << 30;
constexpr uint32_t kMostOperands = (64 + 32) * kProductsDepth;

// Finds the best row whose kernel the driver does not refuse, and loads it.
static Status open_best(Harness& harness, const Call& call, const KernelRow** row) {
  RefusedKernels refused;
  for (;;) {
    GRETA_TRY(choose_row({&call, 1}, 1, {&harness.info(), false, &refused}, row));
    Launch launch;
    const Status status = harness.prepare({&call, 1}, **row, 1, &launch);
    if (status.code != Code::Unsupported) return status;
    refused.add(**row);
  }
}

Status measure_arithmetic(Device& device, uint64_t* out_flops_per_second) {
  const uint64_t groups =
      uint64_t(device.info().cpu_type ? kGroupsOfProcessor : kGroupsOfUnit) * device.info().unit_count;
  Harness harness(device);
  GRETA_TRY(harness.open());
  // 0 to 7 as f16.
  static constexpr uint16_t kHalves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
  std::vector<uint16_t> values(kMostOperands);
  for (uint32_t i = 0; i < kMostOperands; ++i) values[i] = kHalves[i * 2654435761u >> 29];
  Slice operands, sums;
  GRETA_TRY(harness.put(values, &operands));
  GRETA_TRY(harness.room(groups * sizeof(uint32_t), &sums));
  Call call = CallMaker{}.products(operands, sums, kFirstWidth);
  const KernelRow* row = nullptr;
  GRETA_TRY(open_best(harness, call, &row));
  Launch launch;
  uint64_t ns = 0;
  for (;;
       call.width *= kGrowth) {  // grows by small factors, so that no launch occupies a slow device for long
    GRETA_TRY(harness.prepare({&call, 1}, *row, 1, &launch));
    GRETA_TRY(harness.time({&launch, 1}, Harness::Order::Together, &ns));
    if (ns >= kRoundNs)  // the first may have been delayed
      GRETA_TRY(harness.time({&launch, 1}, Harness::Order::Together, &ns));
    if (ns >= kRoundNs || call.width >= kMostWidth) break;
  }
  GRETA_TRY(harness.best_time({&launch, 1}, Harness::Order::Together, &ns));
  *out_flops_per_second =
      uint64_t(double(op_info(Op::Products).cost({&call, 1}, 1, 0).flops) / double(ns) * 1e9);
  return {};
}

}  // namespace greta
