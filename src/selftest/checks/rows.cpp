// Checks ops that work value by value or row by row against float64: norm, gate, add, softcap, scale and
// combine. Also checks sum and products, which are exact.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "selftest/checks/checks.h"
#include "selftest/checks/sequences.h"

namespace greta::selftest {

constexpr float kRowEpsilon = 1e-5f;

// Checks y = residual + scale * norm(x), which overwrites the residual, and y rounded where a row gives it.
static void check_norm_add(Rig& rig, const Call& norm, const Values& normed, const Live& live,
                           Random& random) {
  const uint32_t width = norm.width;
  const auto residual = with_outliers(normed.size(), random), next_gain = gaussians(width, random);
  const CallMaker make{norm.slot[kStep]};
  const Call add = make.add({}, norm.slot[kY], {}, width, 0.7f);
  Call convert =
      make.convert({}, rig.room(live.bucket * form_row_bytes(Form::Q8X16, width)), Form::Q8X16, width);
  if (live.tokens % 2) convert.weight = put_vector(rig, next_gain);
  const Values gain = live.tokens % 2 ? to_values(next_gain) : Values{};
  const Values expected = reference::add(to_values(residual), normed, double(add.add.scale));
  for (const size_t count : {2, 3}) {
    Call calls[] = {norm, add, convert};
    for (const KernelRow* row : rig.rows({calls, count}, live.bucket)) {
      calls[1].slot[kX] = calls[1].slot[kY] = calls[2].slot[kX] =
          rig.put_padded(residual, live.bucket * width);
      rig.poison(convert.slot[kY]);
      rig.run({calls, count}, *row, live.bucket);
      auto y = rig.get<float>(calls[1].slot[kY]);
      y.resize(normed.size());
      require_close(y, expected, 1e-12, row->name);
      expect_rounded(*row, y, rig.get<uint8_t>(convert.slot[kY]), width, gain, count == 3 ? live.tokens : 0);
    }
  }
}

// Checks heads that are normalised and multiplied by the activation of a gate, in place as models have them.
static void check_norm_gate(Rig& rig) {
  Random random(11);
  struct Heads {
    uint32_t heads, width;
  };
  for (const Live& live : live_rows(rig))
    for (const Heads& shape : {Heads{5, 128}, {6, 64}, {1, 4}, {9, 12}, {2, 512}, {3, 256}, {4, 80}})
      for (uint32_t activation = 0; activation <= kActivationClamped; ++activation) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        const uint32_t width = shape.heads * shape.width;
        const auto x = with_outliers(size_t(live.tokens) * width, random);
        const auto gate = gaussians(x.size(), random, 4), gain = gaussians(shape.width, random);
        const CallMaker make{steps.put(rig)};
        const Slice from = rig.put_padded(x, live.bucket * width);
        const Slice z = rig.put_padded(gate, live.bucket * width),
                    y = rig.room(uint64_t(live.bucket) * width * 4);
        Call calls[] = {make.norm(put_vector(rig, gain), from, y, kRowEpsilon, shape.heads),
                        make.gate(z, y, y, width, activation)};
        const Values normed = reference::norm(to_values(x), to_values(gain), kRowEpsilon);
        const Values expected = reference::gate(to_values(gate), normed, reference::Activation(activation));
        for (const KernelRow* row : rig.rows(calls, live.bucket)) {
          rig.poison(y);
          rig.run(calls, *row, live.bucket);
          require_close(rig.get<float>(y), expected, 1e-12, row->name);
          if (rig.repeats() && live.bucket == 8) check_repeats(rig, calls, *row, live.bucket, y);
          calls[0].slot[kX] = calls[0].slot[kY] = calls[1].slot[kX2] = calls[1].slot[kY] =
              rig.put_padded(x, live.bucket * width);
          rig.run(calls, *row, live.bucket);
          std::vector<float> in_place = rig.get<float>(calls[0].slot[kX]);
          in_place.resize(x.size());
          require_close(in_place, expected, 1e-12, row->name + std::string(" in place"));
          calls[0].slot[kX] = from;
          calls[0].slot[kY] = calls[1].slot[kX2] = calls[1].slot[kY] = y;
        }
        check_forms(rig, calls, live, width, expected, 1e-12);
        rig.reset();
      }
}

