// norm: root-mean-square norm of each head of a row (one head: of the row), alone or with what a kernel row
// fuses after it: a residual and the form that the next matmul reads, or float16. Group = a row.
#include "compute/ops/parts.h"

namespace greta {

// Row for row on what the norm made, without gaps.
static bool check_add(const Call& norm, const Call& add, Reason& why) {
  if (add.op != Op::Add || !same_place(add.slot[kX2], norm.slot[kY]) || add.width != norm.width ||
      norm.norm.heads != 1 || norm.rows_of != kRowsTokens || norm.x_stride || norm.y_stride)
    return why.no("norm: rows of %u values do not fuse with %s of %u", norm.width, op_name(add.op),
                  add.width);
  return true;
}

static bool check_convert(const Call& add, const Call& convert, Reason& why) {
  const Tensor& gain = convert.weight;
  if (convert.op != Op::Convert || convert.form != Form::Q8X16 ||
      !same_place(convert.slot[kX], add.slot[kY]) || convert.width != add.width || convert.width % 32 ||
      (gain.n && gain.depth != convert.width))
    return why.no("norm: rows of %u values do not fuse with %s of %u", add.width, op_name(convert.op),
                  convert.width);
  return true;
}

static bool check_halves(const Call& norm, const Call& convert, Reason& why) {
  if (makes_halves(norm, convert, norm.width) && norm.norm.heads == 1 && !norm.x_stride && !norm.y_stride)
    return true;
  return why.no("norm: rows of %u values do not fuse with a form of %u", norm.width, convert.width);
}

static bool gives_halves(std::span<const Call> calls) {
  return calls.size() == 2 && calls[1].op == Op::Convert;
}

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  const Call& call = calls[0];
  if (calls.size() > 3) return check_single(calls, why);
  if (calls.size() > 1 &&
      !(gives_halves(calls) ? check_halves(call, calls[1], why) : check_add(call, calls[1], why)))
    return false;
  if (calls.size() > 2 && !check_convert(calls[1], calls[2], why)) return false;
  if (!check_size("norm", "width", call.width, why)) return false;
  if (call.weight.depth != call.width || call.weight.n != 1)
    return why.no("norm: a gain [%u][%u] for rows of %u values", call.weight.n, call.weight.depth,
                  call.width);
  if (!check_stride("norm", call.x_stride, call.norm.heads * call.width, why)) return false;
  if (!check_stride("norm", call.y_stride, call.norm.heads * call.width, why)) return false;
  return check_weight("norm", call.weight, why);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  const bool adds = calls.size() > 1 && !gives_halves(calls);
  const Slice& y = calls[adds].slot[kY];
  NormBlock block = {};
  block.x = call.slot[kX].address();
  block.gain = call.weight.slice.address();
  block.y = y.address();
  block.step = call.slot[kStep].address();
  block.width = call.width;
  block.heads = call.norm.heads;
  block.x_stride = stride_or(call.x_stride, block.heads * call.width);
  block.y_stride = stride_or(call.y_stride, block.heads * call.width);
  block.epsilon = call.norm.epsilon;
  block.rows_of = call.rows_of;
  out->read(call.slot[kX]);
  out->read(call.weight.slice);
  out->write(y);
  read_step(call, out);
  if (gives_halves(calls)) {
    block.halves = calls[1].slot[kY].address();
    out->write(calls[1].slot[kY]);
  }
  if (adds) {
    block.residual = calls[1].slot[kX].address();
    block.scale = calls[1].add.scale;
    out->read(calls[1].slot[kX]);
  }
  if (calls.size() > 2) {
    block.rounded = calls[2].slot[kY].address();
    block.next_gain = calls[2].weight.slice.address();
    out->write(calls[2].slot[kY]);
    out->read(calls[2].weight.slice);
  }
  out->set_block(block);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = uint64_t(rows) * calls[0].norm.heads * calls[0].width;
  Cost all = {2 * values * kFloatBytes, 4 * values};
  if (calls.size() > 1) all.bytes += values * kFloatBytes, all.flops += 2 * values;
  if (calls.size() > 2)
    all.bytes += rows * form_row_bytes(Form::Q8X16, calls[0].width), all.flops += 2 * values;
  return all;
}

extern const OpInfo op_norm = {fits, groups_rows, pack, cost};

}  // namespace greta
