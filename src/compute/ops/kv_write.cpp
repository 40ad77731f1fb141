// kv_write: keys or values of the step's tokens into their pages, alone or behind a norm of each head. Group
// = a token, or a tile of its values, or behind a norm of its heads.
#include "compute/ops/parts.h"

namespace greta {

static bool check_norm(const Call& norm, const Call& write, Reason& why) {
  if (same_place(norm.slot[kY], write.slot[kX]) && !norm.x_stride && !norm.y_stride &&
      norm.rows_of == kRowsTokens && norm.norm.heads == write.kv_write.heads && norm.width == write.width &&
      norm.weight.n == 1 && norm.weight.depth == norm.width && norm.width % 2 == 0 &&
      norm.width <= kMaxHeadWidth)
    return check_weight("kv_write", norm.weight, why);
  return why.no("kv_write: %u heads of %u values after a norm of %u of %u", write.kv_write.heads, write.width,
                norm.norm.heads, norm.width);
}

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  const Call& call = calls.back();
  if (calls.size() == 2 ? !check_norm(calls[0], call, why) : !check_single(calls, why)) return false;
  if (!check_size("kv_write", "heads", call.kv_write.heads, why)) return false;
  if (!check_size("kv_write", "width", call.width, why)) return false;
  return check_page("kv_write", call.kv_write.heads, call.width, call.kv_write.pages, why);
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  const Call& call = calls.back();
  out[0] = bucket;
  out[1] = tiles_of(row, uint64_t(call.kv_write.heads) * (calls.size() > 1 ? 1 : call.width));
  out[2] = 1;
}

// The kernels that also rotate heads, without a rotation.
static void pack_normed(const Call& norm, const Call& write, const KernelRow& row, Launch* out) {
  RopeHeadsBlock block = {};
  block.x = norm.slot[kX].address();
  block.y = write.slot[kPool].address();
  block.gain = norm.weight.slice.address();
  block.step = write.slot[kStep].address();
  block.heads = write.kv_write.heads;
  block.head_width = block.norm_width = write.width;
  block.tile = row.tile;
  block.epsilon = norm.norm.epsilon;
  block.page_bytes = write.kv_write.pages.bytes;
  block.cache_type = write.kv_write.pages.type;
  out->set_block(block);
  out->read(norm.slot[kX]);
  out->read(norm.weight.slice);
  out->write(write.slot[kPool], true);
  read_step(write, out);
}

static void pack(std::span<const Call> calls, const KernelRow& row, Launch* out) {
  if (calls.size() > 1) return pack_normed(calls[0], calls[1], row, out);
  const Call& call = calls[0];
  KvWriteBlock block = {};
  block.x = call.slot[kX].address();
  block.pool = call.slot[kPool].address();
  block.step = call.slot[kStep].address();
  block.heads = call.kv_write.heads;
  block.head_width = call.width;
  block.page_bytes = call.kv_write.pages.bytes;
  block.cache_type = call.kv_write.pages.type;
  out->set_block(block);
  out->read(call.slot[kX]);
  out->write(call.slot[kPool], true);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Call& call = calls.back();
  const uint64_t values = uint64_t(rows) * call.kv_write.heads * call.width;
  QuantType type = QuantType::f32;
  if (!cache_quant(call.kv_write.pages.type, &type)) return {};
  return {values * kFloatBytes + quant_bytes(type, values), calls.size() > 1 ? 4 * values : 0};
}

extern const OpInfo op_kv_write = {fits, groups, pack, cost};

}  // namespace greta