// Checks the residual of two blocks whose results are normalised, and their sum once more.
static void check_norm_pair(Rig& rig) {
  Random random(13);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {4128u, 4u, 64u, 288u}) {
      StepRows steps;
      steps.add_tokens(live.tokens);
      const auto a = with_outliers(size_t(live.tokens) * width, random), b = gaussians(a.size(), random, 3);
      const auto residual = gaussians(a.size(), random, 2), next_gain = gaussians(width, random);
      const auto a_gain = gaussians(width, random), b_gain = gaussians(width, random),
                 gain = gaussians(width, random);
      const CallMaker make{steps.put(rig)};
      const float factor = 0.37f, scale = 0.7f;
      const uint64_t values = uint64_t(live.bucket) * width;
      const Slice from = rig.put_padded(a, values), more = rig.put_padded(b, values);
      const Slice factors = rig.put(std::vector<float>{factor});
      const Call first[] = {make.norm(put_vector(rig, a_gain), from, from, kRowEpsilon),
                            make.norm(put_vector(rig, b_gain), more, more, kRowEpsilon),
                            make.add(from, more, from, width),
                            make.norm(put_vector(rig, gain), from, from, kRowEpsilon)};
      Values sum = reference::add(reference::norm(to_values(a), to_values(a_gain), kRowEpsilon),
                                  reference::norm(to_values(b), to_values(b_gain), kRowEpsilon), 1);
      sum = reference::norm(sum, to_values(gain), kRowEpsilon);
      const Slice rounded = rig.room(live.bucket * form_row_bytes(Form::Q8X16, width));
      for (const bool scales : {false, true})
        for (const bool rounds : {false, true}) {
          std::vector<Call> calls(std::begin(first), std::end(first));
          calls.push_back(make.add({}, from, {}, width, scale));
          if (scales) calls.push_back(make.scale({}, factors, {}, width));
          if (rounds)
            calls.push_back(make.convert({}, rounded, Form::Q8X16, width, put_vector(rig, next_gain)));
          Values expected = reference::add(to_values(residual), sum, double(scale));
          if (scales) expected = reference::scale(expected, {double(factor)}, {}, {}, width);
          for (const KernelRow* row : rig.rows(calls, live.bucket)) {
            const Slice y = rig.put_padded(residual, values);
            for (size_t i = 4; i < calls.size(); ++i) calls[i].slot[kX] = y;
            for (size_t i = 4; i < calls.size() - rounds; ++i) calls[i].slot[kY] = y;
            rig.poison(rounded);
            rig.run(calls, *row, live.bucket);
            std::vector<float> made = rig.get<float>(y);
            made.resize(a.size());
            require_close(made, expected, 1e-12, row->name);
            if (rounds)
              expect_rounded(*row, made, rig.get<uint8_t>(rounded), width, to_values(next_gain), live.tokens);
          }
        }
      rig.reset();
    }
}

void check_norm(Rig& rig) {
  Random random(1);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {4128u, 4097u, 1u, 7u, 64u, 288u, 8256u})
      for (const uint32_t heads : {1u, 3u}) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        const auto x = with_outliers(size_t(live.tokens) * heads * width, random);
        const auto gain = gaussians(width, random);
        const Slice from = rig.put_padded(x, live.bucket * heads * width),
                    y = rig.room(uint64_t(live.bucket) * heads * width * 4);
        const CallMaker make{steps.put(rig)};
        const Call call = make.norm(put_vector(rig, gain), from, y, kRowEpsilon, heads);
        const Values expected = reference::norm(to_values(x), to_values(gain), kRowEpsilon);
        check_rows(rig, call, live.bucket, expected, 1e-12);
        if (heads == 1) {
          check_norm_add(rig, call, expected, live, random);
          check_halves(rig, call, live, width);
        }
        if (live.bucket == 8) check_repeats(rig, call, live.bucket);
        rig.reset();
      }
  check_norm_gate(rig);
  check_norm_pair(rig);
  rig.require_all_run(Op::Norm);
}

