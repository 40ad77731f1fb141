// Checks route and matmul_expert against float64.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "selftest/checks/checks.h"

namespace greta::selftest {

namespace {

// Moves rows of `width` values `stride` apart, and fills the gaps with `gap`.
std::vector<float> spread(const std::vector<float>& x, uint32_t width, uint32_t stride, float gap) {
  std::vector<float> out(x.size() / width * stride, gap);
  for (size_t i = 0; i < x.size(); ++i) out[i / width * stride + i % width] = x[i];
  return out;
}

template <class T>
std::vector<T> gathered(const std::vector<T>& y, uint32_t width, uint32_t stride) {
  std::vector<T> out;
  for (size_t i = 0; i < y.size(); ++i)
    if (i % stride < width) out.push_back(y[i]);
  return out;
}

Values rounded_to_q8(const std::vector<float>& x, uint32_t depth) {
  if (depth % 32) return to_values(x);
  std::vector<uint8_t> all;
  for (size_t at = 0; at < x.size(); at += depth) {
    const auto row = reference::convert_q8({x.begin() + ptrdiff_t(at), x.begin() + ptrdiff_t(at + depth)});
    all.insert(all.end(), row.begin(), row.end());
  }
  return reference::decode_q8(all, depth);
}

}  // namespace

void check_route(Rig& rig) {
  Random random(1);
  struct Shape {
    uint32_t experts, used, groups, groups_used;
    bool sigmoid, bias;
  };
  for (const Live& live : live_rows(rig))
    for (const Shape& shape :
         {Shape{256, 8, 8, 4, true, true}, Shape{1, 1, 1, 1, false, false}, Shape{8, 2, 1, 1, false, false},
          Shape{60, 60, 1, 1, false, false}, Shape{512, 10, 1, 1, true, false},
          Shape{64, 6, 8, 3, false, false}, Shape{32, 4, 32, 5, true, true}, Shape{16, 4, 1, 1, true, true}})
      for (const uint32_t normalise : {1u, 0u}) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        auto logits = gaussians(size_t(live.tokens) * shape.experts, random, 3);
        if (shape.experts > 4) logits[4] = logits[1];  // a tie: the lower index first
        const auto bias = shape.bias ? gaussians(shape.experts, random, 0.5) : std::vector<float>();
        const Slice x = rig.put_padded(logits, live.bucket * shape.experts), step = steps.put(rig);
        const Slice ids_slice = rig.room(uint64_t(live.bucket) * shape.used * 4),
                    weights = rig.room(ids_slice.bytes);
        const Call::Route choice = {normalise, uint32_t(shape.sigmoid ? kGatingSigmoid : kGatingSoftmax),
                                    shape.groups, shape.groups_used, normalise ? 1.0f : 2.5f};
        const Call call = CallMaker{step}.route(x, ids_slice, weights, {shape.experts, shape.used}, choice,
                                                shape.bias ? rig.put(bias) : Slice{});
        const auto expected = reference::route(to_values(logits), to_values(bias),
                                               {shape.experts, shape.used, shape.groups, shape.groups_used,
                                                normalise == 1, shape.sigmoid, double(choice.scale)});
        for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
          rig.poison(call.slot[kY]);
          rig.poison(call.slot[kY2]);
          rig.run({&call, 1}, *row, live.bucket);
          Ids ids = rig.get<uint32_t>(call.slot[kY]);
          ids.resize(expected.ids.size());
          expect(ids == expected.ids, std::string(row->name) + ": chose other experts");
          require_close(rig.get<float>(call.slot[kY2]), expected.weights, 1e-12, row->name);
          if (live.bucket != 8 || !rig.repeats() || shape.experts != 256) continue;
          for (const Slice& y : {call.slot[kY], call.slot[kY2]})
            check_repeats(rig, {&call, 1}, *row, live.bucket, y);
        }
        rig.reset();
      }
}

