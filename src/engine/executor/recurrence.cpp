// The blocks that keep a state of each sequence: convolutions, and the scans behind them.
#include <array>

#include "engine/executor/step_builder.h"

namespace greta {

namespace {

// Of a row, the values of which a layer makes its state: what is convolved (LFM2: what that is made of), then
// what the scan gets beside the result. Of Mamba 1 the key and the query, made of that, are kept, too.
std::array<uint32_t, 4> input_widths(const Arch& arch, const RecurrentShape& s) {
  switch (arch.recurrence) {
    case Recurrence::ShortConv:
      return {3 * s.channels};
    case Recurrence::Delta:
      return {s.channels, s.heads, s.heads};
    case Recurrence::Groups:
      return {s.channels, s.heads};
    default:
      return {s.values(), s.values(), s.key_width, s.key_width};
  }
}

uint64_t input_bytes(uint32_t width) { return kReplayRows * round_up(width, 64) * sizeof(float); }

struct Recurrent {
  StepBuilder& builder;
  const Layer& layer;
  const StepBuffers::Cache& cache;
  const Slice& x;
  const Slice& h;
  const Arch& arch = builder.arch;
  const RecurrentShape& shape = builder.s.recurrence;
  const CallMaker& make = builder.make;

  Slice rows(uint64_t width) const { return builder.rows(width); }

  // Input `part` of the state. Where a step is small enough it stays until the next one.
  Slice input(uint32_t part) const {
    const auto widths = input_widths(arch, shape);
    if (builder.key.tokens > kReplayRows) return rows(widths[part]);
    Slice slice = cache.inputs;
    for (uint32_t i = 0; i < part; ++i) slice.offset += input_bytes(widths[i]);
    slice.bytes = uint64_t(builder.key.tokens) * widths[part] * sizeof(float);
    return slice;
  }

  Call convolve(const Slice& from, const Slice& to, bool silu) const {
    Call c = make.conv1d(from, layer.conv, layer.conv_bias.slice, silu, to, cache.states, builder.b.runs);
    c.conv1d.state_stride = uint32_t(shape.stride());
    return c;
  }
  Call scan(const ScanInputs& from, uint32_t form, const Slice& to) const {
    Call::Scan scan{form, shape.heads, shape.groups, shape.key_width, shape.value_width};
    scan.key_stride = scan.value_stride = shape.channels;
    scan.state_stride = uint32_t(shape.stride());
    return make.scan(from, scan, to, from_value(cache.states, shape.scan_at()), builder.b.runs);
  }
  Status leave(const Slice& y) const {
    const Slice projected = rows(builder.s.width);
    return builder.leave(builder.matmul(layer.state_out, y, projected, layer.state_out_bias),
                         layer.post_attention_norm, projected, h);
  }

  // b * v of LFM2
  Call short_product(const Slice& all, const Slice& y) const {
    const uint32_t n = shape.channels;
    Call product = make.multiply(all, from_value(all, 2 * n), y, {1, n}, kFactorItself);
    product.x_stride = product.multiply.by_stride = 3 * n;
    return product;
  }

  // LFM2: a token's values are [b | c | v], and the block makes c * conv(b * v).
  Status short_conv(Calls before) const {
    const uint32_t n = shape.channels;
    const Slice all = input(0), convolved = rows(n), y = rows(n);
    before += builder.matmul(layer.state_in, x, all);
    Call gated = make.multiply(from_value(all, n), convolved, convolved, {1, n}, kFactorItself);
    gated.x_stride = 3 * n;
    before += short_product(all, y);
    before += convolve(y, convolved, false);
    GRETA_TRY(builder.emit(before += gated));
    builder.graph.name_part("convolution");
    return leave(convolved);
  }

  Call delta_scan(const Slice& convolved, const Slice& dt, const Slice& strength, const Slice& y) const {
    const uint32_t keys = shape.keys();
    Call scanned = scan({convolved, from_value(convolved, keys), from_value(convolved, 2 * keys), dt,
                         strength, layer.decay.slice, layer.rate_bias.slice},
                        kScanDelta | (arch.tiled_heads ? kScanTiled : 0), y);
    scanned.scan.epsilon = 1e-6f;
    return scanned;
  }

  // The gated delta rule of Qwen3-Next: queries, keys and values are convolved together, and the result is
  // normalised and gated by head.
  Status delta(const Calls& before) const {
    const uint32_t values = shape.values();
    const Slice all = input(0), convolved = rows(shape.channels), z = rows(values);
    const Slice strength = input(2), dt = input(1), y = rows(values);
    Calls mixed = before, gates = before, strengths = before, rates = before, last;
    mixed += builder.matmul(layer.state_in, x, all);
    gates += builder.matmul(layer.state_gate, x, z);
    strengths += builder.matmul(layer.strength, x, strength);
    rates += builder.matmul(layer.rate, x, dt);
    const Call conv = convolve(all, convolved, true);
    GRETA_TRY(builder.emit_beside({mixed, gates, strengths, rates}, conv, &last));
    Call scanned = delta_scan(convolved, dt, strength, y);
    scanned.slot[kCounters] = make.counters;
    last += conv;
    last += scanned;
    last += builder.norm(layer.state_norm, y, y, shape.heads);
    GRETA_TRY(builder.emit(last += make.gate(z, y, y, values, kActivationSilu)));
    builder.graph.name_part("scan");
    return leave(y);
  }

  Call groups_scan(const Slice& convolved, const Slice& dt, const Slice& y) const {
    const uint32_t values = shape.values(), keys = shape.keys();
    return scan({from_value(convolved, values + keys), from_value(convolved, values), convolved, dt,
                 layer.skip.slice, layer.decay.slice, layer.rate_bias.slice},
                kScanGroups, y);
  }

