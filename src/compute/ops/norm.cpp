// norm: root-mean-square norm of each head of a row (one head: of the row), alone or with what a kernel row
// fuses after it: a residual, or a gate whose activation multiplies the heads, and the form that the next
// product reads. Group = a row, or with a gate so many heads of it.
#include "compute/ops/forms.h"

namespace greta {

// Row for row on what the norm made, without gaps.
static bool check_add(const Call& norm, const Call& add, Reason& why) {
  if (add.op != Op::Add || !same_place(add.slot[kX2], norm.slot[kY]) || add.width != norm.width ||
      norm.norm.heads != 1 || norm.rows_of != kRowsTokens || norm.x_stride || norm.y_stride)
    return why.no("norm: rows of %u values do not fuse with %s of %u", norm.width, op_name(add.op),
                  add.width);
  return true;
}

static bool check_convert(const Call& add, const Call& convert, Reason& why) {
  const Tensor& gain = convert.weight;
  if (convert.op != Op::Convert || convert.form != Form::Q8X16 ||
      !same_place(convert.slot[kX], add.slot[kY]) || convert.width != add.width || convert.width % 32 ||
      (gain.n && gain.depth != convert.width))
    return why.no("norm: rows of %u values do not fuse with %s of %u", add.width, op_name(convert.op),
                  convert.width);
  return true;
}

static bool check_halves(const Call& norm, const Call& convert, Reason& why) {
  if (makes_halves(norm, convert, norm.width) && norm.norm.heads == 1 && !norm.x_stride && !norm.y_stride)
    return true;
  return why.no("norm: rows of %u values do not fuse with a form of %u", norm.width, convert.width);
}

static bool gives_halves(std::span<const Call> calls) {
  return calls.size() == 2 && calls[1].op == Op::Convert;
}

static bool gates(std::span<const Call> calls) { return calls.size() > 1 && calls[1].op == Op::Gate; }

static uint64_t values_of(const Call& norm) { return uint64_t(norm.norm.heads) * norm.width; }

// The activation goes over the other input of the gate.
bool check_gated_norm(std::span<const Call> calls, Reason& why) {
  const Call &norm = calls[0], &gate = calls[1];
  if (!same_place(gate.slot[kX2], norm.slot[kY]) || same_place(gate.slot[kX], norm.slot[kY]) ||
      gate.width != values_of(norm) || norm.x_stride || norm.y_stride || norm.rows_of != kRowsTokens ||
      gate.gate.activation > kActivationClamped || norm.width % 4 || norm.width > kMaxGatedHead)
    return why.no("norm: %u heads of %u values do not fuse with a gate of %u", norm.norm.heads, norm.width,
                  gate.width);
  if (calls.size() == 2 || makes_halves(gate, calls[2], gate.width) ||
      (makes_rounded(gate, calls[2], gate.width) && norm.width % 16 == 0))
    return true;
  return why.no("norm: %u gated heads of %u values do not fuse with a form of %u", norm.norm.heads,
                norm.width, calls[2].width);
}

// The norms of two blocks' results, their sum, the norm of that and the residual, and then a factor and the
// form that the next product reads.
struct PairParts {
  const Call &a, &b, &sum, &norm, &add;
  const Call *scale = nullptr, *convert = nullptr;

  explicit PairParts(std::span<const Call> calls)
      : a(calls[0]), b(calls[1]), sum(calls[2]), norm(calls[3]), add(calls[4]) {
    for (const Call& call : calls.subspan(5)) (call.op == Op::Scale ? scale : convert) = &call;
  }
  static bool are(std::span<const Call> calls) { return calls.size() > 4 && calls[1].op == Op::Norm; }
};

static bool check_pair(const PairParts& parts, Reason& why) {
  const auto& [a, b, sum, norm, add, scale, convert] = parts;
  const uint32_t width = a.width;
  for (const Call* each : {&a, &b, &norm})
    if (each->norm.heads != 1 || each->width != width || each->x_stride || each->y_stride ||
        each->rows_of != kRowsTokens || each->norm.epsilon != a.norm.epsilon || each->weight.n != 1 ||
        each->weight.depth != width || width % 4)
      return why.no("norm: rows of %u and %u values do not fuse", width, each->width);
  if (!same_place(sum.slot[kX], a.slot[kY]) || !same_place(sum.slot[kX2], b.slot[kY]) ||
      same_place(a.slot[kY], b.slot[kY]) || sum.add.scale != 1 || sum.width != width ||
      !same_place(norm.slot[kX], sum.slot[kY]))
    return why.no("norm: a sum of %u values, and a norm of %u", sum.width, norm.width);
  if (scale && (!same_place(scale->slot[kY], add.slot[kY]) || scale->experts.count != 1 ||
                scale->experts.used != 1 || scale->width != width || scale->rows_of != kRowsTokens ||
                scale->slot[kBias].buffer || scale->slot[kX2].buffer))
    return why.no("norm: a factor of %u values behind rows of %u", scale->width, width);
  return check_add(norm, add, why) && (!convert || check_convert(add, *convert, why));
}

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  const Call& call = calls[0];
  if (PairParts::are(calls)) return check_pair(PairParts(calls), why);
  if (calls.size() > 3) return check_single(calls, why);
  if (gates(calls)) {
    if (!check_gated_norm(calls, why)) return false;
    calls = calls.first(1);
  }
  if (calls.size() > 1 &&
      !(gives_halves(calls) ? check_halves(call, calls[1], why) : check_add(call, calls[1], why)))
    return false;
  if (calls.size() > 2 && !check_convert(calls[1], calls[2], why)) return false;
  if (!check_size("norm", "width", call.width, why)) return false;
  if (call.weight.depth != call.width || call.weight.n != 1)
    return why.no("norm: a gain [%u][%u] for rows of %u values", call.weight.n, call.weight.depth,
                  call.width);
  if (!check_stride("norm", call.x_stride, call.norm.heads * call.width, why)) return false;
  if (!check_stride("norm", call.y_stride, call.norm.heads * call.width, why)) return false;
  return check_weight("norm", call.weight, why);
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  out[0] = bucket;
  out[1] = gates(calls) ? uint32_t(divide_up(calls[0].norm.heads, row.tile)) : 1;
  out[2] = 1;
}

