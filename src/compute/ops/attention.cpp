// attention over the paged cache, alone or with what makes its operands of those that matmuls gave: norm,
// rotation, the write into the page pool. Group = a token and a KV head, with the query heads that share it.
// A row for few tokens alone splits the positions among groups; so does one of lone rows, each of which is
// the only one of its sequence. One with a tile takes so many queries (tokens x query heads).
#include "compute/ops/parts.h"
#include "kernels/abi/attention_tile.h"
#include "kernels/abi/sequences.h"

namespace greta {
namespace {

// The calls of a sequence by what they do; null where absent.
struct Parts {
  // What is done to a query, key or value before.
  struct Operand {
    const Call* norm = nullptr;
    const Call* rope = nullptr;
    const Call* write = nullptr;
    const Slice* x = nullptr;  // as the matmul made it
  };
  const Call* attention = nullptr;
  const Call* convert = nullptr;  // of y
  Operand query, key, value;
  const Call* unknown = nullptr;

  explicit Parts(std::span<const Call> calls) {
    for (const Call& call : calls)
      if (call.op == Op::Attention) attention = &call;
    query.x = &attention->slot[kX];
    for (const Call& call : calls)
      if (call.op == Op::KvWrite) {
        Operand& written = !key.write && same_place(call.slot[kPool], attention->slot[kPool]) ? key : value;
        if (written.write) unknown = &call;
        written.write = &call;
        written.x = &call.slot[kX];
      }
    for (const Call& call : calls)
      if (call.op == Op::Norm || call.op == Op::Rope)
        note(call);
      else if (call.op == Op::Convert)
        convert = &call;
  }
  bool makes_heads() const { return key.write != nullptr; }

