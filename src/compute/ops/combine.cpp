// combine: the weighted sum of a token's experts. Group = a token, or a tile of its values.
#include "compute/ops/parts.h"

namespace greta {

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (!check_single(calls, why)) return false;
  if (!check_size("combine", "width", calls[0].width, why)) return false;
  return check_size("combine", "count of experts", calls[0].experts.used, why);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  CombineBlock block = {};
  block.x = call.slot[kX].address();
  block.weights = call.slot[kX2].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.width = call.width;
  block.used = call.experts.used;
  out->set_block(block);
  out->read(call.slot[kX]);
  out->read(call.slot[kX2]);
  out->write(call.slot[kY]);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t width = calls[0].width, used = calls[0].experts.used;
  return {rows * (used * width + used + width) * kFloatBytes, 2 * rows * used * width};
}

extern const OpInfo op_combine = {fits, groups_row_tiles, pack, cost};

}  // namespace greta