namespace {

struct RouterShape {
  uint32_t experts, used, depth;
  bool bias;
};

void check_router(Rig& rig, const RouterShape& shape, bool norms, const Live& live, Random& random) {
  StepRows steps;
  steps.add_tokens(live.tokens);
  const Slice step = steps.put(rig);
  const auto x = gaussians(size_t(live.tokens) * shape.depth, random), gain = gaussians(shape.depth, random);
  const auto bias = shape.bias ? gaussians(shape.experts, random) : std::vector<float>();
  const Matrix matrix = random_matrix(QuantType::f32, shape.experts, shape.depth, 1, Scales::Plain, random);
  const Slice x_slice = rig.put_padded(x, live.bucket * shape.depth),
              normed = norms ? rig.room(x_slice.bytes) : x_slice,
              logits = rig.room(uint64_t(live.bucket) * shape.experts * 4);
  const CallMaker make{step, rig.put(std::vector<uint32_t>(kCounterCount))};
  const Call norm = make.norm(put_vector(rig, gain), x_slice, normed, 1e-5f);
  const Call matmul = make.matmul(put_matrix(rig, matrix, Layout::Gguf), normed, logits,
                                  shape.bias ? rig.put(bias) : Slice{});
  const uint64_t chosen = uint64_t(live.bucket) * shape.used;
  const Slice ids = rig.room(chosen * 4), weights = rig.room(chosen * 4);
  const Call route = make.route(logits, ids, weights, {shape.experts, shape.used}, {.normalise = 1});
  std::vector<Call> calls = {matmul, route};
  if (norms) calls.insert(calls.begin(), norm);
  const Values of_x =
      norms ? reference::norm(to_values(x), to_values(gain), norm.norm.epsilon) : to_values(x);
  Values right = reference::matmul(matrix.values, of_x, shape.depth);
  for (size_t i = 0; i < right.size() && shape.bias; ++i) right[i] += double(bias[i % shape.experts]);
  const auto expected = reference::route(right, {}, {shape.experts, shape.used, 1, 1, true, false, 1});
  for (const KernelRow* row : rig.rows(calls, live.bucket)) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      for (const Slice& slice : {logits, route.slot[kY], route.slot[kY2]}) rig.poison(slice);
      rig.run(calls, *row, live.bucket);
      auto logits_made = rig.get<float>(logits), weights_made = rig.get<float>(route.slot[kY2]);
      Ids made = rig.get<uint32_t>(route.slot[kY]);
      logits_made.resize(right.size());
      made.resize(expected.ids.size());
      weights_made.resize(expected.weights.size());
      require_close(logits_made, right, 1e-11, row->name);
      expect(made == expected.ids, std::string(row->name) + ": chose other experts");
      require_close(weights_made, expected.weights, 1e-10, row->name);
      for (const uint32_t counter : rig.get<uint32_t>(route.slot[kCounters]))
        expect(counter == 0, std::string(row->name) + " leaves a counter");
    }
    if (rig.repeats() && shape.depth == 300)
      for (const Slice& y : {logits, route.slot[kY], route.slot[kY2]})
        check_repeats(rig, calls, *row, live.bucket, y);
  }
  rig.reset();
}

}  // namespace

// Checks route fused with the router's matmul, without and with the norm before it.
void check_routers(Rig& rig) {
  Random random(5);
  for (const RouterShape& shape : {RouterShape{128, 8, 300, true}, RouterShape{9, 2, 64, false},
                                   RouterShape{6, 6, 2048, true}, RouterShape{300, 10, 64, false}})
    for (const bool norms : {false, true})
      for (const Live& live : {Live{1, 1}, Live{8, 5}, Live{32, 17}})
        check_router(rig, shape, norms, live, random);
  rig.require_all_run(Op::Route);
}

