// route: the experts of each token (ids in kY) and their weights (kY2). Group = a token.
#include "compute/ops/parts.h"

namespace greta {

static Status check(std::span<const Call> calls, const KernelRow&) {
  GRETA_TRY(check_single(calls));
  const Call& call = calls[0];
  if (!call.used || call.used > call.experts)
    return fail(Code::Argument, "route: %u of %u experts", call.used, call.experts);
  if (call.gating > kGatingSigmoid) return fail(Code::Argument, "route: no gating %u", call.gating);
  if (!call.groups || call.groups > kMaxExpertGroups || call.experts % call.groups || !call.groups_used ||
      call.groups_used > call.groups || call.experts / call.groups * call.groups_used < call.used)
    return fail(Code::Argument, "route: %u experts out of %u of %u groups of %u experts", call.used,
                call.groups_used, call.groups, call.experts);
  return {};
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  RouteBlock block = {};
  block.logits = call.slot[kX].address();
  block.ids = call.slot[kY].address();
  block.weights = call.slot[kY2].address();
  block.step = call.slot[kStep].address();
  block.experts = call.experts;
  block.used = call.used;
  block.normalise = call.normalise;
  block.bias = call.slot[kBias].address();
  block.gating = call.gating;
  block.groups = call.groups;
  block.groups_used = call.groups_used;
  block.scale = call.scale;
  out->set_block(block);
  out->read(call.slot[kX]);
  out->read(call.slot[kBias]);
  out->write(call.slot[kY]);
  out->write(call.slot[kY2]);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Call& call = calls[0];
  return {rows * (call.experts + 2ull * call.used) * kFloatBytes,
          uint64_t(rows) * call.experts * (4 + call.used)};
}

extern const OpInfo op_route = {check, groups_rows, pack, cost};

}  // namespace greta
