#include "tune/rows.h"

#include <cstring>

namespace greta {

std::span<const KernelRow> candidates(const RowFilter& filter) {
  return filter.device ? rows_of(filter.device->backend) : kernel_table();
}

std::span<const KernelRow> candidates(const RowFilter& filter, std::span<const Call> calls) {
  return filter.device ? rows_of(candidates(filter), calls) : kernel_table();
}

bool usable(const KernelRow& row, const RowFilter& filter) {
  if (filter.exact && row.rank) return false;
  if (filter.refused && filter.refused->has(row)) return false;
  if (!filter.device) return true;
  const DeviceInfo& device = *filter.device;
  return !strcmp(row.backend, device.backend) && (!row.target[0] || runs_on(row.target, device.arch)) &&
         (row.needs & ~device.features) == 0 && (row.lacks & device.features) == 0 &&
         row.shared_bytes <= device.shared_bytes;
}

// Whether no more slots of a step share an expert than the row is made for.
static bool takes_slots(const KernelRow& row, const Call& call, uint32_t bucket) {
  return !row.expert_slots ||
         uint64_t(bucket) * call.experts.used <= uint64_t(row.expert_slots) * call.experts.count;
}

bool covers(const KernelRow& row, std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
            Reason& why) {
  if (calls.empty() || row.op_count != calls.size()) return false;
  for (uint32_t i = 0; i < row.op_count; ++i)
    if (row.ops[i] != calls[i].op) return false;
  const Call& lead = lead_call(calls);
  const Tensor& weight = lead.weight;
  return row.type == weight.type && row.layout == weight.layout && bucket >= row.tokens_min &&
         bucket <= row.tokens_max && weight.n % row.n_multiple == 0 &&
         weight.depth % row.depth_multiple == 0 && takes_slots(row, lead, bucket) && usable(row, filter) &&
         op_info(lead.op).fits(calls, row, why);
}

uint32_t find_rows(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
                   std::span<const KernelRow*> out) {
  Reason unasked;
  uint32_t count = 0;
  for (const KernelRow& row : candidates(filter, calls))
    if (count < out.size() && covers(row, calls, bucket, filter, unasked)) out[count++] = &row;
  return count;
}

const KernelRow* packing_row(QuantType type, Layout layout, const RowFilter& filter) {
  for (const KernelRow& row : candidates(filter))
    if (row.type == type && row.layout == layout && row.op_count == 1 && row.ops[0] == Op::Convert &&
        usable(row, filter))
      return &row;
  return nullptr;
}

Layout preferred_layout(QuantType type, const RowFilter& filter) {
  const KernelRow* best = nullptr;
  for (const KernelRow& row : candidates(filter)) {
    if (row.type != type || row.op_count != 1 || row.ops[0] != Op::Matmul || !usable(row, filter)) continue;
    const bool better =
        !best || row.rank > best->rank || (row.rank == best->rank && row.layout == Layout::Gguf);
    if (better && (row.layout == Layout::Gguf || packing_row(type, row.layout, filter))) best = &row;
  }
  return best ? best->layout : Layout::Gguf;
}

}  // namespace greta
