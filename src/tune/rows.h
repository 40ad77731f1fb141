// Which rows of the kernel table a device may use, and which of them cover given calls.
#pragma once
#include "tune/refused_kernels.h"
#include "tune/table.h"

namespace greta {

// Which rows may be used: those for the device's backend and features, or only the plain ones (rank 0).
struct RowFilter {
  const DeviceInfo* device = nullptr;       // null: rows of any device
  bool exact = false;                       // only plain rows
  const RefusedKernels* refused = nullptr;  // rows that the driver refused; null: none
  const TuningTable* tuned = nullptr;       // what was measured on the device; null: nothing
};

std::span<const KernelRow> candidates(const RowFilter& filter);  // rows of its backend
// Those of them that cover ops in the order of these calls; where the filter has no device, all rows.
std::span<const KernelRow> candidates(const RowFilter& filter, std::span<const Call> calls);
bool usable(const KernelRow& row, const RowFilter& filter);

// Returns true if a row covers exactly these calls in a plan of `bucket` token rows. Compared are sequence,
// backend, features, type, layout, token range and multiples; then the leading op's fits() decides.
bool covers(const KernelRow& row, std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
            Reason& why);

// Says in words why such a row does not cover the calls, the first reason that is found. Only a reason that
// was asked for is written.
void why_not(const KernelRow& row, std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
             Reason& why);

// Writes to `out` the rows that cover the calls, as many as there is room for. Returns how many.
uint32_t find_rows(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
                   std::span<const KernelRow*> out);

// The row that converts a weight in GGUF order to another layout; null if there is none.
const KernelRow* packing_row(QuantType type, Layout layout, const RowFilter& filter);

// The layout in which this device stores weights of `type`. It is that of the highest-ranked matmul row whose
// layout a kernel can make.
Layout preferred_layout(QuantType type, const RowFilter& filter);

}  // namespace greta
