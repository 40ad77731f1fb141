// scale: y = scales[e] * y + bias[e], where e is the expert of a slot. Group = a row, or a tile of its
// values.
#include "compute/ops/parts.h"

namespace greta {

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (!check_single(calls, why)) return false;
  const Call& call = calls[0];
  if (!check_size("scale", "width", call.width, why)) return false;
  if (!check_size("scale", "count of experts", call.experts.count, why)) return false;
  if (!call.experts.used || call.width % call.experts.used)
    return why.no("scale: %u values in %u slots", call.width, call.experts.used);
  return true;
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  ScaleBlock block = {};
  block.y = call.slot[kY].address();
  block.scales = call.slot[kTable].address();
  block.bias = call.slot[kBias].address();
  block.ids = call.slot[kX2].address();
  block.step = call.slot[kStep].address();
  block.width = call.width;
  block.slots = call.experts.used;
  block.experts = call.experts.count;
  block.rows_of = call.rows_of;
  out->set_block(block);
  out->read(call.slot[kY]);
  out->read(call.slot[kTable]);
  if (call.slot[kBias].buffer) out->read(call.slot[kBias]);
  if (call.slot[kX2].buffer) out->read(call.slot[kX2]);
  out->write(call.slot[kY]);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = uint64_t(rows) * calls[0].width;
  return {2 * values * kFloatBytes, 2 * values};
}

extern const OpInfo op_scale = {fits, groups_row_tiles, pack, cost};

}  // namespace greta
