// norm: root-mean-square norm of each head of a row (one head: of the row). Group = a row.
#include "compute/ops/parts.h"

namespace greta {

static Status check(std::span<const Call> calls, const KernelRow&) {
  GRETA_TRY(check_single(calls));
  const Call& call = calls[0];
  GRETA_TRY(check_size("norm", "width", call.width));
  if (call.weight.depth != call.width || call.weight.n != 1)
    return fail(Code::Argument, "norm: a gain [%u][%u] for rows of %u values", call.weight.n,
                call.weight.depth, call.width);
  GRETA_TRY(check_stride("norm", call.x_stride, heads_of(call) * call.width));
  GRETA_TRY(check_stride("norm", call.y_stride, heads_of(call) * call.width));
  return check_weight("norm", call.weight);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  NormBlock block = {};
  block.x = call.slot[kX].address();
  block.gain = call.weight.slice.address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.width = call.width;
  block.heads = heads_of(call);
  block.x_stride = stride_or(call.x_stride, block.heads * call.width);
  block.y_stride = stride_or(call.y_stride, block.heads * call.width);
  block.epsilon = call.epsilon;
  block.rows_of = call.rows_of;
  out->set_block(block);
  out->read(call.slot[kX]);
  out->read(call.weight.slice);
  out->write(call.slot[kY]);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = uint64_t(rows) * heads_of(calls[0]) * calls[0].width;
  return {2 * values * kFloatBytes, 4 * values};
}

extern const OpInfo op_norm = {check, groups_rows, pack, cost};

}  // namespace greta
