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

static bool takes_ops(const KernelRow& row, std::span<const Call> calls) {
  if (calls.empty() || row.op_count != calls.size()) return false;
  for (uint32_t i = 0; i < row.op_count; ++i)
    if (row.ops[i] != calls[i].op) return false;
  return true;
}

// What the row itself says of the weight and of the size of the step.
static bool takes_shape(const KernelRow& row, const Call& lead, uint32_t bucket, Reason& why) {
  const Tensor& weight = lead.weight;
  if (row.type != weight.type) return why.no("it reads weights of %s", quant_info(row.type).name);
  if (row.layout != weight.layout)
    return why.no("it reads weights in the layout %s, these lie in %s", layout_name(row.layout),
                  layout_name(weight.layout));
  if (bucket < row.tokens_min || bucket > row.tokens_max)
    return why.no("it is for %u to %u rows of a step, not for %u", row.tokens_min, row.tokens_max, bucket);
  if (weight.n % row.n_multiple || weight.depth % row.depth_multiple)
    return why.no("it asks for multiples of %u x %u, the weight is %u x %u", row.n_multiple,
                  row.depth_multiple, weight.n, weight.depth);
  if (!takes_slots(row, lead, bucket))
    return why.no("it is for at most %u slots of an expert", row.expert_slots);
  return true;
}

bool covers(const KernelRow& row, std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
            Reason& why) {
  if (!takes_ops(row, calls)) return false;
  Reason unasked;
  const Call& lead = lead_call(calls);
  return takes_shape(row, lead, bucket, unasked) && usable(row, filter) &&
         op_info(lead.op).fits(calls, row, why);
}

// Why usable() refuses the row.
static bool may_run(const KernelRow& row, const RowFilter& filter, Reason& why) {
  if (filter.exact && row.rank) return why.no("only plain kernels were asked for");
  if (filter.refused && filter.refused->has(row))
    return why.no("the driver refused its code, or it is wrong");
  if (usable(row, filter)) return true;
  const DeviceInfo& device = *filter.device;
  if (row.target[0] && !runs_on(row.target, device.arch)) return why.no("its code is for %s", row.target);
  if (row.needs & ~device.features)
    return why.no("the device lacks features that it needs (bits 0x%x)", row.needs & ~device.features);
  if (row.lacks & device.features)
    return why.no("it is for devices without some features (bits 0x%x)", row.lacks & device.features);
  return why.no("a group needs %u bytes of shared memory, the device has %u", row.shared_bytes,
                device.shared_bytes);
}

void why_not(const KernelRow& row, std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
             Reason& why) {
  if (!takes_ops(row, calls)) return void(why.no("it computes another sequence of ops"));
  const Call& lead = lead_call(calls);
  (void)(takes_shape(row, lead, bucket, why) && may_run(row, filter, why) &&
         op_info(lead.op).fits(calls, row, why));
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