void check_norm_strides(Rig& rig) {
  Random random(7);
  const uint32_t width = 40, stride = 56, tokens = 7;
  StepRows steps;
  steps.add_tokens(tokens);
  auto x = gaussians(size_t(tokens) * stride, random);
  const auto gain = gaussians(width, random);
  const CallMaker make{steps.put(rig)};
  Call call = make.norm(put_vector(rig, gain), {}, {}, kRowEpsilon);
  call.x_stride = call.y_stride = stride;
  Values expected = to_values(x);
  for (uint32_t t = 0; t < tokens; ++t) {
    const auto row = expected.begin() + t * stride;
    const Values y = reference::norm({row, row + width}, to_values(gain), kRowEpsilon);
    std::copy(y.begin(), y.end(), row);
  }
  for (const KernelRow* row : rig.rows({&call, 1}, 8)) {
    call.slot[kX] = call.slot[kY] = rig.put_padded(x, 8 * stride);
    rig.run({&call, 1}, *row, 8);
    auto y = rig.get<float>(call.slot[kY]);
    y.resize(x.size());
    require_close(y, expected, 1e-12, row->name);
  }
}

void check_layer_norm(Rig& rig) {
  Random random(8);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {4128u, 4097u, 7u, 64u, 8256u})
      for (const uint32_t heads : {1u, 3u})
        for (const bool gains : {true, false}) {
          StepRows steps;
          steps.add_tokens(live.tokens);
          auto x = gaussians(size_t(live.tokens) * heads * width, random, 2);
          for (float& value : x) value += 1.5f;  // so that the mean counts
          const auto gain = gaussians(heads * width, random), bias = gaussians(heads * width, random);
          const Slice from = rig.put_padded(x, live.bucket * heads * width),
                      y = rig.room(uint64_t(live.bucket) * heads * width * 4);
          Tensor rows;
          Slice added;
          if (gains) {
            rows = put_vector(rig, gain);
            rows.n = heads, rows.depth = width;
            added = put_vector(rig, bias).slice;
          }
          const Call call =
              CallMaker{steps.put(rig)}.layer_norm(rows, added, from, y, {heads, width}, kRowEpsilon);
          const Values none,
              expected = reference::layer_norm(to_values(x), gains ? to_values(gain) : none,
                                               gains ? to_values(bias) : none, width, kRowEpsilon);
          check_rows(rig, call, live.bucket, expected, 1e-12);
          if (live.bucket == 8) check_repeats(rig, call, live.bucket);
          rig.reset();
        }
  rig.require_all_run(Op::LayerNorm);
}

void check_gate(Rig& rig) {
  Random random(3);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {33u, 1u, 768u})
      for (const uint32_t activation :
           {uint32_t(kActivationSilu), uint32_t(kActivationGelu), uint32_t(kActivationClamped)}) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        const size_t count = size_t(live.tokens) * width;
        auto gate = gaussians(count, random, 4);
        gate[0] = 80;  // near the largest exponent that a float's exponential has
        if (count > 2) gate[1] = -200, gate[2] = 0;
        const auto up = gaussians(count, random, 5);
        const Slice gate_slice = rig.put_padded(gate, live.bucket * width),
                    y = rig.room(uint64_t(live.bucket) * width * 4), step = steps.put(rig);
        const Slice up_slice = rig.put_padded(up, live.bucket * width);
        const Call call = CallMaker{step}.gate(gate_slice, up_slice, y, width, activation);
        const auto kind = reference::Activation(activation);
        check_rows(rig, call, live.bucket, reference::gate(to_values(gate), to_values(up), kind), 1e-12);
        check_halves(rig, call, live, width);
        if (live.bucket == 8) check_repeats(rig, call, live.bucket);
        rig.reset();
      }
  rig.require_all_run(Op::Gate);
}

