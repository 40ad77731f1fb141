// Measures how fast this device reads memory, by summing more words than any cache holds.
#include <algorithm>
#include <memory>

#include "tune/probe.h"

namespace greta {

constexpr uint64_t kProbeBytes = 256u << 20;  // larger than any cache
constexpr uint32_t kPieceWords = 16384;
constexpr uint64_t kPieces = kProbeBytes / (kPieceWords * sizeof(uint32_t));
constexpr uint32_t kPasses = 16;  // the most passes of one round; passes may overlap

Status measure_bandwidth(Device& device, uint64_t* out_bytes_per_second) {
  const uint64_t sum_bytes = kPieces * sizeof(uint32_t);
  Stream* opened = nullptr;
  GRETA_TRY(device.create_stream(&opened));
  DeviceMemory memory, sums;
  const std::unique_ptr<Stream> stream(opened);  // destroyed before the memory that it works on
  GRETA_TRY(memory.allocate(device, kProbeBytes, Memory::Device));
  GRETA_TRY(sums.allocate(device, kPasses * sum_bytes, Memory::Device));
  Call call = CallMaker{}.sum(memory.all(), sums.slice(0, sum_bytes), kPieceWords);
  const KernelRow* row = nullptr;
  GRETA_TRY(choose_row({&call, 1}, 1, {&device.info(), false}, &row));
  Launch passes[kPasses] = {};
  for (uint32_t i = 0; i < kPasses; ++i) {
    call.slot[kY] = sums.slice(i * sum_bytes, sum_bytes);
    make_launch({&call, 1}, *row, 1, &device.info(), &passes[i]);
  }
  Probe probe(device, *stream);
  GRETA_TRY(probe.open(*row, passes[0]));
  // Pages that were never written may all be one page of the system, which a cache holds.
  GRETA_TRY(stream->fill(memory.all(), 1));
  GRETA_TRY(stream->wait());
  uint64_t ns = 0;
  GRETA_TRY(probe.time({passes, 1}, &ns));
  const uint64_t count = std::clamp<uint64_t>(kRoundNs / ns, 1, kPasses);
  GRETA_TRY(probe.best_time({passes, count}, &ns));
  *out_bytes_per_second = uint64_t(double(count * kProbeBytes) / double(ns) * 1e9);
  return {};
}

}  // namespace greta
