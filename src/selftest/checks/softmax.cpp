// Checks softmax against float64: caps, masks that rows share, sinks, gaps between rows, several rows of x
// for each of the step, and what is not finite.
#include <limits>

#include "selftest/checks/checks.h"

namespace greta::selftest {

namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

struct Shape {
  uint32_t width, heads;
  float scale, cap;
  Call::Repeats mask, sinks;  // a count of 0: absent
  bool logarithm = false;
  uint32_t x_gap = 0, y_gap = 0;
};
// Rows are longer than what a group of a GPU keeps (8192 values), and shorter than a group. Masks have fewer
// rows than x, or one for all.
constexpr Shape kShapes[] = {{1030, 2, 1, 3, {1, 7}, {1, 3}},
                             {33, 3, 0.7f, 0, {3, 5}, {1, 0}},
                             {1024, 1, 1.5f, 0, {1, 1}, {1, 0}, true},
                             {1, 1, 1, 0, {1, 0}, {1, 0}},
                             {64, 4, -1, 0, {1, 0}, {2, 2}, true, 8, 4},
                             {257, 1, 1, 2, {2, 3}, {1, 1}, true, 3, 6},
                             {8200, 1, 1, 0, {1, 2}, {1, 0}},
                             {9001, 1, 1, 0, {1, 0}, {1, 1}, true}};

struct SoftmaxCase {
  Shape shape;
  uint32_t rows;  // that live
  std::vector<float> x, mask, sinks;

  SoftmaxCase(const Shape& of, uint32_t live, Random& random) : shape(of), rows(live * of.heads) {
    x = gaussians(size_t(rows) * shape.width, random, 3);
    if (!shape.cap && shape.scale > 0) x[x.size() / 2] = kMasked;
    mask = gaussians(size_t(shape.mask.count) * shape.width, random);
    for (size_t i = 0; i < mask.size(); i += 3) mask[i] = kMasked;
    // Of several masks one leaves nothing.
    if (shape.mask.count > 1) std::fill_n(mask.end() - shape.width, shape.width, kMasked);
    sinks = gaussians(shape.sinks.count, random, 2);
  }
  static uint32_t of(const Call::Repeats& all, uint32_t row) { return row / all.every % all.count; }
  Values expected() const {
    Values scores = reference::softcap(to_values(x), double(shape.cap), double(shape.scale)), of_rows;
    for (size_t i = 0; i < scores.size() && shape.mask.count; ++i)
      scores[i] += double(mask[of(shape.mask, uint32_t(i / shape.width)) * shape.width + i % shape.width]);
    for (uint32_t r = 0; r < rows && shape.sinks.count; ++r)
      of_rows.push_back(double(sinks[of(shape.sinks, r)]));
    return reference::softmax(scores, of_rows, shape.width, shape.logarithm);
  }
  Call call(Rig& rig, uint32_t bucket, const Slice& step) const {
    const uint32_t x_stride = shape.width + shape.x_gap, y_stride = shape.width + shape.y_gap;
    std::vector<float> spread(size_t(rows) * x_stride, std::numeric_limits<float>::quiet_NaN());
    for (size_t i = 0; i < x.size(); ++i) spread[i / shape.width * x_stride + i % shape.width] = x[i];
    const auto slice = [&](const std::vector<float>& values) {
      return values.empty() ? Slice{} : rig.put(values);
    };
    Call::Softmax of_call = {.heads = shape.heads, .scale = shape.scale, .cap = shape.cap};
    of_call.logarithm = shape.logarithm;
    if (shape.mask.count) of_call.mask = shape.mask;
    if (shape.sinks.count) of_call.sinks = shape.sinks;
    const uint32_t all = bucket * shape.heads;
    Call made = CallMaker{step}.softmax(rig.put_padded(spread, all * x_stride), slice(mask), slice(sinks),
                                        rig.room(uint64_t(all) * y_stride * 4), shape.width, of_call);
    made.x_stride = x_stride, made.y_stride = y_stride;
    return made;
  }
};

// Fails unless each value is infinite where the expected one is, the others are near, and gaps are poison.
void require_softmax(std::vector<float> y, const SoftmaxCase& of, Values expected, const std::string& name) {
  const uint32_t width = of.shape.width, stride = width + of.shape.y_gap;
  std::vector<float> dense;
  for (size_t i = 0; i < y.size(); ++i) {
    const bool made = i / stride < of.rows && i % stride < width;
    if (made) dense.push_back(y[i]);
    expect(made || std::isnan(y[i]), name + ": wrote what is no row");
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!std::isinf(expected[i])) continue;
    expect(dense[i] == kMasked, name + ": a value that is masked has a weight");
    dense[i] = 0, expected[i] = 0;
  }
  require_close(dense, expected, 1e-11, name);
}

}  // namespace

void check_softmax(Rig& rig) {
  Random random(31);
  for (const Live& live : live_rows(rig))
    for (const Shape& shape : kShapes) {
      if (shape.width > 8000 && live.bucket > 8) continue;
      StepRows steps;
      steps.add_tokens(live.tokens);
      const SoftmaxCase made(shape, live.tokens, random);
      Call call = made.call(rig, live.bucket, steps.put(rig));
      for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
        rig.poison(call.slot[kY]);
        rig.run({&call, 1}, *row, live.bucket);
        require_softmax(rig.get<float>(call.slot[kY]), made, made.expected(), row->name);
      }
      if (live.bucket == 8) check_repeats(rig, call, live.bucket);
      // Rows of x that do not fill the last row of the step, which is the last one that lives.
      if (made.rows > 1) {
        call.softmax.rows = made.rows - 1;
        for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
          rig.poison(call.slot[kY]);
          rig.run({&call, 1}, *row, live.bucket);
          const auto y = rig.get<float>(call.slot[kY]);
          expect(std::isnan(y[size_t(made.rows - 1) * call.y_stride]),
                 std::string(row->name) + ": made a row more than there are");
        }
      }
      rig.reset();
    }
  rig.require_all_run(Op::Softmax);
}

void check_softmax_of_not_finite(Rig& rig) {
  Random random(32);
  const uint32_t width = 100;
  for (const Live& live : live_rows(rig, 2))
    for (const float value : kNotFinite)
      for (const bool logarithm : {false, true}) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        auto x = gaussians(size_t(live.tokens) * width, random);
        if (value == kMasked) continue;  // a weight of 0
        x[x.size() - 50] = value;
        const Call call = CallMaker{steps.put(rig)}.softmax(
            rig.put_padded(x, live.bucket * width), {}, {}, rig.room(uint64_t(live.bucket) * width * 4),
            width, {.logarithm = logarithm});
        for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
          rig.run({&call, 1}, *row, live.bucket);
          const auto y = rig.get<float>(call.slot[kY]);
          require_finite(y, 0, x.size() - width, row->name);
          require_not_finite(y, x.size() - width, width, row->name);
        }
        rig.reset();
      }
}

}  // namespace greta::selftest
