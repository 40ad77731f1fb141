// matmul_expert: each token's slots times the experts chosen for them, alone or with what a kernel row fuses
// around it: a norm before, the gate of two of them, their sum by combine, a residual, and the form that the
// next product reads. Group = a token's slot, or a token where slots are added up, and a tile of output rows;
// where the row has tile_tokens, a tile of rows of one expert for the slots that chose it.
#include <algorithm>
#include <utility>

#include "compute/ops/parts.h"

namespace greta {
namespace {

// The calls of a sequence by what they do; null where absent.
struct Parts {
  const Call* norm = nullptr;
  const Call* each = nullptr;
  const Call* up = nullptr;  // the second matmul_expert of a gate
  const Call* gate = nullptr;
  const Call* combine = nullptr;
  const Call* add = nullptr;
  const Call* convert = nullptr;  // of y
  bool unknown = false;

  explicit Parts(std::span<const Call> calls) {
    for (const Call& call : calls) {
      const Call** part = call.op == Op::Norm           ? &norm
                          : call.op == Op::MatmulExpert ? (each ? &up : &each)
                          : call.op == Op::Gate         ? &gate
                          : call.op == Op::Combine      ? &combine
                          : call.op == Op::Add          ? &add
                          : call.op == Op::Convert      ? &convert
                                                        : nullptr;
      unknown |= !part || *part;
      if (part) *part = &call;
    }
    // The activation goes over the product that the gate reads first.
    if (gate && up && same_place(gate->slot[kX], up->slot[kY]) && !same_place(gate->slot[kX2], up->slot[kY]))
      std::swap(each, up);
  }

