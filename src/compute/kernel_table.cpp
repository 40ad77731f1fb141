#include <algorithm>
#include <cstddef>
#include <cstring>

#include "compute/refused_kernels.h"

namespace greta {

#define HOST_KERNEL(function) \
  extern "C" void function(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch);
#define EMBEDDED_KERNEL(name) extern "C" const uint8_t name[], name##_end[];
#include "kernel_code.inc"
#undef HOST_KERNEL
#undef EMBEDDED_KERNEL

static constinit const KernelRow kRows[] = {
#include "kernel_rows.inc"
};

std::span<const KernelRow> kernel_table() { return kRows; }

bool multiplies(Op op) { return op == Op::Matmul || op == Op::MatmulExpert; }

// A place in order of calls: a choice of experts, else attention, else a product, else a rotation, else the
// first.
template <class OpAt>
static size_t lead_index(size_t count, OpAt op_at) {
  for (const auto leads : {+[](Op op) { return op == Op::Route; }, +[](Op op) { return op == Op::Attention; },
                           +multiplies, +[](Op op) { return op == Op::Rope; }})
    for (size_t i = 0; i < count; ++i)
      if (leads(op_at(i))) return i;
  return 0;
}

Op lead_op(std::span<const Op> ops) {
  return ops[lead_index(ops.size(), [&](size_t i) { return ops[i]; })];
}

const Call& lead_call(std::span<const Call> calls) {
  return calls[lead_index(calls.size(), [&](size_t i) { return calls[i].op; })];
}

const OpInfo& lead_of(std::span<const Call> calls) { return op_info(lead_call(calls).op); }

bool usable(const KernelRow& row, const RowFilter& filter) {
  if (filter.exact && row.rank) return false;
  if (filter.refused && filter.refused->has(row)) return false;
  if (!filter.device) return true;
  const DeviceInfo& device = *filter.device;
  return !strcmp(row.backend, device.backend) && (!row.target[0] || !strcmp(row.target, device.arch)) &&
         (row.needs & ~device.features) == 0 && (row.lacks & device.features) == 0 &&
         row.shared_bytes <= device.shared_bytes;
}

static bool covers(const KernelRow& row, std::span<const Call> calls) {
  if (row.op_count != calls.size()) return false;
  for (uint32_t i = 0; i < row.op_count; ++i)
    if (row.ops[i] != calls[i].op) return false;
  return true;
}

uint32_t find_rows(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
                   std::span<const KernelRow*> out) {
  if (calls.empty()) return 0;
  const Tensor& weight = lead_call(calls).weight;
  uint32_t count = 0;
  for (const KernelRow& row : kRows) {
    if (count == out.size()) break;
    if (!usable(row, filter) || !covers(row, calls)) continue;
    if (row.type != weight.type || row.layout != weight.layout) continue;
    if (bucket < row.tokens_min || bucket > row.tokens_max) continue;
    if (weight.n % row.n_multiple || weight.depth % row.depth_multiple) continue;
    if (lead_of(calls).check(calls, row).ok()) out[count++] = &row;
  }
  return count;
}

void make_launch(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, Launch* out) {
  *out = {};
  lead_of(calls).groups(calls, row, bucket, out->groups);
  lead_of(calls).pack(calls, row, out);
}

uint32_t tile_count(const Call& call, const KernelRow& row, uint32_t bucket) {
  return uint32_t(divide_up(call.weight.n, row.tile) * divide_up(bucket, row.tile_tokens));
}

uint64_t split_bytes(const Call& call, const KernelRow& row, uint32_t bucket) {
  return uint64_t(tile_count(call, row, bucket)) * call.splits * row.tile * row.tile_tokens * sizeof(float);
}

const KernelRow* packing_row(QuantType type, Layout layout, const RowFilter& filter) {
  for (const KernelRow& row : kRows)
    if (row.type == type && row.layout == layout && row.op_count == 1 && row.ops[0] == Op::Convert &&
        usable(row, filter))
      return &row;
  return nullptr;
}

Layout preferred_layout(QuantType type, const RowFilter& filter) {
  const KernelRow* best = nullptr;
  for (const KernelRow& row : kRows) {
    if (row.type != type || row.op_count != 1 || row.ops[0] != Op::Matmul || !usable(row, filter)) continue;
    const bool better =
        !best || row.rank > best->rank || (row.rank == best->rank && row.layout == Layout::Gguf);
    if (better && (row.layout == Layout::Gguf || packing_row(type, row.layout, filter))) best = &row;
  }
  return best ? best->layout : Layout::Gguf;
}

}  // namespace greta
