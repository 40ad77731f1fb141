// Chooses the kernel row that runs a sequence of calls. Of those that cover it, this is the one that a tuning
// table names; else the one with the highest rank, then the one whose tile fits best. Also measures what a
// device can reach.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tune/matrices.h"
#include "tune/rows.h"
#include "tune/table_file.h"

namespace greta {

// The row that runs exactly these calls in a plan of `bucket` token rows; null if none covers them.
const KernelRow* best_row(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter);

// Does the same for calls that must have a row. Without one it fails with Unsupported, and the text names
// ops, type and shape, and what a row that comes close asks for.
Status choose_row(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
                  const KernelRow** out);

// How many groups should share a tile of y (Call::Matmul::splits), for a row with tile_tokens that covers
// the calls.
uint32_t choose_splits(std::span<const Call> calls, const KernelRow& row, uint32_t bucket,
                       const RowFilter& filter);
// The most groups that may share one.
uint32_t most_splits(const Call& call, const KernelRow& row, uint32_t bucket);

// Measures the read bandwidth over 256 MiB, as the best of a few rounds. It takes about a tenth of a second.
Status measure_bandwidth(Device& device, uint64_t* out_bytes_per_second);

// Measures operations a second, two for each multiply-add, by the fastest kernel of the op `products`, which
// works in registers. The result is the best of a few rounds of 5 to 20 ms. It takes a third of a second on a
// GPU, and less on a processor.
Status measure_arithmetic(Device& device, uint64_t* out_flops_per_second);

// The specialization constants of the row's kernel for this launch.
std::vector<uint32_t> constants_of(const KernelRow& row, const Launch& launch);

// Asks a driver for the registers of kernels, once for each.
class MachineCodes {
 public:
  explicit MachineCodes(Device& device) : device_(device) {}
  // "Register Count 64, Stack Size 0", in the driver's names; "" where it tells nothing.
  Status of(const KernelRow& row, const Launch& launch, std::string* out);

 private:
  Device& device_;
  std::map<std::pair<const KernelRow*, std::vector<uint32_t>>, std::string> known_;
};

}  // namespace greta
