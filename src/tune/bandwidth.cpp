// How fast this device reads memory: sums of words over more than any cache holds.
#include <algorithm>
#include <cstring>
#include <memory>

#include "tune/tune.h"

namespace greta {

namespace {

constexpr uint64_t kProbeBytes = 256u << 20;  // beyond every cache
constexpr uint32_t kPieceWords = 16384;
constexpr uint64_t kPieces = kProbeBytes / (kPieceWords * sizeof(uint32_t));
constexpr uint32_t kRounds = 4;
constexpr uint64_t kRoundNs = 5'000'000;      // in the time of a shorter round its beginning and end would be seen
constexpr uint64_t kWarmingNs = 300'000'000;  // an idle GPU has slow clocks at first

// What is read, and by which launches: passes over all of it that may overlap.
struct Probe {
  Device& device;
  Stream& stream;
  DeviceMemory memory = {}, sums = {};
  Kernel kernel = {};
  Launch passes[16] = {};
  uint32_t pass_count = 1;  // of a round
  Event events[2] = {};

  ~Probe() {
    for (Event& event : events) device.destroy(event);
    device.unload(kernel);
  }
  Status open();
  Status round(uint64_t* ns);
};

Status Probe::open() {
  const uint64_t sum_bytes = kPieces * sizeof(uint32_t);
  GRETA_TRY(memory.allocate(device, kProbeBytes, Memory::Device));
  GRETA_TRY(sums.allocate(device, std::size(passes) * sum_bytes, Memory::Device));
  for (Event& event : events) GRETA_TRY(device.create_event(&event));
  Call call;
  call.op = Op::Sum;
  call.width = kPieceWords;
  call.slot[kX] = memory.all();
  call.slot[kY] = sums.slice(0, sum_bytes);
  const KernelRow* row = nullptr;
  GRETA_TRY(choose_row({&call, 1}, 1, {&device.info(), false}, &row));
  for (uint32_t i = 0; i < std::size(passes); ++i) {
    call.slot[kY] = sums.slice(i * sum_bytes, sum_bytes);
    make_launch({&call, 1}, *row, 1, &passes[i]);
  }
  KernelCode code = row->code;
  uint32_t constants[kMaxConstants + 1];
  code.constants = {constants, kernel_constants(*row, passes[0].fields(), constants)};
  GRETA_TRY(device.load(code, &kernel));
  GRETA_TRY(stream.fill(memory.all(), 1));  // pages that were never written are all the same one
  return stream.wait();
}

Status Probe::round(uint64_t* ns) {
  GRETA_TRY(stream.signal(events[0]));
  for (uint32_t i = 0; i < pass_count; ++i)
    GRETA_TRY(stream.dispatch(kernel, passes[i].groups, passes[i].arguments(),
                              {passes[i].accesses, passes[i].access_count}));
  GRETA_TRY(stream.barrier());
  GRETA_TRY(stream.signal(events[1]));
  GRETA_TRY(stream.wait());
  return device.elapsed_ns(events[0], events[1], ns);
}

}  // namespace

Status measure_bandwidth(Device& device, uint64_t* out_bytes_per_second) {
  Stream* opened = nullptr;
  GRETA_TRY(device.create_stream(&opened));
  const std::unique_ptr<Stream> stream(opened);
  Probe probe{.device = device, .stream = *stream};
  GRETA_TRY(probe.open());
  uint64_t ns = 0, best = ~uint64_t(0);
  GRETA_TRY(probe.round(&ns));
  probe.pass_count = uint32_t(std::clamp<uint64_t>(kRoundNs / std::max<uint64_t>(ns, 1), 1, std::size(probe.passes)));
  const uint64_t warming = strcmp(device.info().backend, "cpu") ? kWarmingNs : 0, start = now_ns();
  for (uint32_t i = 0; i < kRounds || now_ns() - start < warming; ++i) {
    GRETA_TRY(probe.round(&ns));
    best = std::min(best, ns);
  }
  *out_bytes_per_second = uint64_t(double(probe.pass_count * kProbeBytes) / double(std::max<uint64_t>(best, 1)) * 1e9);
  return {};
}

}  // namespace greta
