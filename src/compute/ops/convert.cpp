// convert: float32 activations to another form (group = a row, `width` values; times the gain `weight` if one
// is given), or a weight in GGUF order (kX) to the packed layout (kY; `weight` says of what; group =
// kPackRows rows).
#include "compute/ops/parts.h"

namespace greta {

static bool of_activations(const Call& call) { return call.form != Form::F32; }

static bool fits(std::span<const Call> calls, const KernelRow& row, Reason& why) {
  if (!check_single(calls, why)) return false;
  const Call& call = calls[0];
  if (call.form != row.form || of_activations(call) == (call.weight.layout != Layout::Gguf))
    return why.no("convert: %s makes another form", row.name);
  if (of_activations(call)) {
    if (!call.width || call.width % 32)
      return why.no("convert: rows of %u values are not whole blocks of 32", call.width);
    if (call.weight.n && (call.form != Form::Q8X16 || call.weight.depth != call.width))
      return why.no("convert: a gain [%u] for rows of %u values", call.weight.depth, call.width);
    return true;
  }
  if (call.weight.count != 1) return why.no("convert: %u matrices at once", call.weight.count);
  return check_weight("convert", call.weight, why);
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  const Call& call = calls[0];
  out[0] = of_activations(call) ? bucket : uint32_t(divide_up(call.weight.n, kPackRows));
  out[1] = of_activations(call) ? tiles_of(row, call.width) : 1;
  out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  const bool activations = of_activations(call);
  ConvertBlock block = {};
  block.x = call.slot[kX].address();
  block.y = call.slot[kY].address();
  block.rows = activations ? 0 : call.weight.n;
  block.depth = activations ? call.width : call.weight.depth;
  block.rows_of = call.rows_of;
  out->read(call.slot[kX]);
  out->write(call.slot[kY]);
  if (activations) {
    block.step = call.slot[kStep].address();
    block.gain = call.weight.slice.address();
    out->read(call.weight.slice);
    read_step(call, out);
  }
  out->set_block(block);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Call& call = calls[0];
  if (of_activations(call))
    return {rows * (call.width * kFloatBytes + form_row_bytes(call.form, call.width)),
            2ull * rows * call.width};
  const Tensor& weight = call.weight;
  return {tensor_bytes(weight.type, Layout::Gguf, weight.n, weight.depth, 1) +
              tensor_bytes(weight.type, weight.layout, weight.n, weight.depth, 1),
          0};
}

extern const OpInfo op_convert = {fits, groups, pack, cost};

}  // namespace greta