  // Mamba 2: values, keys and queries are convolved together. The result is gated, then normalised by group.
  Status groups(const Calls& before) const {
    const uint32_t values = shape.values();
    const Slice all = input(0), convolved = rows(shape.channels), z = rows(values);
    const Slice dt = input(1), y = rows(values);
    Calls mixed = before, gates = before, rates = before, last;
    mixed += builder.matmul(layer.state_in, x, all);
    gates += builder.matmul(layer.state_gate, x, z);
    rates += builder.matmul(layer.rate, x, dt);
    const Call conv = convolve(all, convolved, true);
    GRETA_TRY(builder.emit_beside({mixed, gates, rates}, conv, &last));
    last += conv;
    last += groups_scan(convolved, dt, y);
    GRETA_TRY(builder.emit(last += make.gate(z, y, y, values, kActivationSilu)));
    builder.graph.name_part("scan");
    for (uint32_t g = 0; there(layer.state_norm) && g < shape.groups; ++g) {
      Tensor gain = layer.state_norm;
      gain.n = 1;
      gain.slice = from_value(gain.slice, uint64_t(g) * gain.depth);
      const Slice part = from_value(y, uint64_t(g) * gain.depth);
      Call normed = builder.norm(gain, part, part);
      if (shape.groups > 1) normed.x_stride = normed.y_stride = values;
      GRETA_TRY(builder.emit({normed}));
    }
    return leave(y);
  }

  Call selective_scan(const Slice& query, const Slice& key, const Slice& convolved, const Slice& dt,
                      const Slice& y) const {
    Call scanned =
        scan({query, key, convolved, dt, layer.skip.slice, layer.decay.slice, layer.rate_bias.slice},
             kScanSelective, y);
    scanned.scan.key_stride = 0;
    return scanned;
  }

  // Mamba 1: each channel is a head with one value. Rates, keys and queries are made of what was convolved.
  Status selective(const Calls& before) const {
    const uint32_t inner = shape.values();
    const Slice all = input(0), convolved = rows(inner), z = rows(inner), y = rows(inner);
    const Slice low = rows(shape.rank), dt = input(1), key = input(2), query = input(3);
    Calls mixed = before, gates = before, rates, keys, queries, last;
    mixed += builder.matmul(layer.state_in, x, all);
    gates += builder.matmul(layer.state_gate, x, z);
    const Call conv = convolve(all, convolved, true);
    GRETA_TRY(builder.emit_beside({mixed, gates}, conv, &last));
    GRETA_TRY(builder.emit(last += conv));
    builder.graph.name_part("convolution");
    rates += builder.matmul(layer.rate_down, convolved, low);
    keys += builder.matmul(layer.state_key, convolved, key);
    queries += builder.matmul(layer.state_query, convolved, query);
    if (there(layer.rate_norm)) rates += builder.norm(layer.rate_norm, low, low);
    if (there(layer.state_key_norm)) keys += builder.norm(layer.state_key_norm, key, key);
    if (there(layer.state_query_norm)) queries += builder.norm(layer.state_query_norm, query, query);
    rates += builder.matmul(layer.rate, low, dt);
    const Call scanned = selective_scan(query, key, convolved, dt, y);
    last = {};
    GRETA_TRY(builder.emit_beside({rates, keys, queries}, scanned, &last));
    last += scanned;
    GRETA_TRY(builder.emit(last += make.gate(z, y, y, inner, kActivationSilu)));
    builder.graph.name_part("scan");
    return leave(y);
  }

  // The calls that make the state anew, one behind the other.
  std::vector<Call> replay() const {
    const bool alone = arch.recurrence == Recurrence::ShortConv;
    const Slice all = input(0), convolved = rows(shape.channels);
    if (alone) {
      const Slice products = rows(shape.channels);
      return {short_product(all, products), convolve(products, convolved, false)};
    }
    const Slice dt = input(1), y = rows(shape.values());
    const Call conv = convolve(all, convolved, true);
    switch (arch.recurrence) {
      case Recurrence::Delta:
        return {conv, delta_scan(convolved, dt, input(2), y)};
      case Recurrence::Groups:
        return {conv, groups_scan(convolved, dt, y)};
      default:
        return {conv, selective_scan(input(3), input(2), convolved, dt, y)};
    }
  }
};

}  // namespace

uint64_t state_inputs_bytes(const Arch& arch, const Shape& shape, uint32_t layer) {
  uint64_t bytes = 0;
  if (shape.each[layer].recurrent)
    for (const uint32_t width : input_widths(arch, shape.recurrence)) bytes += input_bytes(width);
  return bytes;
}

// No layer needs what another one makes, so that each kind of call takes one stage of all layers.
Status add_replay(StepBuilder& builder, const Weights& weights, std::span<const uint32_t> layers) {
  std::vector<std::vector<Call>> of_layers;
  for (const uint32_t l : layers)
    of_layers.push_back(
        Recurrent{builder, weights.layers[l], builder.b.cache[builder.s.cache_layer(l)], {}, {}}.replay());
  for (size_t i = 0; i < 2; ++i)
    for (const std::vector<Call>& calls : of_layers) GRETA_TRY(builder.emit({calls[i]}));
  builder.graph.name_part("replay");
  return {};
}

Status add_recurrence(StepBuilder& builder, const Layer& layer, const StepBuffers::Cache& cache,
                      const Calls& before, const Slice& x, const Slice& h) {
  const Recurrent block{builder, layer, cache, x, h};
  switch (builder.arch.recurrence) {
    case Recurrence::ShortConv:
      return block.short_conv(before);
    case Recurrence::Delta:
      return block.delta(before);
    case Recurrence::Groups:
      return block.groups(before);
    default:
      return block.selective(before);
  }
}

}  // namespace greta
