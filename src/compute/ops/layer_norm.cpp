// layer_norm: a norm that subtracts the mean, of each head of a row (one head: of the row), with a gain and a
// bias for each of its values, or without. Group = a row.
#include "compute/ops/parts.h"

namespace greta {

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (!check_single(calls, why)) return false;
  const Call& call = calls[0];
  if (!check_size("layer_norm", "width", call.width, why)) return false;
  if (!check_size("layer_norm", "heads", call.norm.heads, why)) return false;
  if (!call.weight.n) return true;
  if (call.weight.depth != call.width || call.weight.n != call.norm.heads)
    return why.no("layer_norm: a gain [%u][%u] for %u heads of %u values", call.weight.n, call.weight.depth,
                  call.norm.heads, call.width);
  return check_weight("layer_norm", call.weight, why);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  LayerNormBlock block = {};
  block.x = call.slot[kX].address();
  block.gain = call.weight.slice.address();
  block.bias = call.slot[kBias].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.width = call.width;
  block.heads = call.norm.heads;
  block.epsilon = call.norm.epsilon;
  block.rows_of = call.rows_of;
  out->set_block(block);
  out->read(call.slot[kX]);
  out->read(call.weight.slice);
  out->read(call.slot[kBias]);
  out->write(call.slot[kY]);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = uint64_t(rows) * calls[0].norm.heads * calls[0].width;
  return {2 * values * kFloatBytes, 7 * values};
}

extern const OpInfo op_layer_norm = {fits, groups_rows, pack, cost};

}  // namespace greta
