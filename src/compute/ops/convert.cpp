// convert: float32 activations to the q8 form (group = a row, `width` values), or a weight in GGUF
// order (kX) to the packed layout (kY; `weight` says of what; group = kPackRows rows).
#include "compute/ops/parts.h"

namespace greta {

static Status check(std::span<const Call> calls, const KernelRow& row) {
  GRETA_TRY(check_single(calls));
  const Call& call = calls[0];
  if (call.form != row.form || (call.form == Form::Q8) == (call.weight.layout == Layout::Packed))
    return fail(Code::Unsupported, "convert: %s makes another form", row.name);
  if (call.form == Form::Q8) {
    if (!call.width || call.width % 32)
      return fail(Code::Unsupported, "convert: rows of %u values are not whole blocks of 32", call.width);
    return {};
  }
  if (call.weight.count != 1) return fail(Code::Argument, "convert: %u matrices at once", call.weight.count);
  return check_weight("convert", call.weight);
}

static void groups(std::span<const Call> calls, const KernelRow&, uint32_t bucket, uint32_t (&out)[3]) {
  const Call& call = calls[0];
  out[0] = call.form == Form::Q8 ? bucket : uint32_t(divide_up(call.weight.n, kPackRows));
  out[1] = out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  const bool q8 = call.form == Form::Q8;
  ConvertBlock block = {};
  block.x = call.slot[kX].address();
  block.y = call.slot[kY].address();
  block.rows = q8 ? 0 : call.weight.n;
  block.depth = q8 ? call.width : call.weight.depth;
  block.rows_of = call.rows_of;
  out->read(call.slot[kX]);
  out->write(call.slot[kY]);
  if (q8) {
    block.step = call.slot[kStep].address();
    read_step(call, out);
  }
  out->set_block(block);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Call& call = calls[0];
  if (call.form == Form::Q8)
    return {rows * (call.width * kFloatBytes + q8_row_bytes(uint64_t(call.width))), 2ull * rows * call.width};
  const Tensor& weight = call.weight;
  return {tensor_bytes(weight.type, Layout::Gguf, weight.n, weight.depth, 1) +
              tensor_bytes(weight.type, weight.layout, weight.n, weight.depth, 1),
          0};
}

extern const OpInfo op_convert = {check, groups, pack, cost};

}  // namespace greta
