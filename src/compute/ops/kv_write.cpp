// kv_write: keys or values of the step's tokens into their pages. Group = a token, or a tile of its values.
#include "compute/ops/parts.h"

namespace greta {

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (!check_single(calls, why)) return false;
  const Call& call = calls[0];
  if (!check_size("kv_write", "heads", call.kv_write.heads, why)) return false;
  if (!check_size("kv_write", "width", call.width, why)) return false;
  return check_page("kv_write", call.kv_write.heads, call.width, call.kv_write.pages, why);
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  out[0] = bucket;
  out[1] = tiles_of(row, uint64_t(calls[0].kv_write.heads) * calls[0].width);
  out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
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
  const uint64_t values = uint64_t(rows) * calls[0].kv_write.heads * calls[0].width;
  QuantType type = QuantType::f32;
  if (!cache_quant(calls[0].kv_write.pages.type, &type)) return {};
  return {values * kFloatBytes + quant_bytes(type, values), 0};
}

extern const OpInfo op_kv_write = {fits, groups, pack, cost};

}  // namespace greta
