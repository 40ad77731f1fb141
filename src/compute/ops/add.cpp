// add: y = a + scale * b. Group = a token, or a tile of its values.
#include "compute/ops/parts.h"

namespace greta {

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (!check_single(calls, why)) return false;
  return check_size("add", "width", calls[0].width, why);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  AddBlock block = {};
  block.a = call.slot[kX].address();
  block.b = call.slot[kX2].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.width = call.width;
  block.scale = call.add.scale;
  out->set_block(block);
  out->read(call.slot[kX]);
  out->read(call.slot[kX2]);
  out->write(call.slot[kY]);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = uint64_t(rows) * calls[0].width;
  return {3 * values * kFloatBytes, 2 * values};
}

extern const OpInfo op_add = {fits, groups_row_tiles, pack, cost};

}  // namespace greta