 private:
  void note(const Call& call) {
    for (Operand* operand : {&query, &key, &value}) {
      const Call*& part = call.op == Op::Norm ? operand->norm : operand->rope;
      if (!operand->x || part || !same_place(call.slot[kX], *operand->x) ||
          !same_place(call.slot[kY], *operand->x))
        continue;
      part = &call;
      return;
    }
    unknown = &call;
  }
};

bool splits(const KernelRow& row) { return row.tokens_max <= kMaxSplitTokens || row.lone_rows; }

// The form that the next matmul reads: of a few tokens q8x16, of many float16. Where several launches make y,
// none of them converts it.
bool check_convert(const Call& call, const Call& convert, const KernelRow& row, Reason& why) {
  const uint32_t heads = call.attention.heads, value_width = call.attention.value_width;
  const uint32_t width = heads * value_width;
  const AttentionRows rows = call.attention.rows;
  const bool makes_all = rows == AttentionRows::All || rows == AttentionRows::Lone;
  if (makes_all && (!splits(row) || row.lone_rows) && makes_halves(call, convert, width)) return true;
  if (!makes_all || !splits(row) || convert.op != Op::Convert || convert.form != Form::Q8X16 ||
      !same_place(convert.slot[kX], call.slot[kY]) || convert.width != width || value_width % 16 ||
      convert.weight.n)
    return why.no("attention: %u heads of %u values do not fuse with %s of %u", heads, value_width,
                  op_name(convert.op), convert.width);
  return true;
}

// Of the rows on matrix units. Those for one target have the widths of heads in their code.
bool check_tile(const Call& call, const KernelRow& row, Reason& why) {
  const uint32_t sharing = row.code.subgroups * 16 / row.tile;  // subgroups that have the same queries
  const uint32_t key_width = call.attention.key_width, value_width = call.attention.value_width;
  if (row.target[0]
          ? attention_fixed_bytes(std::max(key_width, value_width)) <= row.shared_bytes
          : key_width + value_width <= attention_widths(sharing) &&
                attention_shared_bytes(row.tile, key_width, value_width, sharing) <= row.shared_bytes)
    return true;
  return why.no("attention: heads of %u keys and %u values do not fit in %s", key_width, value_width,
                row.name);
}

bool norms_all_heads(const Call& norm, uint32_t heads) { return norm.norm.heads == 1 && heads != 1; }

// The norm and the rotation of queries or keys, which have `heads` heads of `width` values.
bool check_operand(const Parts::Operand& operand, uint32_t heads, uint32_t width, Reason& why) {
  if (const Call* norm = operand.norm) {
    if (norm->x_stride || norm->y_stride || norm->rows_of != kRowsTokens ||
        (norm->norm.heads != heads && norm->norm.heads != 1) ||
        uint64_t(norm->norm.heads) * norm->width != uint64_t(heads) * width)
      return why.no("attention: %u heads of %u values after a norm of %u of %u", heads, width,
                    norm->norm.heads, norm->width);
    if (norm->weight.n != 1 || norm->weight.depth != norm->width)
      return why.no("attention: a gain [%u][%u] for a norm over %u values", norm->weight.n,
                    norm->weight.depth, norm->width);
    if (!check_weight("attention", norm->weight, why)) return false;
  }
  const Call* rope = operand.rope;
  if (rope && (rope->x_stride || rope->y_stride || rope->rope.heads != heads || rope->width != width ||
               !rope->rope.width || rope->rope.width % 2 || rope->rope.width > width))
    return why.no("attention: %u rotated values in %u heads of %u every %u", rope->rope.width,
                  rope->rope.heads, rope->width, rope->x_stride);
  return true;
}

bool check_write(const Call::Attention& attention, const Call& write, const Slice& pool,
                 const CachePages& pages, Reason& why) {
  if (!same_place(write.slot[kPool], pool) || write.kv_write.heads != attention.kv_heads ||
      write.width != attention.key_width || write.kv_write.pages != pages)
    return why.no("attention: reads other pages than those of %u heads of %u values that are written",
                  write.kv_write.heads, write.width);
  return true;
}

// The norm of values has no gain, and otherwise is that of keys.
bool check_value_norm(const Parts& parts, Reason& why) {
  const Call *norm = parts.value.norm, *keys = parts.key.norm;
  if (!norm) return true;
  if (keys && keys->norm.heads != 1 && norm->norm.alone && norm->norm.heads == keys->norm.heads &&
      norm->norm.epsilon == keys->norm.epsilon)
    return check_operand(parts.value, keys->norm.heads, keys->width, why);
  return why.no("attention: %u heads of values after a norm with a gain, or another one than that of keys",
                norm->norm.heads);
}

// Queries and keys are made alike.
bool check_heads(const Parts& parts, Reason& why) {
  const Call& call = *parts.attention;
  const Call::Attention& shape = call.attention;
  const uint32_t width = shape.key_width;
  const auto &query = parts.query, &key = parts.key;
  if (parts.unknown || !query.norm != !key.norm || !query.rope != !key.rope || parts.value.rope)
    return why.no("attention: does not fuse with %s of these operands",
                  op_name((parts.unknown ? parts.unknown : key.write)->op));
  if (width != shape.value_width || width % 2 || shape.value_stride || call.slot[kTable].buffer ||
      (shape.heads / shape.kv_heads + 2) * width > kMaxHeadsMade)
    return why.no("attention: %u of %u heads of %u keys and %u values do not fuse with what makes them",
                  shape.heads, shape.kv_heads, width, shape.value_width);
  if (!check_operand(query, shape.heads, width, why)) return false;
  if (!check_operand(key, shape.kv_heads, width, why)) return false;
  const bool all_heads = query.norm && norms_all_heads(*query.norm, shape.heads);
  if (query.norm && (query.norm->norm.epsilon != key.norm->norm.epsilon ||
                     key.norm->norm.heads != (all_heads ? 1 : shape.kv_heads)))
    return why.no("attention: queries and keys with norms of two kinds");
  if (query.rope &&
      (!same_place(query.rope->slot[kTable], key.rope->slot[kTable]) ||
       query.rope->rope.width != key.rope->rope.width || query.rope->rope.halves != key.rope->rope.halves))
    return why.no("attention: queries and keys with rotations of two kinds");
  if (!check_write(shape, *key.write, call.slot[kPool], shape.keys, why)) return false;
  if (!parts.value.write) return true;
  if (!check_value_norm(parts, why)) return false;
  return check_write(shape, *parts.value.write, call.slot[kPool2], shape.values, why);
}

// Shared pages are those of lone rows, which see all of them.
bool check_prefix(const Call::Attention& shape, const KernelRow& row, Reason& why) {
  if (shape.prefix == row.prefix &&
      (row.prefix == Prefix::None ||
       (!shape.window && (shape.rows == AttentionRows::Lone || shape.rows == AttentionRows::FirstLone))))
    return true;
  return why.no("attention: %s does not take shared pages in this way, with a window of %u", row.name,
                shape.window);
}

// Rows that share a step by its work take only what is promised to be alone in its sequence. The heads of
// several tokens are made beside their attention only then, since one would read what another one stores.
// Rows in tiles leave out the lone ones of a step.
bool check_rows(const Call& call, bool makes_heads, const KernelRow& row, Reason& why) {
  const AttentionRows rows = call.attention.rows;
  const bool lone = rows == AttentionRows::Lone || (rows == AttentionRows::FirstLone && !makes_heads);
  const bool others = rows != AttentionRows::FirstLone && (rows != AttentionRows::Lone || row.tile == 1);
  if (row.prefix == Prefix::Sums || (row.lone_rows ? lone && row.splits <= kLoneGroups : others)) return true;
  return why.no("attention: %s does not take these rows of a step", row.name);
}

bool fits(std::span<const Call> calls, const KernelRow& row, Reason& why) {
  const Parts parts(calls);
  const Call& call = *parts.attention;
  const Call::Attention& shape = call.attention;
  if (!check_prefix(shape, row, why) || !check_rows(call, parts.makes_heads(), row, why)) return false;
  if (!shape.kv_heads || !shape.heads || shape.heads % shape.kv_heads)
    return why.no("attention: %u heads share %u KV heads", shape.heads, shape.kv_heads);
  if (parts.convert && !check_convert(call, *parts.convert, row, why)) return false;
  if (parts.makes_heads() ? !check_heads(parts, why)
                          : calls.size() > 1u + (parts.convert != nullptr) && !check_single(calls, why))
    return false;
  if (!check_size("attention", "key width", shape.key_width, why)) return false;
  if (!check_size("attention", "value width", shape.value_width, why)) return false;
  if (shape.key_width > kMaxHeadWidth || shape.value_width > kMaxHeadWidth)
    return why.no("attention: heads of %u keys and %u values; at most %u fit", shape.key_width,
                  shape.value_width, kMaxHeadWidth);
  if (!check_page("attention keys", shape.kv_heads, shape.key_width, shape.keys, why)) return false;
  if (shape.key_width % row.depth_multiple || shape.value_width % row.depth_multiple)
    return why.no("attention: %s takes heads of multiples of %u values", row.name, row.depth_multiple);
  if (row.shared_bytes && !splits(row) && !check_tile(call, row, why)) return false;
  if (row.prefix == Prefix::Sums && !call.slot[kScratch].buffer)
    return why.no("attention: %s needs scratch", row.name);
  if (splits(row) && (row.tokens_max * shape.kv_heads > kCounterCount || !call.slot[kScratch].buffer ||
                      !call.slot[kCounters].buffer))
    return why.no("attention: %s needs counters and scratch", row.name);
  if (!check_stride("attention", shape.value_stride, shape.value_width, why)) return false;
  if (!check_page("attention values", shape.kv_heads, shape.value_width, shape.values, why)) return false;
  return check_page("attention values", shape.kv_heads, stride_or(shape.value_stride, shape.value_width),
                    shape.values, why);
}

void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  const Call::Attention& shape = lead_call(calls).attention;
  out[2] = 1;
  if (row.prefix == Prefix::Sums) {
    out[0] = shape.kv_heads;
    out[1] = attention_prefix_items(bucket, shape.heads, shape.kv_heads);
    return;
  }
  const uint64_t queries = uint64_t(bucket) * (shape.heads / shape.kv_heads);
  const uint32_t blocks = row.tile > 1 ? uint32_t(divide_up(queries, row.tile)) : bucket;
  out[0] = (row.lone_rows ? 1 : blocks) * shape.kv_heads;
  const bool shares_width = row.tile > 1 && !row.shared_bytes;
  out[1] = row.lone_rows  ? bucket + std::max(row.splits / shape.kv_heads, 1u)
           : splits(row)  ? attention_splits(shape.kv_heads)
           : shares_width ? uint32_t(divide_up(shape.value_width, kAttentionValues))
                          : 1;
}

// What all blocks have.
template <class Block>
void pack_operands(const Parts& parts, Block* block) {
  const Call& call = *parts.attention;
  const Call::Attention& shape = call.attention;
  block->q = call.slot[kX].address();
  block->y = call.slot[kY].address();
  block->keys = call.slot[kPool].address();
  block->values = call.slot[kPool2].address();
  block->step = call.slot[kStep].address();
  block->scratch = call.slot[kScratch].address();
  block->counters = call.slot[kCounters].address();
  block->heads = shape.heads;
  block->kv_heads = shape.kv_heads;
  block->key_page_bytes = shape.keys.bytes;
  block->value_page_bytes = shape.values.bytes;
  block->scale = shape.scale;
  block->window = shape.window;
}

void pack_alone(const Parts& parts, Launch* out) {
  const Call& call = *parts.attention;
  const Call::Attention& shape = call.attention;
  AttentionBlock block = {};
  pack_operands(parts, &block);
  block.sinks = call.slot[kTable].address();
  block.key_width = shape.key_width;
  block.value_width = shape.value_width;
  block.key_type = shape.keys.type;
  block.value_type = shape.values.type;
  block.softcap = shape.softcap;
  block.value_stride = stride_or(shape.value_stride, shape.value_width);
  if (const Call* convert = parts.convert)
    (convert->form == Form::Q8X16 ? block.rounded : block.halves) = convert->slot[kY].address();
  out->set_block(block);
  out->read(call.slot[kX]);
  out->read(call.slot[kPool], true);
  out->read(call.slot[kPool2], true);
  out->read(call.slot[kTable]);
}

void pack_heads(const Parts& parts, Launch* out) {
  const Call& call = *parts.attention;
  const Call::Attention& shape = call.attention;
  const auto &query = parts.query, &key = parts.key, &value = parts.value;
  AttentionHeads all = {};
  AttentionHeadsBlock& block = all.block;
  pack_operands(parts, &block);
  block.k = key.x->address();
  block.v = value.x ? value.x->address() : 0;
  AttentionHeadsConstants& constants = all.constants;
  constants.head_width = shape.key_width;
  constants.key_type = shape.keys.type;
  constants.value_type = shape.values.type;
  constants.softcap = shape.softcap;
  if (query.norm) {
    block.q_gain = query.norm->weight.slice.address();
    block.k_gain = key.norm->weight.slice.address();
    constants.epsilon = query.norm->norm.epsilon;
    constants.norms = norms_all_heads(*query.norm, shape.heads) ? kNormsAllHeads : kNormsEachHead;
    if (value.norm) constants.norms |= kNormsValues;
    out->read(query.norm->weight.slice);
    out->read(key.norm->weight.slice);
  }
  if (query.rope) {
    block.table = query.rope->slot[kTable].address();
    constants.rope_width = query.rope->rope.width;
    constants.rope_halves = query.rope->rope.halves;
    out->read(query.rope->slot[kTable]);
  }
  if (parts.convert) {
    block.rounded = parts.convert->slot[kY].address();
    constants.halves = parts.convert->form != Form::Q8X16;
  }
  out->set_block(all);
  for (const Slice* x : {query.x, key.x, value.x})
    if (x) out->read(*x);
  out->note(call.slot[kPool], Access::kReadWrite, true);
  out->note(call.slot[kPool2], value.write ? Access::kReadWrite : Access::kRead, true);
}

void pack(std::span<const Call> calls, const KernelRow& row, Launch* out) {
  const Parts parts(calls);
  const Call& call = *parts.attention;
  if (parts.makes_heads())
    pack_heads(parts, out);
  else
    pack_alone(parts, out);
  out->write(call.slot[kY]);
  if (parts.convert) out->write(parts.convert->slot[kY]);
  read_step(call, out);
  if (row.prefix == Prefix::Sums) out->write(call.slot[kScratch], true);
  if (!splits(row)) return;
  out->note(call.slot[kScratch], Access::kReadWrite, true);
  out->note(call.slot[kCounters], Access::kReadWrite, false);
}

// Rows of one sequence read its cache together. Lone rows are taken to be at the same depth.
Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t depth) {
  const Call::Attention& shape = lead_call(calls).attention;
  QuantType keys = QuantType::f32, values = QuantType::f32;
  if (!cache_quant(shape.keys.type, &keys) || !cache_quant(shape.values.type, &values)) return {};
  const uint64_t seen = shape.window && shape.window < depth ? shape.window : depth;
  const uint64_t widths = uint64_t(shape.key_width) + shape.value_width;
  const uint64_t cache = quant_bytes(keys, shape.key_width) + quant_bytes(values, shape.value_width);
  const bool each = shape.rows == AttentionRows::Lone && shape.prefix != Prefix::Sums;
  const uint64_t sequences = each ? rows : 1;
  return {sequences * seen * shape.kv_heads * cache + rows * shape.heads * widths * kFloatBytes,
          2 * rows * shape.heads * seen * widths};
}

}  // namespace

extern const OpInfo op_attention = {fits, groups, pack, cost};

}  // namespace greta
