// cast: rows of values in another type. Group = a row, or a tile of its values.
#include "compute/ops/parts.h"

namespace greta {

static uint64_t bytes_of(uint32_t type) { return type == kCastF32 ? 4 : 2; }

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (!check_single(calls, why)) return false;
  const Call& call = calls[0];
  if (!check_size("cast", "width", call.width, why)) return false;
  if (call.cast.from >= kCastCount || call.cast.to >= kCastCount)
    return why.no("cast: there is no type %u", std::max(call.cast.from, call.cast.to));
  return check_stride("cast", call.x_stride, call.width, why) &&
         check_stride("cast", call.y_stride, call.width, why);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  CastBlock block = {};
  block.x = call.slot[kX].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.width = call.width;
  block.x_stride = stride_or(call.x_stride, call.width);
  block.y_stride = stride_or(call.y_stride, call.width);
  block.x_type = call.cast.from;
  block.y_type = call.cast.to;
  block.rows_of = call.rows_of;
  out->set_block(block);
  out->read(call.slot[kX]);
  out->write(call.slot[kY]);
  read_step(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Call& call = calls[0];
  return {uint64_t(rows) * call.width * (bytes_of(call.cast.from) + bytes_of(call.cast.to)), 0};
}

extern const OpInfo op_cast = {fits, groups_row_tiles, pack, cost};

}  // namespace greta
