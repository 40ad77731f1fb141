// embed: rows of the embedding table, and the step's tokens into the token log. Group = a token.
#include "compute/ops/parts.h"

namespace greta {

static Status check(std::span<const Call> calls, const KernelRow&) {
  GRETA_TRY(check_single(calls));
  const Call& call = calls[0];
  if (call.vocab && (call.first > call.vocab || call.weight.n > call.vocab - call.first))
    return fail(Code::Argument, "embed: %u rows from %u on in a table of %u", call.weight.n, call.first, call.vocab);
  return check_weight("embed", call.weight);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  EmbedBlock block = {};
  block.weight = call.weight.slice.address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.token_log = call.slot[kLog].address();
  block.width = call.weight.depth;
  block.vocab = call.vocab ? call.vocab : call.weight.n;
  block.first = call.first;
  block.rows = call.weight.n;
  block.scale = call.scale;
  out->set_block(block);
  out->read(call.weight.slice);
  out->write(call.slot[kY]);
  read_step(call, out);
  out->write(call.slot[kLog], true);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Tensor& weight = calls[0].weight;
  return {rows * (quant_bytes(weight.type, weight.depth) + weight.depth * kFloatBytes),
          uint64_t(rows) * weight.depth};
}

extern const OpInfo op_embed = {check, groups_rows, pack, cost};

}  // namespace greta
