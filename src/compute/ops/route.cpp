// route: the experts of each token (ids in kY) and their weights (kY2). Group = a token. Alone, or after the
// router's matmul and the norm before it: then a group is a logit of one token.
#include "compute/ops/parts.h"

namespace greta {
namespace {

// The calls of a sequence by what they do; null where absent.
struct Parts {
  const Call* norm = nullptr;
  const Call* matmul = nullptr;
  const Call* route = nullptr;
  bool unknown = false;

  explicit Parts(std::span<const Call> calls) {
    for (const Call& call : calls) {
      const Call** part = call.op == Op::Norm     ? &norm
                          : call.op == Op::Matmul ? &matmul
                          : call.op == Op::Route  ? &route
                                                  : nullptr;
      unknown |= !part || *part;
      if (part) *part = &call;
    }
  }
};

bool check_choice(const Call& call, Reason& why) {
  if (!call.used || call.used > call.experts || call.experts > kMaxExperts)
    return why.no("route: %u of %u experts, of at most %u", call.used, call.experts, kMaxExperts);
  if (call.gating > kGatingSigmoid) return why.no("route: no gating %u", call.gating);
  if (!call.groups || call.groups > kMaxExpertGroups || call.experts % call.groups || !call.groups_used ||
      call.groups_used > call.groups || call.experts / call.groups * call.groups_used < call.used)
    return why.no("route: %u experts out of %u of %u groups of %u experts", call.used, call.groups_used,
                  call.groups, call.experts);
  return true;
}

bool check_matmul(const Parts& parts, Reason& why) {
  const Tensor& weight = parts.matmul->weight;
  if (!check_weight("route", weight, why)) return false;
  if (weight.type != QuantType::f32 || weight.layout != Layout::Gguf || weight.n != parts.route->experts ||
      weight.count != 1 || weight.depth % 4 || parts.matmul->form != Form::F32 ||
      parts.matmul->rows_of != kRowsTokens)
    return why.no("route: a router [%u][%u] of type %s for %u experts", weight.n, weight.depth,
                  quant_info(weight.type).name, parts.route->experts);
  if (!same_place(parts.matmul->slot[kY], parts.route->slot[kX]) || !parts.route->slot[kCounters].buffer)
    return why.no("route: logits from elsewhere, or no counters");
  const Call* norm = parts.norm;
  if (norm &&
      (!same_place(norm->slot[kY], parts.matmul->slot[kX]) || heads_of(*norm) != 1 ||
       norm->width != weight.depth || norm->x_stride || norm->y_stride || norm->rows_of != kRowsTokens))
    return why.no("route: a norm over %u heads of %u before a router of %u", heads_of(*norm), norm->width,
                  weight.depth);
  return true;
}

bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  const Parts parts(calls);
  if (parts.unknown || (parts.norm && !parts.matmul))
    return why.no("route: does not fuse with this sequence of %zu ops", calls.size());
  if (!check_choice(*parts.route, why)) return false;
  return parts.matmul ? check_matmul(parts, why) : true;
}

void groups(std::span<const Call> calls, const KernelRow&, uint32_t bucket, uint32_t (&out)[3]) {
  const Parts parts(calls);
  out[0] = parts.matmul ? parts.route->experts : bucket;
  out[1] = out[2] = 1;
}

template <class Block>
void pack_choice(const Call& call, Block* block, Launch* out) {
  block->logits = call.slot[kX].address();
  block->ids = call.slot[kY].address();
  block->weights = call.slot[kY2].address();
  block->step = call.slot[kStep].address();
  block->experts = call.experts;
  block->used = call.used;
  block->normalise = call.normalise;
  block->bias = call.slot[kBias].address();
  block->gating = call.gating;
  block->groups = call.groups;
  block->groups_used = call.groups_used;
  block->scale = call.scale;
  out->read(call.slot[kBias]);
  out->write(call.slot[kY]);
  out->write(call.slot[kY2]);
  read_step(call, out);
}

void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Parts parts(calls);
  if (!parts.matmul) {
    RouteBlock block = {};
    pack_choice(*parts.route, &block, out);
    out->read(parts.route->slot[kX]);
    return out->set_block(block);
  }
  const Call& matmul = *parts.matmul;
  const Slice& x = (parts.norm ? parts.norm : parts.matmul)->slot[kX];
  RouteMatmulBlock block = {};
  pack_choice(*parts.route, &block, out);
  block.weight = matmul.weight.slice.address();
  block.x = x.address();
  block.logit_bias = matmul.slot[kBias].address();
  block.counters = parts.route->slot[kCounters].address();
  block.depth = matmul.weight.depth;
  out->read(matmul.weight.slice);
  out->read(x);
  out->read(matmul.slot[kBias]);
  out->write(parts.route->slot[kX]);
  if (parts.norm) {
    block.gain = parts.norm->weight.slice.address();
    block.epsilon = parts.norm->epsilon;
    out->read(parts.norm->weight.slice);
  }
  out->set_block(block);
}

Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Parts parts(calls);
  const Call& call = *parts.route;
  const uint64_t weights = parts.matmul ? uint64_t(call.experts) * parts.matmul->weight.depth : 0;
  return {weights * kFloatBytes + rows * (call.experts + 2ull * call.used) * kFloatBytes,
          2 * weights * rows + uint64_t(rows) * call.experts * (4 + call.used)};
}

}  // namespace

extern const OpInfo op_route = {fits, groups, pack, cost};

}  // namespace greta
