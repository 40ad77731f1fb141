// The functions of greta_compute.h for experts, and for drawing tokens.
#include <cmath>

#include "api/compute/work.h"

using namespace greta;

static_assert(GRETA_GATING_SOFTMAX == kGatingSoftmax && GRETA_GATING_SIGMOID == kGatingSigmoid);

static Status read_route(const greta_compute& compute, const greta_route_call& given, Work* work) {
  TensorView logits, ids, weights, bias;
  bool normalise = false;
  const int gating = enum_number(given.gating);
  GRETA_TRY(read_flag(given.normalise, "normalise", &normalise));
  GRETA_TRY(read_tensor(compute, given.logits, "logits", &logits));
  GRETA_TRY(read_tensor(compute, given.ids, "ids", &ids, GRETA_TYPE_I32));
  GRETA_TRY(read_tensor(compute, given.weights, "weights", &weights));
  GRETA_TRY(need_shape(logits, {0, 0}));
  const uint64_t rows = logits.shape[0], experts = logits.shape[1], used = ids.width();
  GRETA_TRY(need_shape(ids, {rows, used}));
  GRETA_TRY(need_shape(weights, {rows, used}));
  GRETA_TRY(read_vector(compute, given.bias, "bias", experts, true, &bias));
  if (gating < 0 || gating > GRETA_GATING_SIGMOID || !std::isfinite(given.scale) || experts > UINT32_MAX ||
      used > experts || rows > 1u << 24)
    return fail(Code::Argument, "route: gating %d, a scale of %g, %llu of %llu experts for %llu rows", gating,
                double(given.scale), (unsigned long long)used, (unsigned long long)experts,
                (unsigned long long)rows);
  for (const TensorView* y : {&ids, &weights})
    for (const TensorView* x : {&logits, &bias}) GRETA_TRY(need_apart(*y, *x, false));
  GRETA_TRY(need_apart(weights, ids, false));
  work->call.op = Op::Route;
  work->call.experts = {uint32_t(experts), uint32_t(used)};
  work->call.route = {normalise, uint32_t(gating), given.groups ? given.groups : 1,
                      given.groups_used ? given.groups_used : 1, given.scale ? given.scale : 1};
  work->operand(kX, logits, experts);
  work->operand(kY, ids, used);
  work->operand(kY2, weights, used);
  work->operand(kBias, bias, 0);
  work->rows = rows;
  return {};
}
GRETA_OPERATION(route)

static Status read_expert_linear(const greta_compute& compute, const greta_expert_linear_call& given,
                                 Work* work) {
  TensorView x, ids, y, bias;
  Tensor weights;
  std::shared_ptr<BufferObject> buffer;
  if (!given.experts || given.experts > kMaxExperts)
    return fail(Code::Argument, "expert_linear: %u experts, from 1 to %u are allowed", given.experts,
                kMaxExperts);
  GRETA_TRY(read_weights(compute, given.weights, false, &buffer, &weights, given.experts));
  if (weights.layout == Layout::Packed && weights.n % kPackRows)
    return fail(Code::Unsupported,
                "expert_linear: matrices of %u rows in this layout, multiples of %u are wanted", weights.n,
                kPackRows);
  GRETA_TRY(read_tensor(compute, given.x, "x", &x));
  GRETA_TRY(read_tensor(compute, given.ids, "ids", &ids, GRETA_TYPE_I32));
  GRETA_TRY(read_tensor(compute, given.y, "y", &y));
  GRETA_TRY(need_shape(ids, {0, 0}));
  const uint64_t rows = ids.shape[0], used = ids.shape[1];
  if (used > given.experts || rows > 1u << 24)
    return fail(Code::Argument, "expert_linear: %llu of %u experts for %llu rows", (unsigned long long)used,
                given.experts, (unsigned long long)rows);
  GRETA_TRY(x.rank == 2 ? need_shape(x, {rows, weights.depth}) : need_shape(x, {rows, used, weights.depth}));
  GRETA_TRY(need_shape(y, {rows, used, weights.n}));
  if (given.bias.rank) {
    GRETA_TRY(read_tensor(compute, given.bias, "bias", &bias));
    GRETA_TRY(need_shape(bias, {given.experts, weights.n}));
  }
  for (const TensorView* from : {&x, &ids, &bias}) GRETA_TRY(need_apart(y, *from, false));
  if (overlaps(y.slice, weights.slice)) return fail(Code::Argument, "y and the weights overlap");
  const uint32_t slots = x.rank == 2 ? 1 : uint32_t(used);
  work->call = CallMaker{}.matmul_each(weights, {}, {}, {}, uint32_t(used), slots);
  work->use(buffer);
  work->operand(kX, x, slots * uint64_t(weights.depth));
  work->operand(kX2, ids, used);
  work->operand(kY, y, used * weights.n);
  work->operand(kBias, bias, 0);
  work->rows = rows;
  work->counts_rows = true;
  return {};
}
GRETA_OPERATION(expert_linear)

static Status read_combine(const greta_compute& compute, const greta_combine_call& given, Work* work) {
  TensorView x, weights, y;
  GRETA_TRY(check_reserved(given.reserved));
  GRETA_TRY(read_tensor(compute, given.x, "x", &x));
  GRETA_TRY(read_tensor(compute, given.weights, "weights", &weights));
  GRETA_TRY(read_tensor(compute, given.y, "y", &y));
  GRETA_TRY(need_shape(x, {0, 0, 0}));
  const uint64_t rows = x.shape[0], used = x.shape[1], width = x.shape[2];
  GRETA_TRY(need_shape(weights, {rows, used}));
  GRETA_TRY(need_shape(y, {rows, width}));
  if (rows > 1u << 24 || used > kMaxExperts || width > UINT32_MAX)
    return fail(Code::Argument, "combine: %llu rows of %llu times %llu values", (unsigned long long)rows,
                (unsigned long long)used, (unsigned long long)width);
  GRETA_TRY(need_apart(y, x, false));
  GRETA_TRY(need_apart(y, weights, false));
  work->call = CallMaker{}.combine({}, {}, {}, uint32_t(width), uint32_t(used));
  work->operand(kX, x, used * width);
  work->operand(kX2, weights, used);
  work->operand(kY, y, width);
  work->rows = rows;
  return {};
}
GRETA_OPERATION(combine)

static Status read_sample(const greta_compute& compute, const greta_sample_call& given, Work* work) {
  TensorView logits, drawn;
  GRETA_TRY(check_reserved(given.reserved));
  GRETA_TRY(read_tensor(compute, given.logits, "logits", &logits));
  GRETA_TRY(read_tensor(compute, given.drawn, "drawn", &drawn, GRETA_TYPE_I32));
  GRETA_TRY(need_shape(logits, {0, 0}));
  GRETA_TRY(need_shape(drawn, {0, kDrawnPositions}));
  if (logits.shape[0] > kMaxStepTokens || logits.shape[1] > 1u << 24)
    return fail(Code::Argument, "sample: %llu rows of %llu logits", (unsigned long long)logits.shape[0],
                (unsigned long long)logits.shape[1]);
  GRETA_TRY(need_apart(drawn, logits, false));
  work->call = CallMaker{}.sample({}, {}, uint32_t(logits.shape[1]), {});
  work->operand(kX, logits, logits.shape[1]);
  work->operand(kY, drawn, 0);
  work->rows = logits.shape[0];
  work->needs_step = true;
  work->most_sequences = drawn.shape[0];
  return {};
}
GRETA_OPERATION(sample)
