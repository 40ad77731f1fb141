// Choosing a kernel: which of the rows that cover a sequence of calls runs it. A row's rank decides, then
// the size of its tile.
#pragma once
#include "tune/rows.h"

namespace greta {

// The row that runs exactly these calls in a plan of `bucket` token rows; null if none covers them.
const KernelRow* best_row(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter);

// The same for calls that must have a row: else Unsupported, naming ops, type, shape and what a row that
// comes close asks for.
Status choose_row(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
                  const KernelRow** out);

// How many groups should share a tile of y (Call::Matmul::splits), for a row with tile_tokens.
uint32_t choose_splits(const Call& call, const KernelRow& row, uint32_t bucket, const RowFilter& filter);

// Read bandwidth over 256 MiB, the best of a few rounds; takes about a tenth of a second.
Status measure_bandwidth(Device& device, uint64_t* out_bytes_per_second);

// Products and sums a second, two operations each, of the fastest kernel of `products` that runs here: in
// registers, best of a few rounds of 5 to 20 ms. A third of a second on a GPU, less on a processor.
Status measure_arithmetic(Device& device, uint64_t* out_flops_per_second);

}  // namespace greta
