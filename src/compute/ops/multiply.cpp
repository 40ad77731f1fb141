// multiply: y = factor(x) * by, over heads whose values may lie apart, alone or with the form that the next
// product reads. Group = a token, or a tile of its values.
#include "compute/ops/forms.h"

namespace greta {

static uint64_t values_of(const Call& call) { return uint64_t(call.multiply.heads) * call.width; }

static bool check_convert(const Call& call, const Call& convert, Reason& why) {
  const uint64_t values = values_of(call);
  if (values <= UINT32_MAX && call.width % 4 == 0 &&
      (makes_halves(call, convert, uint32_t(values)) || makes_rounded(call, convert, uint32_t(values))))
    return true;
  return why.no("multiply: %u heads of %u values do not fuse with a form of %u", call.multiply.heads,
                call.width, convert.width);
}

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  const Call& call = calls[0];
  if (calls.size() == 2 ? !check_convert(call, calls[1], why) : !check_single(calls, why)) return false;
  if (call.multiply.factor >= kFactorCount) return why.no("multiply: no factor %u", call.multiply.factor);
  if (values_of(call) > UINT32_MAX)
    return why.no("multiply: %u heads of %u values", call.multiply.heads, call.width);
  return check_size("multiply", "heads", call.multiply.heads, why) &&
         check_size("multiply", "width", call.width, why) &&
         check_stride("multiply", call.x_stride, call.multiply.each_head ? 1 : call.width, why) &&
         check_stride("multiply", call.multiply.by_stride, call.width, why);
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  out[0] = bucket;
  out[1] = tiles_of(row, values_of(calls[0]));
  out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  MultiplyRounded all = {};
  MultiplyBlock& block = all.block;
  block.x = call.slot[kX].address();
  block.by = call.slot[kX2].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.heads = call.multiply.heads;
  block.width = call.width;
  block.x_stride = stride_or(call.x_stride, call.multiply.each_head ? 1 : call.width);
  block.by_stride = stride_or(call.multiply.by_stride, call.width);
  block.x_step = call.multiply.each_head ? 0 : 1;
  block.factor = call.multiply.factor;
  block.positive = call.multiply.xielu.positive;
  block.negative = call.multiply.xielu.negative;
  block.linear = call.multiply.xielu.linear;
  out->read(call.slot[kX]);
  out->read(call.slot[kX2]);
  out->write(call.slot[kY]);
  read_step(call, out);
  if (calls.size() == 1) return out->set_block(block);
  pack_form(calls[1], &all, out);
  out->set_block(all);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = rows * values_of(calls[0]);
  const uint32_t factor = calls[0].multiply.factor;
  return {3 * values * kFloatBytes, (factor == kFactorItself || factor == kFactorPositive ? 1 : 8) * values};
}

extern const OpInfo op_multiply = {fits, groups, pack, cost};

}  // namespace greta
