// The functions of greta_compute.h for operations on single values.
#include "api/compute/work.h"

using namespace greta;

static_assert(GRETA_ACTIVATION_SILU == kActivationSilu && GRETA_ACTIVATION_GELU == kActivationGelu &&
              GRETA_ACTIVATION_CLAMPED == kActivationClamped);
static_assert(GRETA_FACTOR_ITSELF == kFactorItself && GRETA_FACTOR_LOGISTIC == kFactorLogistic &&
              GRETA_FACTOR_POSITIVE == kFactorPositive && GRETA_FACTOR_GELU == kFactorGelu &&
              GRETA_FACTOR_GELU_ERF == kFactorGeluErf && GRETA_FACTOR_SOFTPLUS == kFactorSoftplus);

// y and two inputs of one shape, all without gaps. Where `in_place`, y may be either of them.
static Status read_three(const greta_compute& compute, const greta_tensor& a, const char* a_role,
                         const greta_tensor& b, const char* b_role, const greta_tensor& y, Work* work) {
  TensorView of_a, of_b, of_y;
  RowsView rows;
  GRETA_TRY(read_values(compute, a, a_role, &of_a));
  GRETA_TRY(read_values(compute, b, b_role, &of_b));
  GRETA_TRY(read_values(compute, y, "y", &of_y));
  for (const TensorView* each : {&of_a, &of_b, &of_y}) {
    GRETA_TRY(need_same_shape(*each, of_y));
    GRETA_TRY(read_rows(*each, &rows));
    GRETA_TRY(need_dense(*each, rows));
    GRETA_TRY(need_apart(of_y, *each, true));
  }
  work->call.width = uint32_t(of_y.width());
  work->rows = rows.rows * rows.heads;
  work->operand(kX, of_a, of_y.width());
  work->operand(kX2, of_b, of_y.width());
  work->operand(kY, of_y, of_y.width());
  return {};
}

static Status read_add(const greta_compute& compute, const greta_add_call& given, Work* work) {
  work->call.op = Op::Add;
  work->call.add.scale = given.scale ? given.scale : 1;
  return read_three(compute, given.a, "a", given.b, "b", given.y, work);
}

static Status read_gate(const greta_compute& compute, const greta_gate_call& given, Work* work) {
  const int activation = enum_number(given.activation);
  if (activation < 0 || activation > GRETA_ACTIVATION_CLAMPED)
    return fail(Code::Argument, "activation is %d, expected a greta_activation", activation);
  work->call.op = Op::Gate;
  work->call.gate.activation = uint32_t(activation);
  return read_three(compute, given.gate, "gate", given.up, "up", given.y, work);
}

// Kernels let y be the second input, and the first one where that is the same.
static Status read_multiply(const greta_compute& compute, const greta_multiply_call& given, Work* work) {
  const int factor = enum_number(given.factor);
  if (factor < 0 || factor > GRETA_FACTOR_SOFTPLUS || factor == int(kFactorXielu))
    return fail(Code::Argument, "factor is %d, expected a greta_factor", factor);
  work->call.op = Op::Multiply;
  GRETA_TRY(read_three(compute, given.x, "x", given.by, "by", given.y, work));
  work->call.multiply = {.heads = 1, .factor = uint32_t(factor)};
  const auto& slot = work->call.slot;
  if (slot[kX] == slot[kY] && slot[kX2] != slot[kY])
    return fail(Code::Argument, "multiply: y is x, which is allowed only where x is also what it multiplies");
  return {};
}

static Status read_softcap(const greta_compute& compute, const greta_softcap_call& given, Work* work) {
  GRETA_TRY(check_reserved(given.reserved));
  if (!(given.cap >= 0)) return fail(Code::Argument, "softcap: a cap of %g", double(given.cap));
  PairView pair;
  GRETA_TRY(read_pair(compute, given.x, given.y, &pair));
  const auto& [x, y, of_x, of_y] = pair;
  GRETA_TRY(need_dense(x, of_x));
  if (of_y.heads != 1)
    return fail(Code::Unsupported, "softcap: the strides of y make no rows at equal distances");
  work->call.op = Op::Softcap;
  work->call.width = uint32_t(x.width());
  work->call.y_stride = uint32_t(of_y.stride);
  work->call.softcap = {given.cap, given.scale ? given.scale : 1};
  work->rows = of_y.rows;
  work->operand(kX, x, x.width());
  work->operand(kY, y, of_y.stride);
  return {};
}

static Status read_cast(const greta_compute& compute, const greta_cast_call& given, Work* work) {
  GRETA_TRY(check_reserved(given.reserved));
  TensorView x, y;
  RowsView of_x, of_y;
  GRETA_TRY(read_values(compute, given.x, "x", &x));
  GRETA_TRY(read_values(compute, given.y, "y", &y));
  GRETA_TRY(need_same_shape(x, y));
  GRETA_TRY(need_apart(y, x, false));
  GRETA_TRY(read_rows(x, &of_x));
  GRETA_TRY(read_rows(y, &of_y));
  if (of_x.heads != 1 || of_y.heads != 1)
    return fail(Code::Unsupported, "cast: the strides of %s make no rows at equal distances",
                of_x.heads != 1 ? "x" : "y");
  work->call.op = Op::Cast;
  work->call.width = uint32_t(x.width());
  work->call.x_stride = uint32_t(of_x.stride);
  work->call.y_stride = uint32_t(of_y.stride);
  work->call.cast = {Work::cast_type(x), Work::cast_type(y)};
  work->rows = of_x.rows;
  work->place(kX, x, of_x.stride);
  work->place(kY, y, of_y.stride);
  return {};
}

GRETA_OPERATION(add)
GRETA_OPERATION(cast)
GRETA_OPERATION(gate)
GRETA_OPERATION(multiply)
GRETA_OPERATION(softcap)