void check_add(Rig& rig) {
  Random random(4);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {33u, 1u, 768u})
      for (const float scale : {-0.37f, 1.f}) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        const auto a = with_outliers(size_t(live.tokens) * width, random), b = gaussians(a.size(), random);
        const Slice a_slice = rig.put_padded(a, live.bucket * width),
                    y = rig.room(uint64_t(live.bucket) * width * 4), step = steps.put(rig);
        const Slice b_slice = rig.put_padded(b, live.bucket * width);
        const Call call = CallMaker{step}.add(a_slice, b_slice, y, width, scale);
        check_rows(rig, call, live.bucket, reference::add(to_values(a), to_values(b), scale), 1e-13);
        if (live.bucket == 8) check_repeats(rig, call, live.bucket);
        rig.reset();
      }
  rig.require_all_run(Op::Add);
}

void check_multiply(Rig& rig) {
  Random random(6);
  struct Heads {
    uint32_t heads, width, x_stride, by_stride;
    bool each_head = false;
  };
  const Xielu xielu = {0.8f, 1.1f, 0.5f};
  const reference::XieluConstants constants = {double(xielu.positive), double(xielu.negative),
                                               double(xielu.linear)};
  for (const Live& live : live_rows(rig))
    for (const Heads& shape :
         {Heads{1, 33, 0, 0}, {3, 20, 41, 0}, {2, 256, 512, 300}, {1, 1, 3, 2}, {4, 24, 0, 0, true}})
      for (uint32_t factor = 0; factor < kFactorCount; ++factor) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        const uint32_t heads = live.tokens * shape.heads, all = live.bucket * shape.heads;
        const uint32_t x_stride = std::max(shape.x_stride, shape.each_head ? 1 : shape.width),
                       by_stride = std::max(shape.by_stride, shape.width);
        auto x = gaussians(size_t(heads) * x_stride, random, 4);
        x[0] = -80;
        for (size_t i = 1; i < x.size(); i += 3) x[i] *= 1e-3f;  // where differences would lose what is small
        const auto by = gaussians(size_t(heads) * by_stride, random);
        Values from, with;
        for (uint32_t h = 0; h < heads; ++h)
          for (uint32_t i = 0; i < shape.width; ++i) {
            from.push_back(double(x[h * x_stride + (shape.each_head ? 0 : i)]));
            with.push_back(double(by[h * by_stride + i]));
          }
        const Slice x_slice = rig.put_padded(x, all * x_stride),
                    y = rig.room(uint64_t(all) * shape.width * 4), step = steps.put(rig);
        const Slice by_slice = rig.put_padded(by, all * by_stride);
        Call call = CallMaker{step}.multiply(x_slice, by_slice, y, {shape.heads, shape.width}, factor);
        call.x_stride = shape.x_stride;
        call.multiply.by_stride = shape.by_stride;
        call.multiply.each_head = shape.each_head;
        call.multiply.xielu = xielu;
        const Values expected = reference::multiply(from, with, factor, constants);
        check_rows(rig, call, live.bucket, expected, 1e-12);
        check_forms(rig, {&call, 1}, live, shape.heads * shape.width, expected, 1e-12);
        if (live.bucket == 8) check_repeats(rig, call, live.bucket);
        rig.reset();
      }
  rig.require_all_run(Op::Multiply);
}

