// matmul, alone or with what a kernel row fuses around it: a norm before, then rotation and the write
// into the page pool, or a residual, alone or after a norm of y and then also with a factor, or a second
// matmul and its gate, and the form that the next matmul reads. Group = a tile of output rows, one head where
// heads are rotated or written; for all tokens, or where the row has tile_tokens, for some. Rows that make
// results have blocks of their own, for x in the form q8x16 and for floats.
#include <algorithm>
#include <utility>

#include "compute/ops/parts.h"
#include "kernels/abi/sequences.h"

namespace greta {
namespace {

// The calls of a sequence by what they do; null where absent.
struct Parts {
  const Call* norm = nullptr;
  const Call* matmul = nullptr;
  const Call* up = nullptr;  // the second matmul of a gate
  const Call* rope = nullptr;
  const Call* kv_write = nullptr;
  const Call* add = nullptr;
  const Call* gate = nullptr;
  const Call* post_norm = nullptr;  // of what the matmul made
  const Call* scale = nullptr;      // of the residual behind a post_norm
  const Call* convert = nullptr;    // of y
  const Call* unknown = nullptr;

  explicit Parts(std::span<const Call> calls) {
    for (const Call& call : calls) {
      switch (call.op) {
        case Op::Norm:
          (matmul ? post_norm : norm) = &call;
          break;
        case Op::Matmul:
          (matmul ? up : matmul) = &call;
          break;
        case Op::Rope:
          rope = &call;
          break;
        case Op::KvWrite:
          kv_write = &call;
          break;
        case Op::Add:
          add = &call;
          break;
        case Op::Gate:
          gate = &call;
          break;
        case Op::Scale:
          scale = &call;
          break;
        case Op::Convert:
          convert = &call;
          break;
        default:
          unknown = &call;
      }
    }
    // The activation goes over the matmul that the gate reads first.
    if (gate && up && same_place(gate->slot[kX], up->slot[kY]) && !same_place(gate->slot[kX2], up->slot[kY]))
      std::swap(matmul, up);
  }

