// The blocks that keep a state of each sequence: convolutions, and the scans behind them.
#include "engine/executor/step_builder.h"

namespace greta {

namespace {

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

  // LFM2: a token's values are [b | c | v], and the block makes c * conv(b * v).
  Status short_conv(Calls before) const {
    const uint32_t n = shape.channels;
    const Slice all = rows(3 * n), convolved = rows(n), y = rows(n);
    before += builder.matmul(layer.state_in, x, all);
    Call product = make.multiply(all, from_value(all, 2 * n), y, {1, n}, kFactorItself);
    product.x_stride = product.multiply.by_stride = 3 * n;
    Call gated = make.multiply(from_value(all, n), convolved, convolved, {1, n}, kFactorItself);
    gated.x_stride = 3 * n;
    before += product;
    before += convolve(y, convolved, false);
    GRETA_TRY(builder.emit(before += gated));
    builder.graph.name_part("convolution");
    return leave(convolved);
  }

  // The gated delta rule of Qwen3-Next: queries, keys and values are convolved together, and the result is
  // normalised and gated by head.
  Status delta(const Calls& before) const {
    const uint32_t values = shape.values(), keys = shape.keys();
    const Slice all = rows(shape.channels), convolved = rows(shape.channels), z = rows(values);
    const Slice strength = rows(shape.heads), dt = rows(shape.heads), y = rows(values);
    Calls mixed = before, gates = before, strengths = before, rates = before, last;
    mixed += builder.matmul(layer.state_in, x, all);
    gates += builder.matmul(layer.state_gate, x, z);
    strengths += builder.matmul(layer.strength, x, strength);
    rates += builder.matmul(layer.rate, x, dt);
    const Call conv = convolve(all, convolved, true);
    GRETA_TRY(builder.emit_beside({mixed, gates, strengths, rates}, conv, &last));
    Call scanned = scan({convolved, from_value(convolved, keys), from_value(convolved, 2 * keys), dt,
                         strength, layer.decay.slice, layer.rate_bias.slice},
                        kScanDelta | (arch.tiled_heads ? kScanTiled : 0), y);
    scanned.scan.epsilon = 1e-6f;
    scanned.slot[kCounters] = make.counters;
    last += conv;
    last += scanned;
    last += builder.norm(layer.state_norm, y, y, shape.heads);
    GRETA_TRY(builder.emit(last += make.gate(z, y, y, values, kActivationSilu)));
    builder.graph.name_part("scan");
    return leave(y);
  }

  // Mamba 2: values, keys and queries are convolved together. The result is gated, then normalised by group.
  Status groups(const Calls& before) const {
    const uint32_t values = shape.values(), keys = shape.keys();
    const Slice all = rows(shape.channels), convolved = rows(shape.channels), z = rows(values);
    const Slice dt = rows(shape.heads), y = rows(values);
    Calls mixed = before, gates = before, rates = before, last;
    mixed += builder.matmul(layer.state_in, x, all);
    gates += builder.matmul(layer.state_gate, x, z);
    rates += builder.matmul(layer.rate, x, dt);
    const Call conv = convolve(all, convolved, true);
    GRETA_TRY(builder.emit_beside({mixed, gates, rates}, conv, &last));
    last += conv;
    last += scan({from_value(convolved, values + keys), from_value(convolved, values), convolved, dt,
                  layer.skip.slice, layer.decay.slice, layer.rate_bias.slice},
                 kScanGroups, y);
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

  // Mamba 1: each channel is a head with one value. Rates, keys and queries are made of what was convolved.
  Status selective(const Calls& before) const {
    const uint32_t inner = shape.values(), n = shape.key_width;
    const Slice all = rows(inner), convolved = rows(inner), z = rows(inner), y = rows(inner);
    const Slice low = rows(shape.rank), dt = rows(inner), key = rows(n), query = rows(n);
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
    Call scanned =
        scan({query, key, convolved, dt, layer.skip.slice, layer.decay.slice, layer.rate_bias.slice},
             kScanSelective, y);
    scanned.scan.key_stride = 0;
    last = {};
    GRETA_TRY(builder.emit_beside({rates, keys, queries}, scanned, &last));
    last += scanned;
    GRETA_TRY(builder.emit(last += make.gate(z, y, y, inner, kActivationSilu)));
    builder.graph.name_part("scan");
    return leave(y);
  }
};

}  // namespace

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
