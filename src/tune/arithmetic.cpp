// Measures how fast this device multiplies and adds, in the arithmetic that its kernels for prompts use.
#include <memory>

#include "tune/probe.h"

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
static Status open_best(Device& device, const Call& call, Stream& stream, std::unique_ptr<Probe>* probe,
                        const KernelRow** row) {
  RefusedKernels refused;
  for (;;) {
    GRETA_TRY(choose_row({&call, 1}, 1, {&device.info(), false, &refused}, row));
    Launch launch;
    make_launch({&call, 1}, **row, 1, &device.info(), &launch);
    *probe = std::make_unique<Probe>(device, stream);
    const Status status = (*probe)->open(**row, launch);
    if (status.code != Code::Unsupported) return status;
    refused.add(**row);
  }
}

Status measure_arithmetic(Device& device, uint64_t* out_flops_per_second) {
  const uint64_t groups =
      uint64_t(device.info().cpu_type ? kGroupsOfProcessor : kGroupsOfUnit) * device.info().unit_count;
  Stream* opened = nullptr;
  GRETA_TRY(device.create_stream(&opened));
  DeviceMemory host, operands, sums;
  const std::unique_ptr<Stream> stream(opened);  // destroyed before the memory that it works on
  GRETA_TRY(host.allocate(device, kMostOperands * sizeof(uint16_t), Memory::Upload));
  GRETA_TRY(operands.allocate(device, host.all().bytes, Memory::Device));
  GRETA_TRY(sums.allocate(device, groups * sizeof(uint32_t), Memory::Device));
  // 0 to 7 as f16.
  static constexpr uint16_t kHalves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
  for (uint32_t i = 0; i < kMostOperands; ++i)
    static_cast<uint16_t*>(host.buffer().mapped)[i] = kHalves[i * 2654435761u >> 29];
  GRETA_TRY(stream->copy(operands.all(), host.all()));
  GRETA_TRY(stream->barrier());
  Call call = CallMaker{}.products(operands.all(), sums.all(), kFirstWidth);
  std::unique_ptr<Probe> probe;
  const KernelRow* row = nullptr;
  GRETA_TRY(open_best(device, call, *stream, &probe, &row));
  Launch launch;
  uint64_t ns = 0;
  for (;;
       call.width *= kGrowth) {  // grows by small factors, so that no launch occupies a slow device for long
    make_launch({&call, 1}, *row, 1, &device.info(), &launch);
    GRETA_TRY(probe->time({&launch, 1}, &ns));
    if (ns >= kRoundNs) GRETA_TRY(probe->time({&launch, 1}, &ns));  // the first may have been delayed
    if (ns >= kRoundNs || call.width >= kMostWidth) break;
  }
  GRETA_TRY(probe->best_time({&launch, 1}, &ns));
  *out_flops_per_second =
      uint64_t(double(op_info(Op::Products).cost({&call, 1}, 1, 0).flops) / double(ns) * 1e9);
  return {};
}

}  // namespace greta
