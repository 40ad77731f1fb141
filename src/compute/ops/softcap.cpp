// softcap: y = cap * tanh(scale * x / cap), or without a cap y = scale * x. Group = a row, or a tile of its
// values.
#include "compute/ops/parts.h"

namespace greta {

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (!check_single(calls, why)) return false;
  const float cap = calls[0].softcap.cap;
  if (!(cap >= 0)) return why.no("softcap: a cap of %g", double(cap));
  if (!check_size("softcap", "width", calls[0].width, why)) return false;
  return check_stride("softcap", calls[0].y_stride, calls[0].width, why);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  SoftcapBlock block = {};
  block.x = call.slot[kX].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.width = call.width;
  block.cap = call.softcap.cap;
  block.scale = call.softcap.scale;
  block.rows_of = call.rows_of;
  block.y_stride = stride_or(call.y_stride, call.width);
  out->set_block(block);
  out->read(call.slot[kX]);
  out->write(call.slot[kY]);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = uint64_t(rows) * calls[0].width;
  return {2 * values * kFloatBytes, 16 * values};
}

extern const OpInfo op_softcap = {fits, groups_row_tiles, pack, cost};

}  // namespace greta