void check_softcap(Rig& rig) {
  Random random(5);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {4096u, 1u, 33u}) {
      StepRows steps;
      for (uint32_t t = 0; t < live.tokens; ++t) steps.add(t, 0, t, true);
      auto x = gaussians(size_t(live.tokens) * width, random, 40);
      for (size_t i = 0; i < x.size(); i += 5) x[i] *= 1e-4f;  // where a naive tanh cancels
      const float cap = width == 33 ? 0.f : 30.f, scale = width == 1 ? 1.f : 0.125f;
      const Slice from = rig.put_padded(x, live.bucket * width),
                  y = rig.room(uint64_t(live.bucket) * width * 4), step = steps.put(rig);
      Call call = CallMaker{step}.softcap(from, y, width, cap, scale);
      call.rows_of = kRowsOutputs;
      check_rows(rig, call, live.bucket, reference::softcap(to_values(x), double(cap), double(scale)), 1e-12);
      const auto dense = rig.get<uint32_t>(call.slot[kY]);
      call.y_stride = width + 3;
      call.slot[kY] = rig.room(uint64_t(live.bucket) * call.y_stride * 4);
      for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
        rig.run({&call, 1}, *row, live.bucket);
        const auto strided = rig.get<uint32_t>(call.slot[kY]);
        for (size_t i = 0; i < strided.size(); ++i) {
          const size_t at = i / call.y_stride, value = i % call.y_stride;
          expect(strided[i] == (value < width ? dense[at * width + value] : ~0u),
                 std::string(row->name) + ": other values if there are gaps between rows");
        }
      }
      call.y_stride = 0;
      if (live.bucket == 8) check_repeats(rig, call, live.bucket);
      rig.reset();
    }
  rig.require_all_run(Op::Softcap);
}

void check_scale(Rig& rig) {
  Random random(12);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {33u, 1u, 768u})
      for (const uint32_t slots : {1u, 3u})
        for (const bool biased : {false, true}) {
          const uint32_t experts = slots > 1 ? 5 : 1;
          StepRows steps;
          for (uint32_t t = 0; t < live.tokens; ++t) steps.add(t, 0, t, true);
          const auto x = with_outliers(size_t(live.tokens) * slots * width, random);
          const auto scales = gaussians(experts, random, 3);
          const auto bias = biased ? gaussians(size_t(experts) * width, random) : std::vector<float>();
          Ids ids;
          for (uint32_t i = 0; slots > 1 && i < live.tokens * slots; ++i)
            ids.push_back(uint32_t(random() % experts));
          Ids padded = ids;
          padded.resize(size_t(live.bucket) * slots, ~0u);
          const CallMaker make{steps.put(rig)};
          Call call = make.scale_each({}, rig.put(scales), biased ? rig.put(bias) : Slice{}, slots * width,
                                      slots > 1 ? rig.put(padded) : Slice{}, {experts, slots});
          const Values expected =
              reference::scale(to_values(x), to_values(scales), to_values(bias), ids, width);
          for (const uint8_t rows_of : {uint8_t(kRowsTokens), uint8_t(kRowsOutputs)})
            for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
              call.rows_of = rows_of;
              call.slot[kX] = call.slot[kY] = rig.put_padded(x, live.bucket * slots * width);
              rig.run({&call, 1}, *row, live.bucket);
              std::vector<float> y = rig.get<float>(call.slot[kY]);
              y.resize(x.size());
              require_close(y, expected, 1e-13, row->name);
            }
          rig.reset();
        }
  rig.require_all_run(Op::Scale);
}

// Checks sums of experts with a residual, which they overwrite, and y rounded where a row gives it.
static void check_combine_add(Rig& rig, const Call& combine, const Values& sum, const Live& live,
                              Random& random) {
  const uint32_t width = combine.width;
  const auto residual = gaussians(sum.size(), random, 2), next_gain = gaussians(width, random);
  const CallMaker make{combine.slot[kStep]};
  const Slice rounded = rig.room(live.bucket * form_row_bytes(Form::Q8X16, width));
  Call calls[] = {combine, make.add({}, combine.slot[kY], {}, width, 0.7f),
                  make.convert({}, rounded, Form::Q8X16, width)};
  if (live.tokens % 2) calls[2].weight = put_vector(rig, next_gain);
  const Values gain = live.tokens % 2 ? to_values(next_gain) : Values{};
  const Values expected = reference::add(to_values(residual), sum, double(calls[1].add.scale));
  for (const size_t count : {2, 3})
    for (const KernelRow* row : rig.rows({calls, count}, live.bucket)) {
      calls[1].slot[kX] = calls[1].slot[kY] = calls[2].slot[kX] =
          rig.put_padded(residual, live.bucket * width);
      rig.poison(rounded);
      rig.run({calls, count}, *row, live.bucket);
      auto y = rig.get<float>(calls[1].slot[kY]);
      y.resize(sum.size());
      require_close(y, expected, 1e-12, row->name);
      expect_rounded(*row, y, rig.get<uint8_t>(rounded), width, gain, count == 3 ? live.tokens : 0);
    }
}

