// Which rows of the kernel table a device may use, and which of them cover given calls.
#pragma once
#include "tune/refused_kernels.h"

namespace greta {

// What rows may be used: those for the device's backend and features, or only the plain rows (rank 0).
struct RowFilter {
  const DeviceInfo* device = nullptr;  // null: any
  bool exact = false;
  const RefusedKernels* refused = nullptr;  // by the driver
};

bool usable(const KernelRow& row, const RowFilter& filter);

// Whether a row covers exactly these calls in a plan of `bucket` token rows: sequence, backend, features,
// type, layout, token range, multiples, then the leading op's fits().
bool covers(const KernelRow& row, std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
            Reason& why);

// Writes to `out` the rows that cover the calls, as many as there is room for. Returns how many.
uint32_t find_rows(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
                   std::span<const KernelRow*> out);

// The row that converts a weight in GGUF order to another layout; null if there is none.
const KernelRow* packing_row(QuantType type, Layout layout, const RowFilter& filter);

// The layout in which this device stores weights of `type`: that of the highest-ranked matmul row, of those
// that can be packed.
Layout preferred_layout(QuantType type, const RowFilter& filter);

}  // namespace greta
