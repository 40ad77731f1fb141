// softmax: weights that add up to 1, by the exponentials of a row's values, or their logarithms. Values may
// be scaled, capped and masked, and a sink takes a part of the weight. On a GPU a group is a row of x, else
// all those that belong to a row of the step.
#include "compute/ops/parts.h"

namespace greta {

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (!check_single(calls, why)) return false;
  const Call& call = calls[0];
  if (!check_size("softmax", "width", call.width, why)) return false;
  if (!check_size("softmax", "heads", call.softmax.heads, why)) return false;
  for (const Call::Repeats& each : {call.softmax.mask, call.softmax.sinks})
    if (!each.every || !each.count)
      return why.no("softmax: %u masks or sinks for %u rows each", each.count, each.every);
  if (!(call.softmax.cap >= 0)) return why.no("softmax: a cap of %g", double(call.softmax.cap));
  return check_stride("softmax", call.x_stride, call.width, why) &&
         check_stride("softmax", call.y_stride, call.width, why);
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  groups_rows(calls, row, bucket, out);
  if (row.code.group_size[0] > 1) out[1] = calls[0].softmax.heads;
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  const Call::Softmax& shape = call.softmax;
  SoftmaxBlock block = {};
  block.x = call.slot[kX].address();
  block.mask = call.slot[kX2].address();
  block.sinks = call.slot[kTable].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.rows = shape.rows;
  block.heads = shape.heads;
  block.width = call.width;
  block.x_stride = stride_or(call.x_stride, call.width);
  block.y_stride = stride_or(call.y_stride, call.width);
  block.scale = shape.scale;
  block.cap = shape.cap;
  block.logarithm = shape.logarithm;
  block.mask_every = shape.mask.every;
  block.mask_rows = shape.mask.count;
  block.sink_every = shape.sinks.every;
  block.sink_count = shape.sinks.count;
  block.rows_of = call.rows_of;
  out->set_block(block);
  for (const Slot slot : {kX, kX2, kTable}) out->read(call.slot[slot]);
  out->write(call.slot[kY]);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Call& call = calls[0];
  const uint64_t made = std::min(uint64_t(rows) * call.softmax.heads, uint64_t(call.softmax.rows));
  const uint64_t masks = call.slot[kX2].buffer ? std::min(made, uint64_t(call.softmax.mask.count)) : 0;
  return {(2 * made + masks) * call.width * kFloatBytes, made * call.width * 20};
}

extern const OpInfo op_softmax = {fits, groups, pack, cost};

}  // namespace greta
