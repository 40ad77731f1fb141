// products: nothing but multiplications and additions, `width` of both for each group; kY has a word for
// each.
#include "compute/ops/parts.h"

namespace greta {

static uint64_t groups_of(const Call& call) { return call.slot[kY].bytes / sizeof(uint32_t); }

// Of one step of a group.
static uint64_t step_products(const KernelRow& row) {
  return uint64_t(row.tile) * row.tile_tokens * kProductsDepth;
}

static bool fits(std::span<const Call> calls, const KernelRow& row, Reason& why) {
  if (!check_single(calls, why)) return false;
  const Call& call = calls[0];
  if (!check_size("products", "width", call.width, why)) return false;
  if (call.width % step_products(row))
    return why.no("products: %u for a group, which makes %llu in a step", call.width,
                  (unsigned long long)step_products(row));
  const uint64_t needed = uint64_t(row.tile + row.tile_tokens) * form_row_bytes(Form::F16, kProductsDepth);
  if (call.slot[kX].bytes < needed)
    return why.no("products: %llu bytes of operands, %s needs %llu", (unsigned long long)call.slot[kX].bytes,
                  row.name, (unsigned long long)needed);
  return true;
}

static void groups(std::span<const Call> calls, const KernelRow&, uint32_t, uint32_t (&out)[3]) {
  out[0] = uint32_t(groups_of(calls[0]));
  out[1] = out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow& row, Launch* out) {
  const Call& call = calls[0];
  ProductsBlock block = {};
  block.operands = call.slot[kX].address();
  block.y = call.slot[kY].address();
  block.steps = uint32_t(call.width / step_products(row));
  out->set_block(block);
  out->read(call.slot[kX]);
  out->write(call.slot[kY]);
}

static Cost cost(std::span<const Call> calls, uint32_t, uint32_t) {
  const Call& call = calls[0];
  return {call.slot[kX].bytes + call.slot[kY].bytes, 2 * uint64_t(call.width) * groups_of(call)};
}

extern const OpInfo op_products = {fits, groups, pack, cost};

}  // namespace greta
