// The functions of greta_compute.h for norms.
#include "api/compute/work.h"

using namespace greta;

static Status read_rms_norm(const greta_compute& compute, const greta_rms_norm_call& given, Work* work) {
  PairView pair;
  TensorView gain;
  GRETA_TRY(read_pair(compute, given.x, given.y, &pair));
  auto& [x, y, of_x, of_y] = pair;
  GRETA_TRY(read_vector(compute, given.gain, "gain", x.width(), false, &gain));
  GRETA_TRY(need_apart(y, gain, false));
  if (!(given.epsilon >= 0)) return fail(Code::Argument, "rms_norm: an epsilon of %g", double(given.epsilon));
  // A tensor whose dimensions are all rows has heads where the other one has gaps behind them.
  const uint64_t heads = std::max(of_x.heads, of_y.heads);
  for (RowsView* rows : {&of_x, &of_y}) {
    if (rows->heads == heads) continue;
    if (rows->stride != rows->width)
      return fail(
          Code::Unsupported, "rms_norm: rows of x every %llu and of y every %llu values, in heads of %llu",
          (unsigned long long)of_x.stride, (unsigned long long)of_y.stride, (unsigned long long)x.width());
    rows->rows /= heads;
    rows->heads = heads;
    rows->stride *= heads;
  }
  work->call.op = Op::Norm;
  work->call.width = uint32_t(x.width());
  work->call.norm = {uint32_t(heads), given.epsilon};
  work->call.x_stride = uint32_t(of_x.stride);
  work->call.y_stride = uint32_t(of_y.stride);
  work->rows = of_x.rows;
  work->weight(gain);
  work->operand(kX, x, of_x.stride);
  work->operand(kY, y, of_y.stride);
  return {};
}

GRETA_OPERATION(rms_norm)

static Status read_layer_norm(const greta_compute& compute, const greta_layer_norm_call& given, Work* work) {
  PairView pair;
  TensorView gain, bias;
  GRETA_TRY(read_pair(compute, given.x, given.y, &pair));
  const auto& [x, y, of_x, of_y] = pair;
  GRETA_TRY(need_dense(x, of_x));
  GRETA_TRY(need_dense(y, of_y));
  GRETA_TRY(read_vector(compute, given.gain, "gain", x.width(), true, &gain));
  GRETA_TRY(read_vector(compute, given.bias, "bias", x.width(), true, &bias));
  GRETA_TRY(need_apart(y, gain, false));
  GRETA_TRY(need_apart(y, bias, false));
  if (!(given.epsilon >= 0))
    return fail(Code::Argument, "layer_norm: an epsilon of %g", double(given.epsilon));
  work->call.op = Op::LayerNorm;
  work->call.width = uint32_t(x.width());
  work->call.norm = {1, given.epsilon};
  work->rows = of_x.rows * of_x.heads;
  if (gain.there()) work->weight(gain);
  work->operand(kX, x, x.width());
  work->operand(kY, y, x.width());
  work->operand(kBias, bias, 0);
  return {};
}

GRETA_OPERATION(layer_norm)
