// combine: the weighted sum of a token's experts, alone or with the residual and the form that the next
// product reads. Group = a token, or a tile of its values.
#include "compute/ops/forms.h"

namespace greta {

static bool check_add(std::span<const Call> calls, Reason& why) {
  const Call &sum = calls[0], &add = calls[1];
  if (add.op != Op::Add || !same_place(add.slot[kX2], sum.slot[kY]) || add.width != sum.width ||
      sum.width % 4)
    return why.no("combine: rows of %u values do not fuse with %s of %u", sum.width, op_name(add.op),
                  add.width);
  if (calls.size() == 2) return true;
  const Call& convert = calls[2];
  const Tensor& gain = convert.weight;
  if (convert.op == Op::Convert && convert.form == Form::Q8X16 &&
      same_place(convert.slot[kX], add.slot[kY]) && convert.width == sum.width && sum.width % 32 == 0 &&
      (!gain.n || gain.depth == sum.width))
    return true;
  return why.no("combine: rows of %u values do not fuse with a form of %u", sum.width, convert.width);
}

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (calls.size() == 2 || calls.size() == 3 ? !check_add(calls, why) : !check_single(calls, why))
    return false;
  if (!check_size("combine", "width", calls[0].width, why)) return false;
  return check_size("combine", "count of experts", calls[0].experts.used, why);
}

static void pack_add(std::span<const Call> calls, Launch* out) {
  const Call &sum = calls[0], &add = calls[1];
  CombineAddBlock block = {};
  block.x = sum.slot[kX].address();
  block.weights = sum.slot[kX2].address();
  block.residual = add.slot[kX].address();
  block.y = add.slot[kY].address();
  block.step = sum.slot[kStep].address();
  block.width = sum.width;
  block.used = sum.experts.used;
  block.scale = add.add.scale;
  for (const Slice& input : {sum.slot[kX], sum.slot[kX2], add.slot[kX]}) out->read(input);
  out->write(add.slot[kY]);
  read_step(sum, out);
  if (calls.size() > 2) {
    block.rounded = calls[2].slot[kY].address();
    block.next_gain = calls[2].weight.slice.address();
    out->write(calls[2].slot[kY]);
    out->read(calls[2].weight.slice);
  }
  out->set_block(block);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  if (calls.size() > 1) return pack_add(calls, out);
  const Call& call = calls[0];
  CombineBlock block = {};
  block.x = call.slot[kX].address();
  block.weights = call.slot[kX2].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.width = call.width;
  block.used = call.experts.used;
  out->set_block(block);
  out->read(call.slot[kX]);
  out->read(call.slot[kX2]);
  out->write(call.slot[kY]);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t width = calls[0].width, used = calls[0].experts.used;
  return {rows * (used * width + used + width) * kFloatBytes, 2 * rows * used * width};
}

extern const OpInfo op_combine = {fits, groups_row_tiles, pack, cost};

}  // namespace greta
