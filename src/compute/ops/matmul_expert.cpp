// matmul_expert: each token's slots times the experts chosen for them. Group = a token's slot and a
// tile of output rows.
#include <algorithm>

#include "compute/ops/parts.h"

namespace greta {

static Status check(std::span<const Call> calls, const KernelRow& row) {
  GRETA_TRY(check_single(calls));
  const Call& call = calls[0];
  GRETA_TRY(check_weight("matmul_expert", call.weight));
  if (row.rank && call.weight.depth > kMaxRankedDepth)
    return fail(Code::Unsupported, "matmul_expert: rows of %u weights, %s holds %u", call.weight.depth,
                row.name, kMaxRankedDepth);
  if (call.first > call.experts || call.weight.count > call.experts - call.first)
    return fail(Code::Argument, "matmul_expert: weights of %u experts from %u on for %u", call.weight.count, call.first,
                call.experts);
  if (!call.used || call.used > call.experts)
    return fail(Code::Argument, "matmul_expert: %u of %u experts", call.used, call.experts);
  if (call.x_slots != 1 && call.x_slots != call.used)
    return fail(Code::Argument, "matmul_expert: %u inputs for %u experts", call.x_slots, call.used);
  GRETA_TRY(check_stride("matmul_expert", call.x_stride, call.weight.depth));
  return check_stride("matmul_expert", call.y_stride, call.weight.n);
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  out[0] = uint32_t(divide_up(calls[0].weight.n, row.tile));
  out[1] = bucket * calls[0].used;
  out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow& row, Launch* out) {
  const Call& call = calls[0];
  MatmulExpertBlock block = {};
  block.weight = call.weight.slice.address();
  block.x = call.slot[kX].address();
  block.ids = call.slot[kX2].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.n = call.weight.n;
  block.depth = call.weight.depth;
  block.experts = call.weight.count;
  block.first = call.first;
  block.used = call.used;
  block.x_slots = call.x_slots;
  block.tile = row.tile;
  block.bias = call.slot[kBias].address();
  block.x_stride = stride_or(call.x_stride, call.weight.depth);
  block.y_stride = stride_or(call.y_stride, call.weight.n);
  out->set_block(block);
  out->read(call.weight.slice);
  out->read(call.slot[kX]);
  out->read(call.slot[kX2]);
  out->read(call.slot[kBias]);
  out->write(call.slot[kY]);
  read_step(call, out);
}

// Rows may choose the same experts; at most every expert is read once. A part is taken to have its share of the slots.
static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Call& call = calls[0];
  const Tensor& weight = call.weight;
  const uint64_t slots = uint64_t(rows) * call.used * weight.count / call.experts;
  const uint64_t read = tensor_bytes(weight.type, weight.layout, weight.n, weight.depth,
                                     std::min<uint64_t>(slots, weight.count));
  return {read + (uint64_t(rows) * call.x_slots * weight.depth + slots * weight.n) * kFloatBytes,
          2 * slots * weight.n * weight.depth};
}

extern const OpInfo op_matmul_expert = {check, groups, pack, cost};

}  // namespace greta
