// attention over the paged cache. Group = a token and a KV head, with the query heads that share it. A row for few
// tokens alone splits the positions among groups; one with a tile takes so many queries (tokens x query heads).
#include "compute/ops/parts.h"
#include "kernels/abi/attention_tile.h"

namespace greta {

static bool splits(const KernelRow& row) { return row.tokens_max <= kMaxSplitTokens; }

// The form that the next matmul reads: of a few tokens q8x16, of many float16.
static Status check_convert(const Call& call, const Call& convert, const KernelRow& row) {
  if (!splits(row) && makes_halves(call, convert, call.heads * call.value_width)) return {};
  if (!splits(row) || convert.op != Op::Convert || convert.form != Form::Q8X16 || !same_place(convert.slot[kX], call.slot[kY]) ||
      convert.width != call.heads * call.value_width || call.value_width % 16 || convert.weight.n)
    return fail(Code::Unsupported, "attention: %u heads of %u values do not fuse with %s of %u", call.heads,
                call.value_width, op_name(convert.op), convert.width);
  return {};
}

// Of the rows on cooperative matrices.
static Status check_tile(const Call& call, const KernelRow& row) {
  const uint32_t sharing = row.code.subgroups * 16 / row.tile;  // subgroups that have the same queries
  if (call.width + call.value_width <= attention_widths(sharing) &&
      attention_shared_bytes(row.tile, call.width, call.value_width) <= row.shared_bytes)
    return {};
  return fail(Code::Unsupported, "attention: heads of %u keys and %u values do not fit in %s", call.width,
              call.value_width, row.name);
}

static Status check(std::span<const Call> calls, const KernelRow& row) {
  const Call& call = calls[0];
  if (calls.size() > 2) return check_single(calls);
  if (calls.size() == 2) GRETA_TRY(check_convert(call, calls[1], row));
  if (!call.kv_heads || !call.heads || call.heads % call.kv_heads)
    return fail(Code::Argument, "attention: %u heads share %u KV heads", call.heads, call.kv_heads);
  GRETA_TRY(check_size("attention", "key width", call.width));
  GRETA_TRY(check_size("attention", "value width", call.value_width));
  if (call.width > kMaxHeadWidth || call.value_width > kMaxHeadWidth)
    return fail(Code::Unsupported, "attention: heads of %u keys and %u values; at most %u fit", call.width,
                call.value_width, kMaxHeadWidth);
  GRETA_TRY(check_page("attention keys", call.kv_heads, call.width, call.page_bytes, call.cache_type));
  if (call.width % row.depth_multiple || call.value_width % row.depth_multiple)
    return fail(Code::Unsupported, "attention: %s takes heads of multiples of %u values", row.name, row.depth_multiple);
  if (row.shared_bytes) GRETA_TRY(check_tile(call, row));
  if (splits(row) && (row.tokens_max * call.kv_heads > kCounterCount || !call.slot[kScratch].buffer))
    return fail(Code::Unsupported, "attention: %s needs counters and scratch", row.name);
  GRETA_TRY(check_stride("attention", call.y_stride, call.value_width));
  GRETA_TRY(check_page("attention values", call.kv_heads, call.value_width, call.value_page_bytes,
                       call.value_cache_type));
  return check_page("attention values", call.kv_heads, stride_or(call.y_stride, call.value_width),
                    call.value_page_bytes, call.value_cache_type);
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  const Call& call = calls[0];
  const uint64_t queries = uint64_t(bucket) * (call.heads / call.kv_heads);
  out[0] = (row.tile > 1 ? uint32_t(divide_up(queries, row.tile)) : bucket) * call.kv_heads;
  out[1] = splits(row) ? attention_splits(call.kv_heads) : 1;
  out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow& row, Launch* out) {
  const Call& call = calls[0];
  AttentionBlock block = {};
  block.q = call.slot[kX].address();
  block.y = call.slot[kY].address();
  block.keys = call.slot[kPool].address();
  block.values = call.slot[kPool2].address();
  block.step = call.slot[kStep].address();
  block.sinks = call.slot[kTable].address();
  block.scratch = call.slot[kScratch].address();
  block.counters = call.slot[kCounters].address();
  block.heads = call.heads;
  block.kv_heads = call.kv_heads;
  block.key_width = call.width;
  block.value_width = call.value_width;
  block.key_page_bytes = call.page_bytes;
  block.value_page_bytes = call.value_page_bytes;
  block.key_type = call.cache_type;
  block.value_type = call.value_cache_type;
  block.scale = call.scale;
  block.softcap = call.softcap;
  block.window = call.window;
  block.value_stride = stride_or(call.y_stride, call.value_width);
  if (calls.size() == 2) {
    (splits(row) ? block.rounded : block.halves) = calls[1].slot[kY].address();
    out->write(calls[1].slot[kY]);
  }
  out->set_block(block);
  out->read(call.slot[kX]);
  out->write(call.slot[kY]);
  out->read(call.slot[kPool], true);
  out->read(call.slot[kPool2], true);
  read_step(call, out);
  out->read(call.slot[kTable]);
  if (!splits(row)) return;
  out->note(call.slot[kScratch], Access::kReadWrite, true);
  out->note(call.slot[kCounters], Access::kReadWrite, false);
}

// Rows of one sequence read its cache together.
static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t depth) {
  const Call& call = calls[0];
  QuantType keys = QuantType::f32, values = QuantType::f32;
  if (!cache_quant(call.cache_type, &keys) || !cache_quant(call.value_cache_type, &values)) return {};
  const uint64_t seen = call.window && call.window < depth ? call.window : depth;
  const uint64_t widths = uint64_t(call.width) + call.value_width;
  const uint64_t cache = quant_bytes(keys, call.width) + quant_bytes(values, call.value_width);
  return {seen * call.kv_heads * cache + rows * call.heads * widths * kFloatBytes,
          2 * rows * call.heads * seen * widths};
}

extern const OpInfo op_attention = {check, groups, pack, cost};

}  // namespace greta