  const Slice& y() const { return (add ? add : combine ? combine : gate ? gate : each)->slot[kY]; }
  uint64_t y_width() const {  // of a token
    return uint64_t(combine ? 1 : each->experts.used) * each->weight.n;
  }
};

constexpr uint32_t kMaxTiles = 65535;  // groups that every device takes in a dimension

bool by_results(const KernelRow& row) { return row.form == Form::Q8X16; }

uint32_t x_stride_of(const Call& call) { return stride_or(call.x_stride, call.weight.depth); }
uint32_t y_stride_of(const Call& call) { return stride_or(call.y_stride, call.weight.n); }

bool check_each(const Call& call, const KernelRow& row, Reason& why) {
  if (!check_weight("matmul_expert", call.weight, why)) return false;
  if (row.rank && call.weight.depth > kMaxRankedDepth)
    return why.no("matmul_expert: rows of %u weights, %s holds %u", call.weight.depth, row.name,
                  kMaxRankedDepth);
  const uint32_t experts = call.experts.count, used = call.experts.used;
  const uint32_t first = call.matmul_expert.first, x_slots = call.matmul_expert.x_slots;
  if (first > experts || call.weight.count > experts - first)
    return why.no("matmul_expert: weights of %u experts from %u on for %u", call.weight.count, first,
                  experts);
  if (!used || used > experts) return why.no("matmul_expert: %u of %u experts", used, experts);
  if (x_slots != 1 && x_slots != used)
    return why.no("matmul_expert: %u inputs for %u experts", x_slots, used);
  if (call.form != Form::F32 && call.form != row.form)
    return why.no("matmul_expert: %s does not read x in this form", row.name);
  if (by_results(row) && (x_stride_of(call) % 16 || x_slots * x_stride_of(call) % 32))
    return why.no("matmul_expert: %u inputs of %u values are not whole blocks", x_slots, x_stride_of(call));
  if (!check_stride("matmul_expert", call.x_stride, call.weight.depth, why)) return false;
  if (row.tile_tokens && (x_stride_of(call) % 8 || x_slots * x_stride_of(call) % 32))
    return why.no("matmul_expert: %u inputs of %u values are not whole blocks", x_slots, x_stride_of(call));
  if (row.tile_tokens && call.weight.count * divide_up(call.weight.n, row.tile) > kMaxTiles)
    return why.no("matmul_expert: %u matrices of %u rows", call.weight.count, call.weight.n);
  return check_stride("matmul_expert", call.y_stride, call.weight.n, why);
}

// Each op of the sequence works on what the one before made, without gaps.
bool connected(const Parts& parts) {
  const Call& each = *parts.each;
  const Slice& y = each.slot[kY];
  const auto reads_both = [](const Call& call, const Slice& a, const Slice& b) {
    return (same_place(call.slot[kX], a) && same_place(call.slot[kX2], b)) ||
           (same_place(call.slot[kX], b) && same_place(call.slot[kX2], a));
  };
  if (parts.norm && !same_place(parts.norm->slot[kY], each.slot[kX])) return false;
  if (parts.up &&
      (!same_place(parts.up->slot[kX], each.slot[kX]) || !same_place(parts.up->slot[kX2], each.slot[kX2]) ||
       !reads_both(*parts.gate, y, parts.up->slot[kY])))
    return false;
  if (parts.combine && !same_place(parts.combine->slot[kX], y)) return false;
  if (parts.add && !same_place(parts.add->slot[kX], parts.combine->slot[kY]) &&
      !same_place(parts.add->slot[kX2], parts.combine->slot[kY]))
    return false;
  return !parts.convert || same_place(parts.convert->slot[kX], parts.y());
}

bool check_gate(const Parts& parts, const KernelRow& row, Reason& why) {
  const Call &a = *parts.each, &b = *parts.up;
  if (!check_each(b, row, why)) return false;
  if (a.weight.type != b.weight.type || a.weight.layout != b.weight.layout || a.weight.n != b.weight.n ||
      a.weight.depth != b.weight.depth || a.weight.count != b.weight.count ||
      a.experts.used != b.experts.used || a.matmul_expert.x_slots != b.matmul_expert.x_slots ||
      x_stride_of(a) != x_stride_of(b))
    return why.no("matmul_expert: gate and up differ");
  if (parts.gate->width != parts.y_width() || parts.gate->gate.activation > kActivationClamped ||
      y_stride_of(a) != a.weight.n || y_stride_of(b) != a.weight.n)
    return why.no("matmul_expert: gate of %u values, activation %u, over %u slots of %u", parts.gate->width,
                  parts.gate->gate.activation, a.experts.used, a.weight.n);
  return true;
}

bool check_combine(const Parts& parts, Reason& why) {
  const Call &each = *parts.each, &combine = *parts.combine;
  if (combine.width != each.weight.n || combine.experts.used != each.experts.used ||
      y_stride_of(each) != each.weight.n)
    return why.no("matmul_expert: adds up %u slots of %u values out of %u of %u", combine.experts.used,
                  combine.width, each.experts.used, each.weight.n);
  if (each.matmul_expert.x_slots != each.experts.used || x_stride_of(each) != each.weight.depth ||
      !each.slot[kX2].bytes)
    return why.no("matmul_expert: adds up slots that lie apart");
  if (parts.add && (parts.add->width != each.weight.n || parts.add->add.scale != 1))
    return why.no("matmul_expert: adds %g times %u values to %u", double(parts.add->add.scale),
                  parts.add->width, each.weight.n);
  return true;
}

bool check_convert(const Parts& parts, Reason& why) {
  const Call& convert = *parts.convert;
  const Tensor& gain = convert.weight;
  if (convert.form != Form::Q8X16 || convert.width != parts.y_width() || convert.width % 32 ||
      parts.each->weight.n % 16 || convert.rows_of != kRowsTokens)
    return why.no("matmul_expert: a form of %u values after slots of %u", convert.width,
                  parts.each->weight.n);
  if (gain.n && (!parts.combine || gain.depth != convert.width))
    return why.no("matmul_expert: a gain [%u] for %u values", gain.depth, convert.width);
  return true;
}

bool fits(std::span<const Call> calls, const KernelRow& row, Reason& why) {
  const Parts parts(calls);
  if (parts.unknown || !parts.up != !parts.gate || (parts.norm && parts.combine) ||
      (parts.add && !parts.combine))
    return why.no("matmul_expert: does not fuse with this sequence of %zu ops", calls.size());
  const Call& each = *parts.each;
  if (!check_each(each, row, why)) return false;
  if (!connected(parts)) return why.no("matmul_expert: the ops around it work on other data");
  if (calls.size() > 1 && each.weight.count != each.experts.count)
    return why.no("matmul_expert: weights of %u of %u experts", each.weight.count, each.experts.count);
  if (const Call* norm = parts.norm)
    if (norm->norm.heads != 1 || norm->width != each.weight.depth || each.matmul_expert.x_slots != 1 ||
        norm->x_stride || norm->y_stride || norm->rows_of != kRowsTokens)
      return why.no("matmul_expert: a norm over %u heads of %u before %u inputs of %u", norm->norm.heads,
                    norm->width, each.matmul_expert.x_slots, each.weight.depth);
  if (parts.gate && !check_gate(parts, row, why)) return false;
  if (parts.combine && !check_combine(parts, why)) return false;
  return parts.convert ? check_convert(parts, why) : true;
}

void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  const Parts parts(calls);
  const Call& each = *parts.each;
  out[2] = 1;
  if (row.tile_tokens) {  // as many groups as if all experts were chosen alike
    out[0] = uint32_t(
        divide_up(divide_up(uint64_t(bucket) * each.experts.used, each.experts.count), row.tile_tokens));
    out[1] = uint32_t(each.weight.count * divide_up(each.weight.n, row.tile));
    return;
  }
  out[0] = uint32_t(divide_up(each.weight.n, by_results(row) ? kGroupResults : row.tile));
  out[1] = parts.combine ? bucket : bucket * each.experts.used;
}

// What all blocks have.
template <class Block>
void pack_each(const Parts& parts, Block* block, Launch* out) {
  const Call& each = *parts.each;
  const Slice& x = (parts.norm ? parts.norm : parts.each)->slot[kX];
  block->weight = each.weight.slice.address();
  block->x = x.address();
  block->ids = each.slot[kX2].address();
  block->y = parts.y().address();
  block->step = each.slot[kStep].address();
  block->bias = each.slot[kBias].address();
  block->n = each.weight.n;
  block->depth = each.weight.depth;
  block->experts = each.weight.count;
  block->used = each.experts.used;
  out->read(each.weight.slice);
  out->read(x);
  out->read(each.slot[kX2]);
  out->read(each.slot[kBias]);
  out->write(parts.y());
  read_step(each, out);
}

template <class Block>
void pack_strides(const Parts& parts, Block* block) {
  const Call& each = *parts.each;
  block->x_slots = each.matmul_expert.x_slots;
  block->x_stride = x_stride_of(each);
  block->y_stride = y_stride_of(each);
  block->first = each.matmul_expert.first;
}

template <class Block>
void pack_convert(const Parts& parts, Block* block, Launch* out) {
  if (!parts.convert) return;
  block->rounded = parts.convert->slot[kY].address();
  out->write(parts.convert->slot[kY]);
}

void pack_results(const Parts& parts, Launch* out) {
  MatmulExpertRowBlock block = {};
  pack_each(parts, &block, out);
  pack_strides(parts, &block);
  pack_convert(parts, &block, out);
  block.epsilon = parts.norm ? parts.norm->norm.epsilon : -1;
  block.pairing = parts.up ? kPairingGate : kPairingNone;
  if (parts.up) {
    block.weight2 = parts.up->weight.slice.address();
    block.bias2 = parts.up->slot[kBias].address();
    block.activation = parts.gate->gate.activation;
    out->read(parts.up->weight.slice);
    out->read(parts.up->slot[kBias]);
  }
  out->set_block(block);
}

void pack_sum(const Parts& parts, Launch* out) {
  MatmulExpertSumBlock block = {};
  pack_each(parts, &block, out);
  pack_convert(parts, &block, out);
  block.weights = parts.combine->slot[kX2].address();
  block.threads =
      block.n / kGroupResults < 512 ? 512 : 256;  // few groups: a row's columns are under way together
  out->read(parts.combine->slot[kX2]);
  if (parts.add) {
    const bool first_is_ours = same_place(parts.add->slot[kX], parts.combine->slot[kY]);
    const Slice& residual = parts.add->slot[first_is_ours ? kX2 : kX];
    block.residual = residual.address();
    out->read(residual);
  }
  if (parts.convert) {
    block.gain = parts.convert->weight.slice.address();
    out->read(parts.convert->weight.slice);
  }
  out->set_block(block);
}

void pack(std::span<const Call> calls, const KernelRow& row, Launch* out) {
  const Parts parts(calls);
  if (parts.combine) return pack_sum(parts, out);
  if (by_results(row)) return pack_results(parts, out);
  MatmulExpertBlock block = {};
  pack_each(parts, &block, out);
  pack_strides(parts, &block);
  block.tile = row.tile;
  block.tile_tokens = row.tile_tokens;
  out->set_block(block);
}

// Rows may choose the same experts; at most every expert is read once. A part is taken to have its share of
// the slots.
Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Parts parts(calls);
  const Call& each = *parts.each;
  const Tensor& weight = each.weight;
  const uint64_t slots = uint64_t(rows) * each.experts.used * weight.count / each.experts.count,
                 matrices = parts.up ? 2 : 1;
  const uint64_t read = tensor_bytes(weight.type, weight.layout, weight.n, weight.depth,
                                     std::min<uint64_t>(slots, weight.count));
  return {
      matrices * read +
          (uint64_t(rows) * each.matmul_expert.x_slots * weight.depth + rows * parts.y_width()) * kFloatBytes,
      2 * matrices * slots * weight.n * weight.depth};
}

}  // namespace

extern const OpInfo op_matmul_expert = {fits, groups, pack, cost};

}  // namespace greta
