// gate: y = activation(gate) * up, alone or with the float16 form that the next matmul reads. Group = a
// token, or a tile of its values.
#include "compute/ops/parts.h"

namespace greta {

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if ((calls.size() != 2 || !makes_halves(calls[0], calls[1], calls[0].width)) && !check_single(calls, why))
    return false;
  if (calls[0].gate.activation > kActivationClamped)
    return why.no("gate: no activation %u", calls[0].gate.activation);
  return check_size("gate", "width", calls[0].width, why);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  GateBlock block = {};
  block.gate = call.slot[kX].address();
  block.up = call.slot[kX2].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.width = call.width;
  block.activation = call.gate.activation;
  out->read(call.slot[kX]);
  out->read(call.slot[kX2]);
  out->write(call.slot[kY]);
  read_step(call, out);
  if (calls.size() == 2) {
    block.halves = calls[1].slot[kY].address();
    out->write(calls[1].slot[kY]);
  }
  out->set_block(block);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = uint64_t(rows) * calls[0].width;
  return {3 * values * kFloatBytes, 8 * values};
}

extern const OpInfo op_gate = {fits, groups_row_tiles, pack, cost};

}  // namespace greta
