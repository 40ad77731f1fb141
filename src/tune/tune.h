// Autotuning: which of the rows that can run a sequence should. Until a device has a tuned table,
// the row's rank decides.
#pragma once
#include "compute/compute.h"

namespace greta {

// Unsupported, naming the ops, type and shape, when no row fits.
Status choose_row(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
                  const KernelRow** out);

// How many groups should share a tile of y (Call::splits), for a row with tile_tokens.
uint32_t choose_splits(const Call& call, const KernelRow& row, uint32_t bucket, const RowFilter& filter);

// Read bandwidth over 256 MiB, the best of a few rounds; takes about a tenth of a second.
Status measure_bandwidth(Device& device, uint64_t* out_bytes_per_second);

// Products and sums a second, two operations each, of the fastest kernel of `products` that runs here: in
// registers, best of a few rounds of 5 to 20 ms. A third of a second on a GPU, less on a processor.
Status measure_arithmetic(Device& device, uint64_t* out_flops_per_second);

}  // namespace greta
