// rope: rotates heads by position, in place if kY is kX, alone or with what a kernel row fuses around it: a
// norm before, over each head or over all of a token, and the write into the page pool. Group = a token, or a
// tile of its pairs, or with something around it of its heads.
#include "compute/ops/parts.h"

namespace greta {
namespace {

// The calls of a sequence by what they do; null where absent.
struct Parts {
  const Call* norm = nullptr;
  const Call* rope = nullptr;
  const Call* kv_write = nullptr;

  explicit Parts(std::span<const Call> calls) {
    for (const Call& call : calls)
      (call.op == Op::Norm ? norm : call.op == Op::KvWrite ? kv_write : rope) = &call;
  }
  bool alone() const { return !norm && !kv_write; }
  bool norms_all_heads() const { return norm && norm->norm.heads == 1 && rope->rope.heads != 1; }
};

bool check_alone(const Call& call, Reason& why) {
  if (!check_stride("rope", call.x_stride, call.rope.width, why)) return false;
  return check_stride("rope", call.y_stride, call.rope.width, why);
}

bool check_norm(const Parts& parts, Reason& why) {
  const Call& norm = *parts.norm;
  const uint32_t heads = parts.rope->rope.heads, width = parts.rope->width;
  if (!same_place(norm.slot[kY], parts.rope->slot[kX]) || norm.x_stride || norm.y_stride ||
      norm.rows_of != kRowsTokens || uint64_t(norm.norm.heads) * norm.width != uint64_t(heads) * width ||
      (norm.norm.heads != heads && norm.norm.heads != 1))
    return why.no("rope: %u heads of %u values after a norm of %u of %u", heads, width, norm.norm.heads,
                  norm.width);
  if (norm.weight.depth != norm.width || norm.weight.n != 1)
    return why.no("rope: a gain [%u][%u] for a norm over %u values", norm.weight.n, norm.weight.depth,
                  norm.width);
  return check_weight("rope", norm.weight, why);
}

bool check_kv_write(const Parts& parts, Reason& why) {
  const Call &rope = *parts.rope, &kv = *parts.kv_write;
  if (!same_place(kv.slot[kX], rope.slot[kY]) || kv.kv_write.heads != rope.rope.heads ||
      kv.width != rope.width)
    return why.no("rope: %u heads of %u values, written as %u of %u", rope.rope.heads, rope.width,
                  kv.kv_write.heads, kv.width);
  return check_page("rope", kv.kv_write.heads, kv.width, kv.kv_write.pages, why);
}

bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  const Parts parts(calls);
  const Call& call = *parts.rope;
  if (!check_size("rope", "heads", call.rope.heads, why)) return false;
  if (!call.rope.width || call.rope.width % 2 || call.rope.width > call.width)
    return why.no("rope: %u rotated values in heads of %u", call.rope.width, call.width);
  if (parts.alone()) return check_alone(call, why);
  if (call.x_stride || call.y_stride || call.width % 2 || call.width > kMaxHeadWidth)
    return why.no("rope: heads of %u values every %u and %u do not fuse", call.width, call.x_stride,
                  call.y_stride);
  if (parts.norm && !check_norm(parts, why)) return false;
  return parts.kv_write ? check_kv_write(parts, why) : true;
}

// Heads of a group; a norm over all of them needs them all.
uint32_t heads_of_group(const Parts& parts, const KernelRow& row) {
  return parts.norms_all_heads() ? parts.rope->rope.heads : row.tile;
}

void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  const Parts parts(calls);
  const Call& rope = *parts.rope;
  out[0] = bucket;
  out[1] = parts.alone() ? tiles_of(row, uint64_t(rope.rope.heads) * rope.rope.width / 2)
                         : uint32_t(divide_up(rope.rope.heads, heads_of_group(parts, row)));
  out[2] = 1;
}

void pack_alone(const Call& call, Launch* out) {
  RopeBlock block = {};
  block.x = call.slot[kX].address();
  block.y = call.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.table = call.slot[kTable].address();
  block.heads = call.rope.heads;
  block.rope_width = call.rope.width;
  block.rope_halves = call.rope.halves;
  block.x_stride = stride_or(call.x_stride, call.width);
  block.y_stride = stride_or(call.y_stride, call.width);
  out->set_block(block);
  out->read(call.slot[kX]);
  out->write(call.slot[kY]);
  out->read(call.slot[kTable]);
  read_step(call, out);
}

void pack(std::span<const Call> calls, const KernelRow& row, Launch* out) {
  const Parts parts(calls);
  const Call& rope = *parts.rope;
  if (parts.alone()) return pack_alone(rope, out);
  const Slice& x = calls[0].slot[kX];
  const Slice& y = parts.kv_write ? parts.kv_write->slot[kPool] : rope.slot[kY];
  RopeHeadsBlock block = {};
  block.x = x.address();
  block.y = y.address();
  block.step = rope.slot[kStep].address();
  block.table = rope.slot[kTable].address();
  block.heads = rope.rope.heads;
  block.head_width = block.norm_width = rope.width;
  block.tile = heads_of_group(parts, row);
  block.rope_width = rope.rope.width;
  block.rope_halves = rope.rope.halves;
  out->read(x);
  out->write(y, parts.kv_write != nullptr);
  out->read(rope.slot[kTable]);
  read_step(rope, out);
  if (parts.norm) {
    block.gain = parts.norm->weight.slice.address();
    block.norm_width = parts.norm->width;
    block.epsilon = parts.norm->norm.epsilon;
    out->read(parts.norm->weight.slice);
  }
  if (parts.kv_write) {
    block.page_bytes = parts.kv_write->kv_write.pages.bytes;
    block.cache_type = parts.kv_write->kv_write.pages.type;
  }
  out->set_block(block);
}

Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Parts parts(calls);
  const Call& call = *parts.rope;
  const uint64_t values = uint64_t(rows) * call.rope.heads * (parts.alone() ? call.rope.width : call.width);
  return {2 * values * kFloatBytes, (parts.norm ? 7 : 3) * values};
}

}  // namespace

extern const OpInfo op_rope = {fits, groups, pack, cost};

}  // namespace greta
