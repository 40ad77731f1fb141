// How fast this device moves memory: on the processor the way mat-vec kernels read it, every worker its own
// range; elsewhere the sum of two vectors, which are read, and it written.
#include <algorithm>
#include <cstring>
#include <memory>

#include "tune/tune.h"

namespace greta {

namespace {

constexpr uint64_t kProbeBytes = 256u << 20;  // beyond every cache
constexpr uint64_t kGroupBytes = 1u << 20;
constexpr uint32_t kRounds = 4;
constexpr uint64_t kWarmingNs = 300'000'000;

struct ProbeBlock { uint64_t from, to; };

void read_range(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const ProbeBlock& p = *static_cast<const ProbeBlock*>(block);
  for (uint32_t group = first_group; group < first_group + group_count; ++group) {
    const uint64_t* at = reinterpret_cast<const uint64_t*>(p.from + group * kGroupBytes);
    uint64_t sums[8] = {};
    for (uint64_t i = 0; i < kGroupBytes / 8; i += 8)
      for (uint32_t j = 0; j < 8; ++j) sums[j] += at[i + j];
    uint64_t total = 0;
    for (uint64_t sum : sums) total += sum;
    reinterpret_cast<uint64_t*>(p.to)[group] = total;  // so that the reads are not removed
  }
}

uint64_t rate(uint64_t bytes, uint64_t ns) { return uint64_t(double(bytes) / double(std::max<uint64_t>(ns, 1)) * 1e9); }

constexpr uint32_t kAddedValues = 65535u * 256;  // of each of three vectors: the longest in a grid that every device takes

// y = a + b over vectors that no cache holds.
Status measure_add(Device& device, Stream& stream, Event (&events)[2], uint64_t* out_bytes_per_second) {
  const uint64_t bytes = uint64_t(kAddedValues) * sizeof(float);
  DeviceMemory vectors[3], state;
  Call call;
  call.op = Op::Add;
  call.width = kAddedValues;
  GRETA_TRY(state.allocate(device, round_up(sizeof(StepState), 256), Memory::Device));
  GRETA_TRY(stream.fill(state.all(), 1));  // one token
  const Slot slots[3] = {kX, kX2, kY};
  for (uint32_t i = 0; i < 3; ++i) {
    GRETA_TRY(vectors[i].allocate(device, bytes, Memory::Device));
    GRETA_TRY(stream.fill(vectors[i].all(), 0));
    call.slot[slots[i]] = vectors[i].all();
  }
  call.slot[kStep] = state.all();
  const RowFilter filter{&device.info(), false};
  const KernelRow* row = nullptr;
  GRETA_TRY(choose_row({&call, 1}, 1, filter, &row));
  Launch launch;
  make_launch({&call, 1}, *row, 1, &launch);
  KernelCode code = row->code;
  uint32_t constants[kMaxConstants + 1];
  code.constants = {constants, kernel_constants(*row, {launch.block, launch.block_bytes}, constants)};
  Kernel kernel;
  GRETA_TRY(device.load(code, &kernel));
  uint64_t best = ~uint64_t(0);
  const auto run = [&]() -> Status {
    GRETA_TRY(stream.barrier());
    GRETA_TRY(stream.signal(events[0]));
    GRETA_TRY(stream.dispatch(kernel, launch.groups, {launch.block, launch.block_bytes},
                              {launch.accesses, launch.access_count}));
    GRETA_TRY(stream.barrier());
    GRETA_TRY(stream.signal(events[1]));
    GRETA_TRY(stream.wait());
    uint64_t ns = 0;
    GRETA_TRY(device.elapsed_ns(events[0], events[1], &ns));
    best = std::min(best, ns);
    return {};
  };
  Status status;
  const uint64_t start = now_ns();  // an idle device has slow clocks at first
  for (uint32_t round = 0; status.ok() && (round < kRounds || now_ns() - start < kWarmingNs); ++round) status = run();
  device.unload(kernel);
  *out_bytes_per_second = rate(3 * bytes, best);
  return status;
}

Status measure_elsewhere(Device& device, uint64_t* out_bytes_per_second) {
  Stream* opened = nullptr;
  GRETA_TRY(device.create_stream(&opened));
  const std::unique_ptr<Stream> stream(opened);
  Event events[2];
  Status status;
  for (Event& event : events)
    if (status.ok()) status = device.create_event(&event);
  if (status.ok()) status = measure_add(device, *stream, events, out_bytes_per_second);
  for (Event& event : events) device.destroy(event);
  return status;
}

}  // namespace

Status measure_bandwidth(Device& device, uint64_t* out_bytes_per_second) {
  if (strcmp(device.info().backend, "cpu")) return measure_elsewhere(device, out_bytes_per_second);
  const uint32_t groups = kProbeBytes / kGroupBytes;
  DeviceMemory memory, sums;
  GRETA_TRY(memory.allocate(device, kProbeBytes, Memory::Device));
  GRETA_TRY(sums.allocate(device, groups * sizeof(uint64_t), Memory::Device));
  Kernel kernel;
  GRETA_TRY(device.load({.name = "read_range", .code = {}, .function = read_range, .constants = {}}, &kernel));
  Stream* opened = nullptr;
  GRETA_TRY(device.create_stream(&opened));
  const std::unique_ptr<Stream> stream(opened);
  GRETA_TRY(stream->fill(memory.all(), 1));  // pages that were never written are all the same one
  GRETA_TRY(stream->wait());
  const ProbeBlock block{memory.buffer().address, sums.buffer().address};
  const Access accesses[] = {{memory.all(), Access::kRead, false}, {sums.all(), Access::kWrite, false}};
  uint64_t best = ~uint64_t(0);
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint64_t start = now_ns();
    GRETA_TRY(stream->dispatch(kernel, {groups, 1, 1}, {reinterpret_cast<const uint8_t*>(&block), sizeof block}, accesses));
    GRETA_TRY(stream->wait());
    best = std::min(best, now_ns() - start);
  }
  device.unload(kernel);
  *out_bytes_per_second = rate(kProbeBytes, best);
  return {};
}

}  // namespace greta
