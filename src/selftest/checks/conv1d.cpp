// Checks conv1d against float64: widths, odd numbers of channels, texts shorter than the convolution, steps
// of several sequences, what is not finite, and that a text can be cut anywhere.
#include "selftest/checks/checks.h"
#include "selftest/checks/runs.h"

namespace greta::selftest {

namespace {

struct ConvShape {
  uint32_t channels, width;
  bool biased, silu;
  uint32_t gap;  // between rows, and between states
};
constexpr ConvShape kConvShapes[] = {{200, 4, false, true, 0},
                                     {37, 3, true, false, 7},
                                     {1, 2, true, true, 3},
                                     {130, 8, false, false, 1},
                                     {64, 4, true, true, 0}};

struct ConvCase {
  ConvShape shape;
  std::vector<float> x, weight, bias;

  ConvCase(const ConvShape& shape, uint32_t tokens, Random& random)
      : shape(shape),
        x(with_outliers(size_t(tokens) * shape.channels, random)),
        weight(gaussians(size_t(shape.channels) * shape.width, random)),
        bias(shape.biased ? gaussians(shape.channels, random) : std::vector<float>()) {}

  uint32_t state_values() const { return uint32_t(conv_state_values(shape.channels, shape.width)); }

  Call call(Rig& rig, const Runs& runs, const States& states, uint32_t bucket) const {
    Tensor w;
    w.n = shape.channels;
    w.depth = shape.width;
    w.slice = rig.put(weight);
    const uint32_t stride = shape.channels + shape.gap;
    Call call = CallMaker{runs.steps.put(rig)}.conv1d(
        put_rows(rig, x, shape.channels, stride, bucket), w, shape.biased ? rig.put(bias) : Slice{},
        shape.silu, rig.room(uint64_t(bucket) * stride * 4), {}, runs.put(rig));
    call.conv1d.state_stride = states.stride;
    if (shape.gap) call.x_stride = call.y_stride = stride;
    return call;
  }
  // Runs a row on the states as they are before, which it changes.
  std::vector<float> run(Rig& rig, Call& call, const States& states, const KernelRow& row,
                         uint32_t bucket) const {
    call.slot[kPool] = rig.put(states.before);
    rig.poison(call.slot[kY]);
    rig.run({&call, 1}, row, bucket);
    const std::vector<float> wide = rig.get<float>(call.slot[kY]);
    const uint32_t stride = shape.channels + shape.gap;
    std::vector<float> y;
    for (size_t t = 0; t < bucket; ++t) {
      const auto from = wide.begin() + ptrdiff_t(t * stride);
      y.insert(y.end(), from, from + shape.channels);
      expect(std::all_of(from + shape.channels, from + stride, [](float v) { return std::isnan(v); }),
             std::string(row.name) + ": it wrote between rows");
    }
    return y;
  }
};

void check_case(Rig& rig, const ConvShape& shape, const Live& live, Spread spread, Random& random) {
  const Runs runs(live.tokens, spread);
  const ConvCase c(shape, live.tokens, random);
  const States states(runs, c.state_values(), shape.gap, random);
  Values expected, after;
  for (uint32_t r = 0; r < runs.runs.count; ++r) {
    Values state = states.of(runs, r);
    const Values y =
        reference::conv1d(to_values(rows_from(c.x, shape.channels, runs.runs.run[r])), to_values(c.weight),
                          to_values(c.bias), shape.width, shape.silu, &state);
    expected.insert(expected.end(), y.begin(), y.end());
    after.insert(after.end(), state.begin(), state.end());
  }
  Call call = c.call(rig, runs, states, live.bucket);
  for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
    require_close(c.run(rig, call, states, *row, live.bucket), expected, 1e-12, row->name);
    states.require(runs, rig.get<float>(call.slot[kPool]), after, 0, row->name);
  }
  rig.reset();
}

// Rows that have a row of each part beside each other, and NaN up to the next one.
std::vector<float> beside(std::initializer_list<const std::vector<float>*> parts, uint32_t tokens,
                          uint32_t width, uint32_t stride) {
  std::vector<float> rows;
  for (uint32_t t = 0; t < tokens; ++t) {
    for (const std::vector<float>* part : parts)
      rows.insert(rows.end(), part->begin() + t * width, part->begin() + (t + 1) * width);
    rows.resize(size_t(t + 1) * stride, __builtin_nanf(""));
  }
  return rows;
}

// Checks gate * conv1d(x * by), whose inputs lie beside each other in rows, as lfm2 has them.
void check_gated(Rig& rig, const ConvShape& shape, const Live& live, Spread spread, Random& random) {
  const Runs runs(live.tokens, spread);
  const uint32_t channels = shape.channels, stride = 3 * channels + shape.gap;
  const ConvCase c(shape, live.tokens, random);
  const States states(runs, c.state_values(), shape.gap, random);
  const auto by = gaussians(c.x.size(), random), gate = gaussians(c.x.size(), random);
  const Values product = reference::multiply(to_values(c.x), to_values(by), kFactorItself, {});
  Values convolved, after;
  for (uint32_t r = 0; r < runs.runs.count; ++r) {
    Values state = states.of(runs, r);
    const auto from = product.begin() + ptrdiff_t(size_t(runs.runs.run[r].first) * channels);
    const Values y = reference::conv1d({from, from + ptrdiff_t(size_t(runs.runs.run[r].count) * channels)},
                                       to_values(c.weight), to_values(c.bias), shape.width, false, &state);
    convolved.insert(convolved.end(), y.begin(), y.end());
    after.insert(after.end(), state.begin(), state.end());
  }
  const Values expected = reference::multiply(to_values(gate), convolved, kFactorItself, {});
  const std::vector<float> rows = beside({&c.x, &gate, &by}, live.tokens, channels, stride);
  const auto from_value = [](const Slice& s, uint64_t i) {
    return Slice{s.buffer, s.offset + i * 4, s.bytes - i * 4};
  };
  const Slice all = rig.put_padded(rows, uint64_t(live.bucket) * stride);
  const Slice u = rig.room(uint64_t(live.bucket) * channels * 4), y = rig.room(u.bytes);
  Call conv = c.call(rig, runs, states, live.bucket);
  conv.x_stride = conv.y_stride = 0;
  conv.conv1d.silu = false;
  conv.slot[kX] = u, conv.slot[kY] = y;
  const CallMaker make{conv.slot[kStep]};
  Call before = make.multiply(all, from_value(all, 2 * channels), u, {1, channels}, kFactorItself);
  before.x_stride = before.multiply.by_stride = stride;
  Call gated = make.multiply(from_value(all, channels), y, y, {1, channels}, kFactorItself);
  gated.x_stride = stride;
  std::vector<Call> calls = {before, conv, gated};
  const auto run = [&](std::optional<Form> form) {
    if (form)
      calls.push_back(
          make.convert(y, rig.room(live.bucket * form_row_bytes(*form, channels)), *form, channels));
    for (const KernelRow* row : rig.rows(calls, live.bucket)) {
      calls[1].slot[kPool] = rig.put(states.before);
      rig.poison(y);
      if (form) rig.poison(calls[3].slot[kY]);
      rig.run(calls, *row, live.bucket);
      const std::vector<float> made = rig.get<float>(y);
      require_close(made, expected, 1e-12, row->name);
      states.require(runs, rig.get<float>(calls[1].slot[kPool]), after, 1e-13, row->name);
      if (form == Form::F16)
        expect_halves(*row, made, rig.get<uint8_t>(calls[3].slot[kY]), size_t(live.tokens) * channels);
      if (form == Form::Q8X16)
        expect_rounded(*row, made, rig.get<uint8_t>(calls[3].slot[kY]), channels, {}, live.tokens);
    }
    if (form) calls.pop_back();
  };
  run({});
  run(Form::F16);
  run(Form::Q8X16);
  rig.reset();
}

constexpr ConvShape kGatedShapes[] = {
    {200, 3, true, false, 0}, {96, 3, false, false, 4}, {4, 2, true, false, 0}, {352, 8, false, false, 0}};

}  // namespace

