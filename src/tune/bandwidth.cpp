// Measures how fast this device reads memory, by summing more words than any cache holds.
#include <algorithm>

#include "tune/harness.h"

namespace greta {

constexpr uint64_t kProbeBytes = 256u << 20;  // larger than any cache
constexpr uint32_t kPieceWords = 16384;
constexpr uint64_t kPieces = kProbeBytes / (kPieceWords * sizeof(uint32_t));
constexpr uint32_t kPasses = 16;  // the most passes of one round; passes may overlap

Status measure_bandwidth(Device& device, uint64_t* out_bytes_per_second) {
  const uint64_t sum_bytes = kPieces * sizeof(uint32_t);
  Harness harness(device);
  GRETA_TRY(harness.open());
  Slice memory, sums;
  GRETA_TRY(harness.room(kProbeBytes, &memory));
  GRETA_TRY(harness.room(kPasses * sum_bytes, &sums));
  Call call = CallMaker{}.sum(memory, {sums.buffer, 0, sum_bytes}, kPieceWords);
  const KernelRow* row = nullptr;
  GRETA_TRY(choose_row({&call, 1}, 1, harness.filter(), &row));
  Launch passes[kPasses] = {};
  for (uint32_t i = 0; i < kPasses; ++i) {
    call.slot[kY] = {sums.buffer, i * sum_bytes, sum_bytes};
    GRETA_TRY(harness.prepare({&call, 1}, *row, 1, &passes[i]));
  }
  // Pages that were never written may all be one page of the system, which a cache holds.
  GRETA_TRY(harness.fill(memory, 1));
  GRETA_TRY(harness.finish());
  uint64_t ns = 0;
  GRETA_TRY(harness.time({passes, 1}, Harness::Order::Together, &ns));
  const uint64_t count = std::clamp<uint64_t>(kRoundNs / ns, 1, kPasses);
  GRETA_TRY(harness.best_time({passes, count}, Harness::Order::Together, &ns));
  *out_bytes_per_second = uint64_t(double(count * kProbeBytes) / double(ns) * 1e9);
  return {};
}

}  // namespace greta