namespace {

// Operands of a product with the matrices of chosen experts, and its results for each activation format. If
// `strided`, there are gaps between inputs and between outputs, and a bias.
class ExpertCase {
 public:
  // Which experts the slots choose. Few: two of 130, so that 128 experts have no slot.
  enum class Choice { Any, One, Few };
  struct Shape {
    uint32_t n;
    bool shared_x;
    Choice choice;
  };
  ExpertCase(Rig& rig, const Stored& stored, const Live& live, const Shape& shape, Random& random)
      : rig_(rig), live_(live), n_(shape.n), x_slots_(shape.shared_x ? 1 : kUsed), strided_(n_ == 31) {
    const uint32_t n = n_, experts = shape.choice == Choice::Few ? 130 : 5;
    StepRows steps;
    steps.add_tokens(live.tokens);
    depth_ = quant_info(stored.type).block == 1 ? 70 : 256;
    x_stride_ = depth_ + (!strided_ ? 0 : depth_ % 32 ? 3 : 32);
    y_stride_ = n + (strided_ ? 5 : 0);
    matrix_ = random_matrix(stored.type, n, depth_, experts, Scales::Plain, random);
    x_ = with_outliers(size_t(live.tokens) * x_slots_ * depth_, random);
    if (strided_) bias_ = gaussians(experts * n, random, 3);
    for (uint32_t i = 0; i < live.tokens * kUsed; ++i)
      ids_.push_back(shape.choice == Choice::One   ? 3
                     : shape.choice == Choice::Few ? uint32_t(random() % 2) * (experts - 1)
                                                   : uint32_t(random() % experts));
    exact_ = expected(to_values(x_), false);
    rounded_ = expected(rounded_to_q8(x_, depth_), false);
    halves_ = expected(reference::halves(to_values(x_)), true);
    if (x_width() % 32 == 0) {
      const Values decoded = reference::decode_q8x16(form_of_x(Form::Q8X16, live.tokens), x_width());
      in_16_ = expected(gathered(decoded, depth_, x_stride_), false);
    }
    const Slice x = rig.put_padded(spread(x_, depth_, x_stride_, NAN), live.bucket * x_width()),
                y = rig.room(uint64_t(live.bucket) * kUsed * y_stride_ * 4), step = steps.put(rig);
    Ids padded = ids_;
    padded.resize(size_t(live.bucket) * kUsed, ~0u);
    call_ = CallMaker{step}.matmul_each(put_matrix(rig, matrix_, stored.layout), x, rig.put(padded), y, kUsed,
                                        x_slots_);
    call_.x_stride = strided_ ? x_stride_ : 0;
    call_.y_stride = strided_ ? y_stride_ : 0;
    if (strided_) call_.slot[kBias] = rig.put(bias_);
  }

  void check() {
    for (const KernelRow* row : rig_.rows({&call_, 1}, live_.bucket)) {
      Call call = call_;
      if (row->form != Form::F32) {
        call.form = row->form;
        call.slot[kX] = rig_.put(form_of_x(row->form, live_.bucket));
      }
      rig_.poison(call.slot[kY]);
      rig_.run({&call, 1}, *row, live_.bucket);
      // Vector rows of block types round x to the q8 format, as in matmul.cpp.
      const bool rounds = row->rank > 0 && quant_info(row->type).block > 1;
      const Values& right = row->form == Form::Q8X16 ? in_16_
                            : row->form == Form::F16 ? halves_
                            : rounds                 ? rounded_
                                                     : exact_;
      const double limit = row->form == Form::F16 ? 1e-9 : rounds ? 1e-10 : 1e-11;
      require_close(gathered(rig_.get<float>(call.slot[kY]), n_, y_stride_), right,
                    (n_ == 1 ? 10 : 1) * limit, row->name);
      const auto whole = rig_.get<uint32_t>(call.slot[kY]);
      rig_.poison(call.slot[kY]);
      run_in_parts(rig_, call, 2, *row, live_.bucket);
      expect(rig_.get<uint32_t>(call.slot[kY]) == whole,
             std::string(row->name) + ": other bits when the weight is in parts");
    }
  }