void check_conv1d(Rig& rig) {
  Random random(31);
  for (const Live& live : live_rows(rig, 5, 2))  // 32 rows have kernels of their own
    for (const ConvShape& shape : kConvShapes)
      for (const Spread spread : {Spread::Mixed, Spread::Each}) check_case(rig, shape, live, spread, random);
  for (const Live& live : live_rows(rig))
    for (const ConvShape& shape : kGatedShapes)
      for (const Spread spread : {Spread::Mixed, Spread::Each}) check_gated(rig, shape, live, spread, random);
  rig.require_all_run(Op::Conv1d);
}

// A value that is not finite goes into the rows of its channel that see it, and into no other.
void check_conv1d_of_not_finite(Rig& rig) {
  Random random(32);
  const ConvShape shape = {40, 4, true, true, 0};
  const uint32_t tokens = 12, at = 3, channel = 17;
  for (const float value : kNotFinite) {
    const Runs runs(tokens, uint32_t(5));
    ConvCase c(shape, tokens, random);
    c.x[at * shape.channels + channel] = value;
    const States states(runs, c.state_values(), 0, random);
    Call call = c.call(rig, runs, states, 16);
    for (const KernelRow* row : rig.rows({&call, 1}, 16)) {
      const std::vector<float> y = c.run(rig, call, states, *row, 16);
      for (uint32_t t = 0; t < tokens; ++t)
        for (uint32_t i = 0; i < shape.channels; ++i) {
          const bool sees = i == channel && t >= at && t < at + shape.width;
          (sees ? require_not_finite : require_finite)(y, t * shape.channels + i, 1, row->name);
        }
    }
    rig.reset();
  }
}

}  // namespace greta::selftest
