// The functions of greta_compute.h for general products.
#include <cmath>

#include "api/compute/work.h"

using namespace greta;

namespace {

// Matrices of a tensor, whose rows and they themselves are at equal distances.
struct MatricesView {
  uint64_t count, rows, columns, stride, batch_stride;  // batch_stride 0: there is one
};

Status read_matrices(const greta_compute& compute, const greta_tensor& given, const char* role,
                     TensorView* tensor, MatricesView* out) {
  if (given.type != GRETA_TYPE_F32 && given.type != GRETA_TYPE_F16 && given.type != GRETA_TYPE_BF16)
    return fail(Code::Unsupported, "%s: values of type %u, only float32, float16 and bfloat16 are multiplied",
                role, given.type);
  GRETA_TRY(read_tensor(compute, given, role, tensor, given.type));
  const uint32_t rank = tensor->rank;
  if (rank != 2 && rank != 3)
    return fail(Code::Argument, "%s: a rank of %u; 2 for a matrix, 3 for a batch of them", role, rank);
  const bool several = rank == 3 && tensor->shape[0] > 1;
  *out = {rank == 3 ? tensor->shape[0] : 1, tensor->shape[rank - 2], tensor->width(),
          tensor->strides[rank - 2], several ? tensor->strides[0] : 0};
  if (std::max({out->count, out->rows, out->columns, out->stride, out->batch_stride}) <= UINT32_MAX)
    return {};
  return fail(Code::Unsupported, "%s: %llu matrices every %llu values, of %llu rows every %llu; at most %u",
              role, (unsigned long long)out->count, (unsigned long long)out->batch_stride,
              (unsigned long long)out->rows, (unsigned long long)out->stride, UINT32_MAX);
}

uint32_t type_of(const greta_tensor& tensor) {
  return tensor.type == GRETA_TYPE_F32 ? kGemmF32 : tensor.type == GRETA_TYPE_F16 ? kGemmF16 : kGemmBf16;
}

// The shapes and types against each other; sets those of `out`.
Status read_shape(const greta_gemm_call& given, const MatricesView& a, const MatricesView& b,
                  const MatricesView& y, Call::Gemm* out) {
  const uint64_t a_rows = out->a_turned ? a.columns : a.rows, a_columns = out->a_turned ? a.rows : a.columns;
  const uint64_t b_rows = out->b_turned ? b.columns : b.rows, b_columns = out->b_turned ? b.rows : b.columns;
  if (a_rows != y.rows || a_columns != b_rows || b_columns != y.columns)
    return fail(Code::Argument, "gemm: a [%llu][%llu]%s and b [%llu][%llu]%s give no y [%llu][%llu]",
                (unsigned long long)a.rows, (unsigned long long)a.columns, out->a_turned ? " transposed" : "",
                (unsigned long long)b.rows, (unsigned long long)b.columns, out->b_turned ? " transposed" : "",
                (unsigned long long)y.rows, (unsigned long long)y.columns);
  for (const MatricesView* each : {&a, &b})
    if (each->count != y.count && each->count != 1)
      return fail(Code::Argument, "gemm: %llu matrices %s for %llu of y; one for all, or as many",
                  (unsigned long long)each->count, each == &a ? "a" : "b", (unsigned long long)y.count);
  if (given.a.type != given.b.type || (given.y.type != given.a.type && given.y.type != GRETA_TYPE_F32))
    return fail(
        Code::Unsupported,
        "gemm: a of type %u, b of type %u and y of type %u; a and b have one, and y has it or float32",
        given.a.type, given.b.type, given.y.type);
  out->m = uint32_t(y.rows), out->n = uint32_t(y.columns), out->k = uint32_t(a_columns);
  out->batch = uint32_t(y.count);
  out->type = type_of(given.a), out->y_type = type_of(given.y);
  out->a_stride = uint32_t(a.stride), out->b_stride = uint32_t(b.stride), out->y_stride = uint32_t(y.stride);
  out->a_batch = uint32_t(a.batch_stride), out->b_batch = uint32_t(b.batch_stride);
  out->y_batch = uint32_t(y.batch_stride);
  return {};
}

// y = alpha * a . b + beta * y
Status read_gemm(const greta_compute& compute, const greta_gemm_call& given, Work* work) {
  TensorView a, b, y;
  MatricesView of_a, of_b, of_y;
  Call::Gemm& shape = work->call.gemm;
  GRETA_TRY(read_flag(given.a_transposed, "a_transposed", &shape.a_turned));
  GRETA_TRY(read_flag(given.b_transposed, "b_transposed", &shape.b_turned));
  GRETA_TRY(check_reserved(given.reserved));
  if (!std::isfinite(given.alpha) || !std::isfinite(given.beta))
    return fail(Code::Argument, "gemm: an alpha of %g and a beta of %g", double(given.alpha),
                double(given.beta));
  GRETA_TRY(read_matrices(compute, given.a, "a", &a, &of_a));
  GRETA_TRY(read_matrices(compute, given.b, "b", &b, &of_b));
  GRETA_TRY(read_matrices(compute, given.y, "y", &y, &of_y));
  GRETA_TRY(read_shape(given, of_a, of_b, of_y, &shape));
  GRETA_TRY(need_apart(y, a, false));
  GRETA_TRY(need_apart(y, b, false));
  shape.alpha = given.alpha, shape.beta = given.beta;
  work->call.op = Op::Gemm;
  work->has_rows = false;
  work->place(kX, a, 0);
  work->place(kX2, b, 0);
  work->place(kY, y, 0);
  return {};
}

}  // namespace

GRETA_OPERATION(gemm)
