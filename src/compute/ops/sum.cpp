// sum: of 32 bit words, modulo 2^32. Group = a piece of `width` words; kY has a word for each.
#include "compute/ops/parts.h"

namespace greta {

static uint64_t pieces_of(const Call& call) { return call.slot[kY].bytes / sizeof(uint32_t); }

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (!check_single(calls, why)) return false;
  const Call& call = calls[0];
  if (!check_size("sum", "width", call.width, why)) return false;
  if (call.width % 16 || call.slot[kX].bytes != pieces_of(call) * call.width * sizeof(uint32_t))
    return why.no("sum: %llu bytes are not %llu pieces of %u words", (unsigned long long)call.slot[kX].bytes,
                  (unsigned long long)pieces_of(call), call.width);
  return true;
}

static void groups(std::span<const Call> calls, const KernelRow&, uint32_t, uint32_t (&out)[3]) {
  out[0] = uint32_t(pieces_of(calls[0]));
  out[1] = out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  const Call& call = calls[0];
  SumBlock block = {};
  block.x = call.slot[kX].address();
  block.y = call.slot[kY].address();
  block.width = call.width;
  out->set_block(block);
  out->read(call.slot[kX]);
  out->write(call.slot[kY]);
}

static Cost cost(std::span<const Call> calls, uint32_t, uint32_t) {
  return {calls[0].slot[kX].bytes + calls[0].slot[kY].bytes, 0};
}

extern const OpInfo op_sum = {fits, groups, pack, cost};

}  // namespace greta
