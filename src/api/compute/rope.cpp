// The functions of greta_compute.h for rotary embeddings.
#include "api/compute/work.h"

using namespace greta;

// Row t has the position first_position + t, or that of the stream's rows. In the first case kernels find
// positions from 0 on in the rows, so the table begins at the first position.
static Status read_rope(const greta_compute& compute, const greta_rope_call& given, Work* work) {
  TensorView x, y, table;
  bool halves = false;
  GRETA_TRY(check_reserved(given.reserved | given.reserved2));
  GRETA_TRY(read_flag(given.halves, "halves", &halves));
  GRETA_TRY(read_tensor(compute, given.x, "x", &x));
  GRETA_TRY(read_tensor(compute, given.y, "y", &y));
  GRETA_TRY(read_tensor(compute, given.table, "table", &table));
  GRETA_TRY(need_same_shape(x, y));
  GRETA_TRY(need_apart(y, x, true));
  GRETA_TRY(need_apart(y, table, false));
  if (x.rank != 3 || table.rank != 3 || table.shape[2] != 2 || 2 * table.shape[1] > x.width())
    return fail(
        Code::Argument,
        "rope: x of [rows][heads][width] and a table of [positions][rotated / 2][2] are wanted; x has "
        "rank %u and rows of %llu values, the table rank %u and %llu x %llu",
        x.rank, (unsigned long long)x.width(), table.rank,
        (unsigned long long)table.shape[table.rank > 1 ? table.rank - 2 : 0],
        (unsigned long long)table.width());
  const uint64_t rows = x.shape[0], heads = x.shape[1];
  work->most_positions = given.first_position ? 0 : table.shape[0];
  if (given.first_position > table.shape[0] || rows > table.shape[0] - given.first_position)
    return fail(Code::Argument, "rope: %llu rows from position %llu on, the table has %llu positions",
                (unsigned long long)rows, (unsigned long long)given.first_position,
                (unsigned long long)table.shape[0]);
  const auto even = [](const TensorView& t) {
    return t.shape[0] == 1 || t.strides[0] == t.shape[1] * t.strides[1];
  };
  RowsView of_table;
  GRETA_TRY(read_rows(table, &of_table));
  if (!even(x) || !even(y) || of_table.stride != 2 || x.strides[1] > UINT32_MAX ||
      y.strides[1] > UINT32_MAX || heads > UINT32_MAX || rows > uint64_t(1) << 24)
    return fail(
        Code::Unsupported,
        "rope: rows every %llu and heads every %llu values of x, %llu and %llu of y; rows must follow "
        "their heads, and the table has no gaps",
        (unsigned long long)x.strides[0], (unsigned long long)x.strides[1], (unsigned long long)y.strides[0],
        (unsigned long long)y.strides[1]);
  work->call.op = Op::Rope;
  work->call.width = uint32_t(x.width());
  work->call.rope = {uint32_t(heads), uint32_t(2 * table.shape[1]), halves ? 1u : 0u};
  work->call.x_stride = uint32_t(x.strides[1]);
  work->call.y_stride = uint32_t(y.strides[1]);
  work->rows = rows;
  work->operand(kX, x, heads * x.strides[1]);
  work->operand(kY, y, heads * y.strides[1]);
  work->operand(kTable, table, 2 * table.shape[1]);
  Slice& from = work->call.slot[kTable];
  const uint64_t skipped = given.first_position * work->row_bytes[kTable];
  from = {from.buffer, from.offset + skipped, from.bytes - skipped};
  return {};
}

GRETA_OPERATION(rope)
