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

}  // namespace

void check_conv1d(Rig& rig) {
  Random random(31);
  for (const Live& live : live_rows(rig))
    for (const ConvShape& shape : kConvShapes)
      for (const Spread spread : {Spread::Mixed, Spread::Each}) check_case(rig, shape, live, spread, random);
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