static void pack_gate(std::span<const Call> calls, Launch* out) {
  const Call &norm = calls[0], &gate = calls[1];
  NormGateBlock block = {};
  block.x = norm.slot[kX].address();
  block.gain = norm.weight.slice.address();
  block.gate = gate.slot[kX].address();
  block.y = gate.slot[kY].address();
  block.step = norm.slot[kStep].address();
  block.width = norm.width;
  block.heads = norm.norm.heads;
  block.activation = gate.gate.activation;
  block.epsilon = norm.norm.epsilon;
  out->read(norm.slot[kX]);
  out->read(norm.weight.slice);
  out->read(gate.slot[kX]);
  out->write(gate.slot[kY]);
  read_step(norm, out);
  if (calls.size() > 2) pack_form(calls[2], &block, out);
  out->set_block(block);
}

static void pack_pair(const PairParts& parts, Launch* out) {
  NormPairBlock block = {};
  block.a = parts.a.slot[kX].address();
  block.a_gain = parts.a.weight.slice.address();
  block.b = parts.b.slot[kX].address();
  block.b_gain = parts.b.weight.slice.address();
  block.gain = parts.norm.weight.slice.address();
  block.residual = parts.add.slot[kX].address();
  block.y = parts.add.slot[kY].address();
  block.step = parts.a.slot[kStep].address();
  block.width = parts.a.width;
  block.epsilon = parts.a.norm.epsilon;
  block.scale = parts.add.add.scale;
  for (const Slice& input : {parts.a.slot[kX], parts.a.weight.slice, parts.b.slot[kX], parts.b.weight.slice,
                             parts.norm.weight.slice, parts.add.slot[kX]})
    out->read(input);
  out->write(parts.add.slot[kY]);
  read_step(parts.a, out);
  if (parts.scale) {
    block.factor = parts.scale->slot[kTable].address();
    out->read(parts.scale->slot[kTable]);
  }
  if (parts.convert) {
    block.rounded = parts.convert->slot[kY].address();
    block.next_gain = parts.convert->weight.slice.address();
    out->write(parts.convert->slot[kY]);
    out->read(parts.convert->weight.slice);
  }
  out->set_block(block);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  if (PairParts::are(calls)) return pack_pair(PairParts(calls), out);
  if (gates(calls)) return pack_gate(calls, out);
  const Call& call = calls[0];
  const bool adds = calls.size() > 1 && !gives_halves(calls);
  const Slice& y = calls[adds].slot[kY];
  NormBlock block = {};
  block.x = call.slot[kX].address();
  block.gain = call.weight.slice.address();
  block.y = y.address();
  block.step = call.slot[kStep].address();
  block.width = call.width;
  block.heads = call.norm.heads;
  block.x_stride = stride_or(call.x_stride, block.heads * call.width);
  block.y_stride = stride_or(call.y_stride, block.heads * call.width);
  block.epsilon = call.norm.epsilon;
  block.rows_of = call.rows_of;
  out->read(call.slot[kX]);
  out->read(call.weight.slice);
  out->write(y);
  read_step(call, out);
  if (gives_halves(calls)) {
    block.halves = calls[1].slot[kY].address();
    out->write(calls[1].slot[kY]);
  }
  if (adds) {
    block.residual = calls[1].slot[kX].address();
    block.scale = calls[1].add.scale;
    out->read(calls[1].slot[kX]);
  }
  if (calls.size() > 2) {
    block.rounded = calls[2].slot[kY].address();
    block.next_gain = calls[2].weight.slice.address();
    out->write(calls[2].slot[kY]);
    out->read(calls[2].weight.slice);
  }
  out->set_block(block);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const uint64_t values = rows * values_of(calls[0]);
  Cost all = {2 * values * kFloatBytes, 4 * values};
  if (PairParts::are(calls)) return {4 * values * kFloatBytes, 14 * values};
  if (gates(calls)) return {3 * values * kFloatBytes, 12 * values};
  if (calls.size() > 1) all.bytes += values * kFloatBytes, all.flops += 2 * values;
  if (calls.size() > 2)
    all.bytes += rows * form_row_bytes(Form::Q8X16, calls[0].width), all.flops += 2 * values;
  return all;
}

extern const OpInfo op_norm = {fits, groups, pack, cost};

}  // namespace greta