  // Fails unless results of the last token tell that its last x is not finite.
  void check_spoiled(float value) {
    x_[x_.size() - depth_ / 2 - 1] = value;
    const uint32_t slots = x_slots_ == 1 ? kUsed : 1;  // those that read it
    const size_t last = (size_t(live_.tokens) * kUsed - slots) * n_;
    for (const KernelRow* row : rig_.rows({&call_, 1}, live_.bucket)) {
      Call call = call_;
      call.form = row->form;
      call.slot[kX] = row->form == Form::F32
                          ? rig_.put_padded(spread(x_, depth_, x_stride_, 0), live_.bucket * x_width())
                          : rig_.put(form_of_x(row->form, live_.bucket));
      rig_.poison(call.slot[kY]);
      rig_.run({&call, 1}, *row, live_.bucket);
      const std::vector<float> y = gathered(rig_.get<float>(call.slot[kY]), n_, y_stride_);
      const std::string what = std::string(row->name) + " of what is not finite";
      require_finite(y, 0, last, what);
      require_not_finite(y, last, slots * n_, what);
    }
  }

 private:
  static constexpr uint32_t kUsed = 3;

  uint32_t x_width() const { return x_slots_ * x_stride_; }
  Values expected(const Values& of_x, bool halves) const {
    return reference::matmul_expert(halves ? reference::halves(matrix_.values) : matrix_.values,
                                    to_values(bias_), of_x, ids_, {n_, depth_, kUsed, x_slots_});
  }
  // The gaps between inputs hold huge values, which show up in the result if they are read.
  std::vector<uint8_t> form_of_x(Form form, uint32_t rows) const {
    const std::vector<float> x = spread(x_, depth_, x_stride_, 1e30f);
    std::vector<uint8_t> bytes =
        form == Form::Q8X16 ? q8x16_rows(x, x_width(), {}, rows) : reference::half_bytes(to_values(x));
    bytes.resize(size_t(rows) * form_row_bytes(form, x_width()), 0xff);
    return bytes;
  }

  Rig& rig_;
  Live live_;
  uint32_t n_, x_slots_;
  bool strided_;
  uint32_t depth_ = 0, x_stride_ = 0, y_stride_ = 0;
  Matrix matrix_;
  std::vector<float> x_, bias_;
  Ids ids_;
  Values exact_, rounded_, halves_, in_16_;
  Call call_;
};

}  // namespace

void check_matmul_expert(Rig& rig) {
  Random random(2);
  uint32_t type = 0;  // each third type has one shape for an unusual choice of experts
  for (const Stored& stored : stored_types(rig, Op::MatmulExpert)) {
    const auto unusual = ExpertCase::Choice(type++ % 3);
    for (const Live& live : live_rows(rig, 4))
      for (const uint32_t n : {31u, 1u, live.bucket == 32 ? 144u : 64u})
        for (const bool shared_x : {true, false}) {
          if (!rig.left(Op::MatmulExpert, stored.type, stored.layout, live.bucket)) continue;
          const bool is_unusual = live.bucket == 32 && n == 31 && shared_x;
          const auto choice = is_unusual ? unusual : ExpertCase::Choice::Any;
          ExpertCase c(rig, stored, live, {n, shared_x, choice}, random);
          c.check();
          for (const float value : kNotFinite) c.check_spoiled(value);
          rig.reset();
        }
  }
}

void check_matmul_heads(Rig& rig) {
  Random random(3);
  const uint32_t heads = 6, n = 24, depth = 40, tokens = 5;
  StepRows steps;
  steps.add_tokens(tokens);
  const Matrix matrix = random_matrix(QuantType::f32, n, depth, heads, Scales::Plain, random);
  const auto x = gaussians(size_t(tokens) * heads * depth, random);
  Ids ids;
  for (uint32_t i = 0; i < tokens * heads; ++i) ids.push_back(i % heads);
  const Slice from = rig.put_padded(x, 8 * heads * depth), y = rig.room(8ull * heads * n * 4),
              step = steps.put(rig);
  const Call call =
      CallMaker{step}.matmul_each(put_matrix(rig, matrix, Layout::Gguf), from, {}, y, heads, heads);
  check_rows(rig, call, 8,
             reference::matmul_expert(matrix.values, {}, to_values(x), ids, {n, depth, heads, heads}), 1e-11);
}

}  // namespace greta::selftest
