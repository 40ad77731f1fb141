#include "compute/kernel_table.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/abi/chain.h"
#include "kernels/abi/sequences.h"

namespace greta {

#define HOST_KERNEL(function) \
  extern "C" void function(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch);
#define EMBEDDED_KERNEL(name) extern "C" const uint8_t name[], name##_end[];
#include "kernel_code.inc"
#undef HOST_KERNEL
#undef EMBEDDED_KERNEL

// Where a Vulkan kernel that has no field for it finds the address of its cell in a chain.
template <class Block>
constexpr uint16_t chain_behind() {
  static_assert(sizeof(Block) <= kChainBehind);
  return kChainBehind;
}

static constinit const KernelRow kRows[] = {
#include "kernel_rows.inc"
};

std::span<const KernelRow> kernel_table() { return kRows; }

std::span<const KernelRow> rows_of(const char* backend) {
  std::span<const KernelRow> rest = kernel_table();
  while (!rest.empty()) {
    const char* const first = rest[0].backend;
    const auto end =
        std::ranges::partition_point(rest, [&](const KernelRow& row) { return !strcmp(row.backend, first); });
    const size_t count = size_t(end - rest.begin());
    if (!strcmp(first, backend)) return rest.first(count);
    rest = rest.subspan(count);
  }
  return {};
}

std::span<const KernelRow> rows_of(std::span<const KernelRow> rows, std::span<const Call> calls) {
  const auto order = [&](const KernelRow& row) {
    const uint32_t count = std::min(row.op_count, uint32_t(calls.size()));
    for (uint32_t i = 0; i < count; ++i)
      if (row.ops[i] != calls[i].op) return int(row.ops[i]) - int(calls[i].op);
    return int(row.op_count) - int(calls.size());
  };
  const auto begin = std::ranges::partition_point(rows, [&](const KernelRow& row) { return order(row) < 0; });
  const auto end =
      std::partition_point(begin, rows.end(), [&](const KernelRow& row) { return order(row) == 0; });
  return {begin, end};
}

bool multiplies(Op op) { return op == Op::Matmul || op == Op::MatmulExpert; }

// The op with the highest rank leads a sequence (OpInfo); of several, the first.
static int lead_rank(Op op) {
  if (op == Op::Route) return 5;
  if (op == Op::Attention) return 4;
  if (multiplies(op)) return 3;
  if (op == Op::Rope || op == Op::Scan) return 2;
  return op == Op::KvWrite || op == Op::Conv1d;
}

Op lead_op(std::span<const Op> ops) { return *std::ranges::max_element(ops, {}, lead_rank); }

const Call& lead_call(std::span<const Call> calls) {
  return *std::ranges::max_element(calls, {}, [](const Call& call) { return lead_rank(call.op); });
}

const OpInfo& lead_of(std::span<const Call> calls) { return op_info(lead_call(calls).op); }

static void deal_over_dies(uint32_t dies, Launch* launch) {
  if (dies < 2) return;
  launch->groups[1] = uint32_t(divide_up(launch->groups[0], dies));
  launch->groups[0] = dies;
}

void make_launch(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, const DeviceInfo* device,
                 Launch* out) {
  *out = {};
  out->bucket = bucket;
  lead_of(calls).groups(calls, row, bucket, out->groups);
  if (row.numbered_tiles && device) deal_over_dies(device->die_count, out);
  lead_of(calls).pack(calls, row, out);
}

uint32_t tile_count(const Call& call, const KernelRow& row, uint32_t bucket) {
  return uint32_t(divide_up(call.weight.n, row.tile) * divide_up(bucket, row.tile_tokens));
}

uint64_t split_bytes(const Call& call, const KernelRow& row, uint32_t bucket) {
  return uint64_t(tile_count(call, row, bucket)) * call.matmul.splits * row.tile * row.tile_tokens *
         sizeof(float);
}

}  // namespace greta
