// route: the experts of each token (ids in kY) and their weights (kY2). Group = a token. Alone, or after the
// router's matmul and the norm before it: then a group is a logit of a token.
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
  const uint32_t count = call.experts.count, used = call.experts.used;
  const Call::Route& route = call.route;
  if (!used || used > count || count > kMaxExperts)
    return why.no("route: %u of %u experts, of at most %u", used, count, kMaxExperts);
  if (route.gating > kGatingSigmoid) return why.no("route: no gating %u", route.gating);
  if (!route.groups || route.groups > kMaxExpertGroups || count % route.groups || !route.groups_used ||
      route.groups_used > route.groups || count / route.groups * route.groups_used < used)
    return why.no("route: %u experts out of %u of %u groups of %u experts", used, route.groups_used,
                  route.groups, count);
  return true;
}

bool check_matmul(const Parts& parts, Reason& why) {
  const Tensor& weight = parts.matmul->weight;
  if (!check_weight("route", weight, why)) return false;
  if (weight.type != QuantType::f32 || weight.layout != Layout::Gguf ||
      weight.n != parts.route->experts.count || weight.count != 1 || weight.depth % 4 ||
      parts.matmul->form != Form::F32 || parts.matmul->x_stride || parts.matmul->y_stride ||
      parts.matmul->rows_of != kRowsTokens)
    return why.no("route: a router [%u][%u] of type %s for %u experts", weight.n, weight.depth,
                  quant_info(weight.type).name, parts.route->experts.count);
  if (!same_place(parts.matmul->slot[kY], parts.route->slot[kX]) || !parts.route->slot[kCounters].buffer)
    return why.no("route: logits from elsewhere, or no counters");
  const Call* norm = parts.norm;
  if (norm &&
      (!same_place(norm->slot[kY], parts.matmul->slot[kX]) || norm->norm.heads != 1 ||
       norm->width != weight.depth || norm->x_stride || norm->y_stride || norm->rows_of != kRowsTokens))
    return why.no("route: a norm over %u heads of %u before a router of %u", norm->norm.heads, norm->width,
                  weight.depth);
  return true;
}

bool fits(std::span<const Call> calls, const KernelRow& row, Reason& why) {
  const Parts parts(calls);
  if (parts.unknown || (parts.norm && !parts.matmul))
    return why.no("route: does not fuse with this sequence of %zu ops", calls.size());
  if (!check_choice(*parts.route, why)) return false;
  if (parts.matmul && row.tokens_max > kRouterCounters)
    return why.no("route: %s is for %u tokens, counters are for %u", row.name, row.tokens_max,
                  kRouterCounters);
  return parts.matmul ? check_matmul(parts, why) : true;
}

void groups(std::span<const Call> calls, const KernelRow&, uint32_t bucket, uint32_t (&out)[3]) {
  const Parts parts(calls);
  out[0] = parts.matmul ? parts.route->experts.count : bucket;
  out[1] = parts.matmul ? bucket : 1;
  out[2] = 1;
}

template <class Block>
void pack_choice(const Call& call, Block* block, Launch* out) {
  block->logits = call.slot[kX].address();
  block->ids = call.slot[kY].address();
  block->weights = call.slot[kY2].address();
  block->step = call.slot[kStep].address();
  block->experts = call.experts.count;
  block->used = call.experts.used;
  block->normalise = call.route.normalise;
  block->bias = call.slot[kBias].address();
  block->gating = call.route.gating;
  block->groups = call.route.groups;
  block->groups_used = call.route.groups_used;
  block->scale = call.route.scale;
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
    block.epsilon = parts.norm->norm.epsilon;
    out->read(parts.norm->weight.slice);
  }
  out->set_block(block);
}

Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Parts parts(calls);
  const uint64_t count = parts.route->experts.count, used = parts.route->experts.used;
  const uint64_t weights = parts.matmul ? count * parts.matmul->weight.depth : 0;
  return {weights * kFloatBytes + rows * (count + 2 * used) * kFloatBytes,
          2 * weights * rows + rows * count * (4 + used)};
}

}  // namespace

extern const OpInfo op_route = {fits, groups, pack, cost};

}  // namespace greta
