// The functions of greta_compute.h for softmax.
#include "api/compute/work.h"

using namespace greta;

// Which row of `given` each row of x has. Its dimensions are those of x before the last one, or 1 where all
// rows along one have the same.
static Status read_repeats(const TensorView& x, const TensorView& given, Call::Repeats* out) {
  uint64_t every = 1, count = 1, above = 1;
  for (uint32_t d = x.rank - 1; d-- > 0;) {
    const uint64_t of_x = x.shape[d], of_given = given.shape[d];
    if (of_given != of_x && of_given != 1)
      return fail(Code::Argument, "%s: dimension %u is %llu, expected 1 or the %llu of x", given.role, d,
                  (unsigned long long)of_given, (unsigned long long)of_x);
    if (of_x == 1) continue;
    if (of_given == 1)
      (count == 1 ? every : above) *= of_x;
    else if (above == 1)
      count *= of_x;
    else
      return fail(Code::Unsupported, "%s: dimensions that are not 1 do not stand together", given.role);
  }
  *out = {uint32_t(every), uint32_t(count)};
  return {};
}

// Reads a mask or sinks of `rank` dimensions without gaps; with a rank of 0 they are absent.
static Status read_shared(const greta_compute& compute, const greta_tensor& given, const char* role,
                          uint32_t rank, const TensorView& x, const TensorView& y, Work* work, Slot slot,
                          Call::Repeats* out) {
  TensorView view;
  RowsView rows;
  if (!given.rank) return {};
  GRETA_TRY(read_tensor(compute, given, role, &view));
  if (view.rank != rank)
    return fail(Code::Argument, "%s: a rank of %u, expected %u beside x with %u", role, view.rank, rank,
                x.rank);
  if (rank == x.rank && view.width() != x.width())
    return fail(Code::Argument, "%s: rows of %llu values, x has %llu", role, (unsigned long long)view.width(),
                (unsigned long long)x.width());
  GRETA_TRY(read_rows(view, &rows));
  GRETA_TRY(need_dense(view, rows));
  GRETA_TRY(need_apart(y, view, false));
  work->operand(slot, view, 0);
  return read_repeats(x, view, out);
}

static Status read_softmax(const greta_compute& compute, const greta_softmax_call& given, Work* work) {
  if (!(given.cap >= 0)) return fail(Code::Argument, "softmax: a cap of %g", double(given.cap));
  if (given.logarithm > 1) return fail(Code::Argument, "softmax: logarithm is %u", given.logarithm);
  PairView pair;
  GRETA_TRY(read_pair(compute, given.x, given.y, &pair));
  const auto& [x, y, of_x, of_y] = pair;
  if (of_x.heads != 1 || of_y.heads != 1)
    return fail(Code::Unsupported, "softmax: the strides of %s make no rows at equal distances",
                of_x.heads != 1 ? "x" : "y");
  Call::Softmax& shape = work->call.softmax;
  GRETA_TRY(read_shared(compute, given.mask, "mask", x.rank, x, y, work, kX2, &shape.mask));
  GRETA_TRY(read_shared(compute, given.sinks, "sinks", x.rank - 1, x, y, work, kTable, &shape.sinks));
  work->call.op = Op::Softmax;
  work->call.width = uint32_t(x.width());
  work->call.x_stride = uint32_t(of_x.stride);
  work->call.y_stride = uint32_t(of_y.stride);
  shape.scale = given.scale ? given.scale : 1;
  shape.cap = given.cap;
  shape.logarithm = given.logarithm;
  // All rows are one launch, so that a mask is read at the same place whatever row comes first.
  shape.rows = uint32_t(of_x.rows);
  shape.heads = uint32_t(divide_up(of_x.rows, kMaxStepTokens));
  work->rows = divide_up(of_x.rows, shape.heads);
  work->operand(kX, x, 0);
  work->operand(kY, y, 0);
  return {};
}

GRETA_OPERATION(softmax)