void check_combine(Rig& rig) {
  Random random(10);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {33u, 1u, 768u})
      for (const uint32_t used : {8u, 2u, 1u}) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        const auto x = gaussians(size_t(live.tokens) * used * width, random);
        const auto weights = gaussians(size_t(live.tokens) * used, random);
        const Slice from = rig.put_padded(x, live.bucket * used * width),
                    y = rig.room(uint64_t(live.bucket) * width * 4), step = steps.put(rig);
        const Slice weight_slice = rig.put_padded(weights, live.bucket * used);
        const Call call = CallMaker{step}.combine(from, weight_slice, y, width, used);
        const Values expected = reference::combine(to_values(x), to_values(weights), width, used);
        check_rows(rig, call, live.bucket, expected, 1e-11);
        check_combine_add(rig, call, expected, live, random);
        if (live.bucket == 8) check_repeats(rig, call, live.bucket);
        rig.reset();
      }
  rig.require_all_run(Op::Combine);
}

void check_sum(Rig& rig) {
  Random random(8);
  for (const uint32_t width : {1008u, 16u, 4096u, 20000u}) {
    const uint32_t pieces = 5;
    Ids x, expected;
    for (uint32_t i = 0; i < pieces; ++i) {
      uint32_t sum = 0;
      for (uint32_t j = 0; j < width; ++j) x.push_back(uint32_t(random())), sum += x.back();
      expected.push_back(sum);
    }
    const Slice from = rig.put(x);
    const Call call = CallMaker{}.sum(from, rig.room(pieces * sizeof(uint32_t)), width);
    for (const KernelRow* row : rig.rows({&call, 1}, 1)) {
      rig.poison(call.slot[kY]);
      rig.run({&call, 1}, *row, 1);
      expect(rig.get<uint32_t>(call.slot[kY]) == expected, std::string(row->name) + ": wrong sums");
    }
    rig.reset();
  }
  rig.require_all_run(Op::Sum);
}

// Operands of 1 count the products. Other operands show whether the right ones are multiplied.
void check_products(Rig& rig) {
  Random random(9);
  constexpr uint32_t kMost = (64 + 32) * kProductsDepth, kGroups = 3, kStep = 64 * 32 * kProductsDepth;
  for (const uint32_t width : {35 * kStep, kStep, 5u << 10})
    for (const bool ones : {false, true}) {
      Ids values(kMost, 1);
      if (!ones)
        for (uint32_t& value : values) value = uint32_t(random() % 8);
      const Slice operands = rig.put(reference::half_bytes(Values(values.begin(), values.end())));
      const Call call = CallMaker{}.products(operands, rig.room(kGroups * sizeof(uint32_t)), width);
      expect(op_info(Op::Products).cost({&call, 1}, 1, 0).flops == 2 * uint64_t(width) * kGroups,
             "products: other flops");
      for (const KernelRow* row : rig.rows({&call, 1}, 1)) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < kProductsDepth; ++k) {
          uint32_t w = 0, x = 0;
          for (uint32_t m = 0; m < row->tile; ++m) w += values[m * kProductsDepth + k];
          for (uint32_t n = 0; n < row->tile_tokens; ++n) x += values[(row->tile + n) * kProductsDepth + k];
          sum += w * x;
        }
        const uint32_t expected = width / (row->tile * row->tile_tokens * kProductsDepth) * sum;
        expect(!ones || expected == width, "products: the wrong number of products");
        rig.poison(call.slot[kY]);
        rig.run({&call, 1}, *row, 1);
        expect(rig.get<uint32_t>(call.slot[kY]) == Ids(kGroups, expected),
               std::string(row->name) + ": wrong sums");
      }
      rig.reset();
    }
  rig.require_all_run(Op::Products);
}

}  // namespace greta::selftest