  const Call* head() const { return kv_write ? kv_write : rope; }
  uint32_t heads() const { return kv_write ? kv_write->kv_write.heads : rope->rope.heads; }
  // Where y goes, unless into a page: rope works in place, the others write their y.
  const Slice& y() const { return rope ? rope->slot[kX] : (add ? add : gate ? gate : matmul)->slot[kY]; }
};

// Which rows the whole sequence runs over: the norm may gather for the matmul.
bool rows_of(const Parts& parts, uint32_t* out) {
  const uint32_t rows = parts.matmul->rows_of;
  *out = rows;
  if (!parts.norm || (parts.norm->rows_of == rows && rows != kRowsGather)) return true;
  *out = kRowsGather;
  return (parts.norm->rows_of == kRowsGather && rows == kRowsOutputs) ||
         (parts.norm->rows_of == kRowsTokens && rows == kRowsGather);
}

// Each op of the sequence works on what the one before made, without gaps, and nothing else reads it.
bool connected(const Parts& parts) {
  const Slice& y = parts.matmul->slot[kY];
  if (parts.norm && (!same_place(parts.norm->slot[kY], parts.matmul->slot[kX]) || parts.norm->x_stride ||
                     parts.norm->y_stride))
    return false;
  if (parts.up && !same_place(parts.up->slot[kX], parts.matmul->slot[kX])) return false;
  const Call* rope = parts.rope;
  if (rope &&
      (!same_place(rope->slot[kX], y) || !same_place(rope->slot[kY], y) || rope->x_stride || rope->y_stride))
    return false;
  if (parts.kv_write && !same_place(parts.kv_write->slot[kX], y)) return false;
  if (parts.convert && !same_place(parts.convert->slot[kX], parts.y())) return false;
  const auto reads_both = [](const Call& call, const Slice& a, const Slice& b) {
    return (same_place(call.slot[kX], a) && same_place(call.slot[kX2], b)) ||
           (same_place(call.slot[kX], b) && same_place(call.slot[kX2], a));
  };
  if (parts.gate && parts.up && !reads_both(*parts.gate, y, parts.up->slot[kY])) return false;
  if (const Call* norm = parts.post_norm)
    return parts.add && same_place(norm->slot[kX], y) && same_place(parts.add->slot[kX2], norm->slot[kY]);
  return !parts.add || same_place(parts.add->slot[kX], y) || same_place(parts.add->slot[kX2], y);
}

// Rows whose groups make results, whatever the heads, with as many threads as it takes.
bool by_results(const KernelRow& row) { return row.threads_field != 0; }

bool check_heads(const Parts& parts, const KernelRow& row, uint32_t n, Reason& why) {
  const uint32_t width = parts.head()->width, heads = parts.heads();
  if (!width || uint64_t(heads) * width != n)
    return why.no("matmul: %u heads of %u values in %u rows", heads, width, n);
  if (width > kMaxHeadWidth)
    return why.no("matmul: a fused head of %u values; at most %u fit", width, kMaxHeadWidth);
  if (const Call* rope = parts.rope) {
    const uint32_t rotated = rope->rope.width;
    if (rope->width != width || !rotated || rotated % 2 || rotated > width)
      return why.no("matmul: %u rotated values in heads of %u, written as heads of %u", rotated, rope->width,
                    width);
  }
  if (by_results(row) && parts.rope && width % 2)
    return why.no("matmul: %s rotates pairs of rows, heads have %u values", row.name, width);
  QuantType cached;
  if (by_results(row) && parts.kv_write && cache_quant(parts.kv_write->kv_write.pages.type, &cached) &&
      quant_info(cached).block > 1)
    return why.no("matmul: %s makes single rows, not blocks of %u", row.name, quant_info(cached).block);
  return !parts.kv_write || check_page("matmul", heads, width, parts.kv_write->kv_write.pages, why);
}

bool check_gate(const Parts& parts, Reason& why) {
  const Tensor& a = parts.matmul->weight;
  const Tensor& b = parts.up->weight;
  if (!check_weight("matmul", b, why)) return false;
  if (parts.matmul->slot[kBias].bytes || parts.up->slot[kBias].bytes)
    return why.no("matmul: a gate over sums with a bias");
  if (a.type != b.type || a.layout != b.layout || a.n != b.n || a.depth != b.depth)
    return why.no("matmul: gate [%u][%u] %s and up [%u][%u] %s differ", a.n, a.depth, quant_info(a.type).name,
                  b.n, b.depth, quant_info(b.type).name);
  if (parts.gate->width != a.n || parts.gate->gate.activation > kActivationClamped)
    return why.no("matmul: gate of %u values, activation %u, over %u rows", parts.gate->width,
                  parts.gate->gate.activation, a.n);
  return true;
}

bool check_post_norm(const Parts& parts, Reason& why) {
  const Call& norm = *parts.post_norm;
  const uint32_t n = parts.matmul->weight.n;
  if (norm.norm.heads != 1 || norm.width != n || norm.x_stride || norm.y_stride ||
      norm.rows_of != parts.matmul->rows_of)
    return why.no("matmul: a norm over %u heads of %u after rows of %u", norm.norm.heads, norm.width, n);
  if (norm.rows_of != kRowsTokens) return why.no("matmul: a norm behind rows that are no tokens");
  if (norm.weight.depth != n || norm.weight.n != 1)
    return why.no("matmul: a gain [%u][%u] for %u values", norm.weight.n, norm.weight.depth, n);
  if (!parts.matmul->slot[kCounters].buffer) return why.no("matmul: a norm behind it, and no counters");
  return true;
}

// One factor for all that the residual has become.
bool check_scale(const Parts& parts, Reason& why) {
  const Call& scale = *parts.scale;
  if (parts.post_norm && same_place(scale.slot[kY], parts.add->slot[kY]) && scale.experts.count == 1 &&
      scale.experts.used == 1 && scale.width == parts.matmul->weight.n && scale.rows_of == kRowsTokens &&
      !scale.slot[kBias].buffer && !scale.slot[kX2].buffer)
    return true;
  return why.no("matmul: a factor of %u values behind rows of %u", scale.width, parts.matmul->weight.n);
}

bool check_convert(const Parts& parts, Reason& why) {
  const Call& convert = *parts.convert;
  const Tensor& gain = convert.weight;
  if (convert.form != Form::Q8X16 || convert.width != parts.matmul->weight.n || convert.width % 32 ||
      parts.head())
    return why.no("matmul: a form of %u values after %u", convert.width, parts.matmul->weight.n);
  if (gain.n && gain.depth != convert.width)
    return why.no("matmul: a gain [%u] for %u values", gain.depth, convert.width);
  return true;
}

bool fits(std::span<const Call> calls, const KernelRow& row, Reason& why) {
  const Parts parts(calls);
  const Tensor& weight = parts.matmul->weight;
  if (!check_weight("matmul", weight, why)) return false;
  if (parts.unknown || !parts.up != !parts.gate)
    return why.no("matmul: does not fuse with this sequence of %zu ops", calls.size());
  if (!connected(parts)) return why.no("matmul: the ops around it work on other data");
  if (weight.count != 1) return why.no("matmul: %u matrices", weight.count);
  if (parts.matmul->form != Form::F32 && row.form != parts.matmul->form)
    return why.no("matmul: %s does not read x in this form", row.name);
  if (row.rank && weight.depth > kMaxRankedDepth)
    return why.no("matmul: rows of %u weights, %s holds %u", weight.depth, row.name, kMaxRankedDepth);
  uint32_t rows;
  if (!rows_of(parts, &rows)) return why.no("matmul: norm and matmul run over other rows");
  if (parts.norm && (parts.norm->norm.heads != 1 || parts.norm->width != weight.depth))
    return why.no("matmul: a norm over %u heads of %u before rows of %u", parts.norm->norm.heads,
                  parts.norm->width, weight.depth);
  if (parts.head()) {
    if (rows != kRowsTokens) return why.no("matmul: rotates or stores rows that are no tokens");
    if (!check_heads(parts, row, weight.n, why)) return false;
  }
  if (parts.post_norm && !check_post_norm(parts, why)) return false;
  if (parts.scale && !check_scale(parts, why)) return false;
  if (parts.add && (parts.add->width != weight.n || (parts.add->add.scale != 1 && !parts.post_norm)))
    return why.no("matmul: adds %g times %u values to %u", double(parts.add->add.scale), parts.add->width,
                  weight.n);
  if (parts.convert && !check_convert(parts, why)) return false;
  return parts.up ? check_gate(parts, why) : true;
}

// Rows of y.
uint32_t tile_of(const Parts& parts, const KernelRow& row) {
  if (by_results(row)) return parts.rope ? 2 * kGroupResults : kGroupResults;
  return parts.head() ? parts.head()->width : row.tile;
}

// Tokens for which a group of a row by_results makes results.
uint32_t tokens_of_group(const KernelRow& row, uint32_t bucket) {
  if (row.form != Form::Q8X16) return bucket;
  return std::clamp(row.tile_tokens, 1u, bucket);
}

// Tiles of tokens come first: those that share weights run at the same time. Numbered tiles
// may be dealt out over dies (make_launch).
void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  const Parts parts(calls);
  const uint32_t tiles = uint32_t(divide_up(parts.matmul->weight.n, tile_of(parts, row)));
  const uint32_t tokens = by_results(row) ? tokens_of_group(row, bucket) : row.tile_tokens;  // 0: all
  out[0] = tokens ? uint32_t(divide_up(bucket, tokens)) : tiles;
  out[1] = tokens ? tiles : 1;
  if (row.numbered_tiles) {
    out[0] *= out[1];
    out[1] = 1;
  }
  out[2] = parts.matmul->matmul.splits;
}

uint64_t& pool_of(MatmulBlock* block) { return block->pool; }
uint64_t& pool_of(MatmulRowBlock* block) { return block->y; }
uint64_t& pool_of(MatmulFloatRowBlock* block) { return block->y; }

template <class Block>
void pack_heads(const Parts& parts, Block* block, Launch* out) {
  block->head_width = parts.head()->width;
  if (const Call* rope = parts.rope) {
    block->rope = rope->slot[kTable].address();
    block->rope_width = rope->rope.width;
    out->read(rope->slot[kTable]);
  }
  if (const Call* kv = parts.kv_write) {
    pool_of(block) = kv->slot[kPool].address();
    block->page_bytes = kv->kv_write.pages.bytes;
    block->cache_type = kv->kv_write.pages.type;
    out->write(kv->slot[kPool], true);
  }
}

// What all blocks have: operands, and a residual.
template <class Block>
void pack_product(const Parts& parts, Block* block, Launch* out) {
  const Call& first = parts.norm ? *parts.norm : *parts.matmul;
  const Tensor& weight = parts.matmul->weight;
  block->weight = weight.slice.address();
  block->x = first.slot[kX].address();
  block->step = first.slot[kStep].address();
  block->n = weight.n;
  block->depth = weight.depth;
  block->bias = parts.matmul->slot[kBias].address();
  out->read(weight.slice);
  out->read(first.slot[kX]);
  out->read(parts.matmul->slot[kBias]);
  read_step(first, out);
  if (parts.add) {
    const bool first_is_ours = same_place(parts.add->slot[kX], parts.matmul->slot[kY]);
    const Slice& residual = parts.add->slot[first_is_ours ? kX2 : kX];
    block->residual = residual.address();
    out->read(residual);
  }
  if (parts.kv_write) return;
  block->y = parts.y().address();
  out->write(parts.y());
}

// And what rows that fuse more have.
template <class Block>
void pack_parts(const Parts& parts, Block* block, Launch* out) {
  pack_product(parts, block, out);
  if (parts.norm) block->epsilon = parts.norm->norm.epsilon;
  if (parts.head()) pack_heads(parts, block, out);
  if (parts.up) {
    block->weight2 = parts.up->weight.slice.address();
    block->activation = parts.gate->gate.activation;
    out->read(parts.up->weight.slice);
  }
}

template <class Block>
void pack_gain(const Parts& parts, Block* block, Launch* out) {
  if (!parts.norm) return;
  block->gain = parts.norm->weight.slice.address();
  out->read(parts.norm->weight.slice);
}

// Few groups with much to do each are larger: their parts of the columns are under way together. For several
// tokens a thread needs more registers than there are for so many.
uint32_t threads_of(const Parts& parts, uint32_t tokens) {
  const Tensor& weight = parts.matmul->weight;
  const uint64_t rows = (parts.rope ? 2 : 1) * kGroupResults, groups = weight.n / rows;
  return tokens < 4 && groups < 512 && rows * weight.depth >= 65536 ? 512 : 256;
}

template <class Block>
Block results_of(const Parts& parts, uint32_t tokens, Launch* out) {
  Block block = {};
  pack_parts(parts, &block, out);
  block.threads = threads_of(parts, tokens);
  if (!parts.norm) block.epsilon = -1;
  block.pairing = parts.up                  ? kPairingGate
                  : !parts.rope             ? kPairingNone
                  : parts.rope->rope.halves ? kPairingHalves
                                            : kPairingNext;
  return block;
}

template <class Block>
void pack_convert(const Parts& parts, Block* block, Launch* out) {
  if (!parts.convert) return;
  block->rounded = parts.convert->slot[kY].address();
  block->gain = parts.convert->weight.slice.address();
  out->write(parts.convert->slot[kY]);
  out->read(parts.convert->weight.slice);
}

void pack_results(const Parts& parts, const KernelRow& row, Launch* out) {
  const uint32_t tokens = tokens_of_group(row, out->bucket);
  MatmulRows rows = {results_of<MatmulRowBlock>(parts, tokens, out), tokens};
  pack_convert(parts, &rows.block, out);
  out->set_block(rows);
}

void pack_normed(const Parts& parts, const KernelRow& row, Launch* out) {
  MatmulNormScaled all = {};
  MatmulNormBlock& block = all.block;
  const Call& matmul = *parts.matmul;
  const Call& norm = *parts.post_norm;
  pack_product(parts, &block, out);
  pack_convert(parts, &block, out);
  block.product = matmul.slot[kY].address();
  block.norm_gain = norm.weight.slice.address();
  block.counters = matmul.slot[kCounters].address();
  block.tokens = tokens_of_group(row, out->bucket);
  block.threads = threads_of(parts, row.form == Form::Q8X16 ? block.tokens : 1);
  block.epsilon = norm.norm.epsilon;
  block.scale = parts.add->add.scale;
  out->write(matmul.slot[kY]);
  out->read(norm.weight.slice);
  out->note(matmul.slot[kCounters], Access::kReadWrite, false);
  if (!parts.scale) return out->set_block(block);
  all.factor = parts.scale->slot[kTable].address();
  out->read(parts.scale->slot[kTable]);
  out->set_block(all);
}

void pack_float_results(const Parts& parts, Launch* out) {
  auto block = results_of<MatmulFloatRowBlock>(parts, 1, out);
  rows_of(parts, &block.rows_of);
  pack_gain(parts, &block, out);
  out->set_block(block);
}

void pack_tiles(const Parts& parts, const KernelRow& row, Launch* out) {
  MatmulTileBlock block = {};
  const Call& call = *parts.matmul;
  pack_product(parts, &block, out);
  block.tile = row.tile;
  block.tile_tokens = row.tile_tokens;
  rows_of(parts, &block.rows_of);
  if (call.matmul.splits > 1) {
    block.parts = call.slot[kScratch].address();
    block.counters = call.slot[kCounters].address();
    out->note(call.slot[kScratch], Access::kReadWrite, true);
    out->note(call.slot[kCounters], Access::kReadWrite, false);
  }
  out->set_block(block);
}

void pack(std::span<const Call> calls, const KernelRow& row, Launch* out) {
  const Parts parts(calls);
  if (parts.post_norm) return pack_normed(parts, row, out);
  if (by_results(row))
    return row.form == Form::Q8X16 ? pack_results(parts, row, out) : pack_float_results(parts, out);
  if (row.tile_tokens) return pack_tiles(parts, row, out);
  MatmulBlock block = {};
  pack_parts(parts, &block, out);
  block.tile = tile_of(parts, row);
  rows_of(parts, &block.rows_of);
  if (parts.rope) block.rope_halves = parts.rope->rope.halves;
  pack_gain(parts, &block, out);
  out->set_block(block);
}

Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Parts parts(calls);
  const Tensor& weight = parts.matmul->weight;
  const uint64_t matrices = parts.up ? 2 : 1;
  const uint64_t of_n = 1 + (parts.add ? 1 : 0) + (parts.post_norm ? 2 : 0);
  const uint64_t moved = rows * (weight.depth + weight.n * of_n) * kFloatBytes;
  return {matrices * tensor_bytes(weight.type, weight.layout, weight.n, weight.depth, 1) + moved,
          2 * matrices * rows * weight.n * weight.depth};
}

}  // namespace

extern const OpInfo op_matmul = {fits, groups, pack, cost};

}  // namespace greta
