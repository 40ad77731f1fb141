// rope: rotates heads by position, in place if kY is kX. Group = a token, or a tile of its pairs.
#include "compute/ops/parts.h"

namespace greta {

static Status check(std::span<const Call> calls, const KernelRow&) {
  GRETA_TRY(check_single(calls));
  const Call& call = calls[0];
  GRETA_TRY(check_size("rope", "heads", call.heads));
  if (!call.rope_width || call.rope_width % 2 || call.rope_width > call.width)
    return fail(Code::Argument, "rope: %u rotated values in heads of %u", call.rope_width, call.width);
  GRETA_TRY(check_stride("rope", call.x_stride, call.rope_width));
  return check_stride("rope", call.y_stride, call.rope_width);
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  out[0] = bucket;
  out[1] = tiles_of(row, uint64_t(calls[0].heads) * calls[0].rope_width / 2);
  out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  RopeBlock block = {};
  block.x = call.slot[kX].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.table = call.slot[kTable].address();
  block.heads = call.heads;
  block.rope_width = call.rope_width;
  block.rope_halves = call.rope_halves;
  block.x_stride = stride_or(call.x_stride, call.width);
  block.y_stride = stride_or(call.y_stride, call.width);
  out->set_block(block);
  out->read(call.slot[kX]);
  out->write(call.slot[kY]);
  out->read(call.slot[kTable]);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = uint64_t(rows) * calls[0].heads * calls[0].rope_width;
  return {2 * values * kFloatBytes, 3 * values};
}

extern const OpInfo op_rope = {check, groups, pack, cost};

}  // namespace greta
