// Operands of matmul and of the sequences around it, and the expected results in float64.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "selftest/checks/rows.h"

namespace greta::selftest {

struct MatmulShape {
  uint32_t n, depth, bucket, live;
  bool outliers;
  Scales scales;
};

// In sequences with rope or kv_write a head has kHeadWidth values, of which kRopeWidth are rotated.
constexpr uint32_t kHeadWidth = 16, kRopeWidth = 12;
constexpr float kEpsilon = 1e-5f;
constexpr float kFactor = 0.37f;  // of the residual, in sequences with scale

// One set of operands for all sequences. Half of the shapes have a bias, and half rotate by halves.
class MatmulCase {
 public:
  MatmulCase(Rig& rig, const Stored& stored, const MatmulShape& shape, Random& random,
             uint32_t cache_type = 0)
      : rig_(rig), shape_(shape), cache_type_(cache_type) {
    steps_.add_tokens(shape.live);
    const size_t values = size_t(shape.live) * shape.depth;
    x_values_ = shape.outliers ? with_outliers(values, random) : gaussians(values, random);
    gain_values_ = gaussians(shape.depth, random, 0.1);
    for (float& gain : gain_values_) gain += 1;  // so that the norm's result is still Gaussian
    residual_values_ = gaussians(size_t(shape.live) * shape.n, random, 3);
    gate_matrix_ = random_matrix(stored.type, shape.n, shape.depth, 1, shape.scales, random);
    up_matrix_ = random_matrix(stored.type, shape.n, shape.depth, 1, shape.scales, random);
    if (shape.depth % 512) bias_values_ = gaussians(shape.n, random, 2);
    std::vector<float> table;
    for (uint32_t i = 0; i < shape.bucket * kRopeWidth / 2; ++i) {
      table.push_back(float(std::cos(i * 0.37)));
      table.push_back(float(std::sin(i * 0.37)));
    }
    table_values_ = to_values(table);
    step_ = steps_.put(rig);
    x_ = rig.put_padded(x_values_, size_t(shape.bucket) * shape.depth);
    residual_ = rig.put_padded(residual_values_, size_t(shape.bucket) * shape.n);
    gain_ = put_vector(rig, gain_values_);
    if (!bias_values_.empty()) bias_ = rig.put(bias_values_);
    weight_ = put_matrix(rig, gate_matrix_, stored.layout);
    weight2_ = put_matrix(rig, up_matrix_, stored.layout);
    table_ = rig.put(table);
    page_bytes_ = uint32_t(shape.n * kPageTokens * (cache_type ? 2 : 4));
    pool_ = rig.room(uint64_t(page_bytes_) * steps_.pool_pages());
    next_gain_values_ = gaussians(shape.n, random);
    next_gain_ = put_vector(rig, next_gain_values_);
    post_gain_values_ = gaussians(shape.n, random);
    post_gain_ = put_vector(rig, post_gain_values_);
    factor_ = rig.put(std::vector<float>{kFactor});
    counters_ = rig.put(std::vector<uint32_t>(shape.bucket));
    rounded_ = rig.room(shape.bucket * form_row_bytes(Form::Q8X16, shape.n));
    for (Slice* slice : {&normed_, &y_, &y2_, &out_})
      *slice = rig.room(size_t(shape.bucket) * std::max(shape.n, shape.depth) * 4);
  }

  // Puts a value into x of the last live token, and into the gain of a norm before the product. Sequences
  // with a norm keep their x.
  void spoil(float value) {
    spoiled_x_values_ = x_values_;
    spoiled_x_values_[x_values_.size() - shape_.depth / 2 - 1] = value;
    gain_values_[shape_.depth / 3] = value;
    spoiled_x_ = rig_.put_padded(spoiled_x_values_, size_t(shape_.bucket) * shape_.depth);
    gain_ = put_vector(rig_, gain_values_);
  }
  // Fails unless the result of a spoiled case is not finite for the last live token, and finite for others. A
  // spoiled gain is that of all tokens.
  void require_spoiled(const std::string& sequence, const std::string& what) {
    const std::vector<float> y = output(sequence);
    const bool norms = sequence.starts_with("norm");
    const size_t first = norms ? 0 : size_t(shape_.live - 1) * shape_.n;
    require_finite(y, 0, first, what);
    require_not_finite(y, first, size_t(shape_.live) * shape_.n - first, what);
    if (!rounds(sequence)) return;
    std::vector<uint8_t> rows = rig_.get<uint8_t>(rounded_);
    rows.resize(shape_.live * form_row_bytes(Form::Q8X16, shape_.n));
    const Values decoded = reference::decode_q8x16(rows, shape_.n);
    require_not_finite({decoded.begin(), decoded.end()}, first, decoded.size() - first, what + ", rounded");
  }

  // The calls of a sequence such as "norm+matmul+rope". Intermediate results lie in normed_, y_ and y2_.
  std::vector<Call> calls(const std::string& sequence) {
    const CallMaker make{step_};
    const HeadsShape heads{shape_.n / kHeadWidth, kHeadWidth};
    const bool norms = sequence.starts_with("norm");
    const Slice& x = norms ? normed_ : spoiled_x_values_.empty() ? x_ : spoiled_x_;
    std::vector<Call> list;
    if (norms) list.push_back(make.norm(gain_, x_, normed_, kEpsilon));
    list.push_back(make.matmul(weight_, x, y_, gates(sequence) ? Slice{} : bias_));
    if (gates(sequence)) {
      list.push_back(make.matmul(weight2_, x, y2_));
      list.push_back(make.gate(y_, y2_, out_, shape_.n, 0));
    }
    if (sequence.find("rope") != std::string::npos)
      list.push_back(make.rope(y_, heads, {table_, kRopeWidth, rope_halves()}));
    if (sequence.find("kv_write") != std::string::npos)
      list.push_back(make.kv_write(y_, heads, {pool_, page_bytes_, cache_type_}));
    if (norms_y(sequence)) {
      list.back().slot[kCounters] = counters_;
      list.push_back(make.norm(post_gain_, y_, y_, kEpsilon));
    }
    if (adds(sequence)) list.push_back(make.add(residual_, y_, out_, shape_.n, scale_of(sequence)));
    if (scales(sequence)) list.push_back(make.scale(out_, factor_, {}, shape_.n));
    if (rounds(sequence)) list.push_back(make.convert(out_, rounded_, Form::Q8X16, shape_.n, next_gain_));
    return list;
  }

  // Where the sequence leaves its result. The caller poisons it before a run.
  Slice& result(const std::string& sequence) {
    if (adds(sequence) || gates(sequence)) return out_;
    return sequence.ends_with("kv_write") ? pool_ : y_;
  }

  // The result of a kernel row that reads x in `form`: q8 formats multiply in int8, and f16 rounds x and
  // weights to halves.
  Values expected(const std::string& sequence, Form form) const {
    const Values h = input(sequence, form);
    const Values& weight = gate_matrix_.values;
    Values y = reference::matmul(form == Form::F16 ? reference::halves(weight) : weight, h, shape_.depth);
    if (!gates(sequence) && !bias_values_.empty())
      for (size_t i = 0; i < y.size(); ++i) y[i] += double(bias_values_[i % shape_.n]);
    if (gates(sequence))
      y = reference::gate(y, reference::matmul(up_matrix_.values, h, shape_.depth),
                          reference::Activation::Silu);
    if (norms_y(sequence)) y = reference::norm(y, to_values(post_gain_values_), kEpsilon);
    if (adds(sequence)) y = reference::add(to_values(residual_values_), y, double(scale_of(sequence)));
    if (scales(sequence)) y = reference::scale(y, {double(kFactor)}, {}, {}, shape_.n);
    if (sequence.find("rope") != std::string::npos) {
      Ids positions;
      for (const StepRow& row : steps_.rows) positions.push_back(row.position);
      y = reference::rope(y, positions, table_values_,
                          {shape_.n / kHeadWidth, kHeadWidth, kRopeWidth, rope_halves()});
    }
    return y;
  }

  // How far the sums cancel: the sum of the squares of all products, over that of the results.
  double cancellation(const std::string& sequence, Form form) const {
    Values weight = gate_matrix_.values, h = input(sequence, form), y = expected(sequence, form);
    for (Values* values : {&weight, &h, &y})
      for (double& value : *values) value *= value;
    const Values products = reference::matmul(weight, h, shape_.depth);
    return std::accumulate(products.begin(), products.end(), 0.0) / std::accumulate(y.begin(), y.end(), 0.0);
  }

  // Makes the matmuls of a sequence, or the norm before them, read x in this form.
  void give_form(std::vector<Call>* calls, Form form) {
    const bool norms = calls->front().op == Op::Norm;
    const Values x = to_values(x_of(norms));
    std::vector<uint8_t> all = form == Form::Q8      ? q8_rows(x)
                               : form == Form::Q8X16 ? q8x16_rows(norms)
                                                     : reference::half_bytes(x);
    all.resize(size_t(shape_.bucket) * form_row_bytes(form, shape_.depth), 0xff);
    const Slice slice = rig_.put(all);
    if (norms) calls->front().slot[kX] = slice;
    for (Call& call : *calls) {
      if (call.op != Op::Matmul) continue;
      if (!norms) call.slot[kX] = slice;
      call.form = form;
    }
  }

  // For a sequence that also gives y in the format q8x16: what is wrong with it, or "".
  std::string wrong_form(const std::string& sequence) {
    const std::vector<uint8_t> rows = rig_.get<uint8_t>(rounded_);
    std::vector<float> y = output(sequence);
    y.resize(size_t(shape_.live) * shape_.n);
    for (uint32_t t = 0; t < shape_.live; ++t) {
      const auto from = y.begin() + ptrdiff_t(size_t(t) * shape_.n);
      const std::string wrong =
          reference::wrong_q8x16(&rows[t * form_row_bytes(Form::Q8X16, shape_.n)],
                                 {from, from + ptrdiff_t(shape_.n)}, to_values(next_gain_values_));
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  // Returns true if a counter is not 0. All are 0 before a sequence and must be so after it.
  bool counters_are_left() {
    const std::vector<uint32_t> counters = rig_.get<uint32_t>(counters_);
    return std::ranges::any_of(counters, [](uint32_t counter) { return counter != 0; });
  }

  // The result as [t][n] floats followed by poison. A result in pages of the cache is gathered from them.
  std::vector<float> output(const std::string& sequence) {
    const Slice& slice = result(sequence);
    if (!sequence.ends_with("kv_write")) {
      std::vector<float> y = rig_.get<float>(slice);
      y.resize(size_t(shape_.bucket) * shape_.n);
      return y;
    }
    const std::vector<uint8_t> pool = rig_.get<uint8_t>(slice);
    const uint32_t bytes = cache_type_ ? 2 : 4;
    std::vector<float> y;
    StepRows pages = steps_;
    for (const StepRow& row : steps_.rows)
      for (uint32_t n = 0; n < shape_.n; ++n) {
        const uint64_t head = uint64_t(n / kHeadWidth) * kPageTokens + row.position % kPageTokens;
        const uint64_t at = uint64_t(pages.page(row.sequence, row.position)) * page_bytes_ +
                            (head * kHeadWidth + n % kHeadWidth) * bytes;
        float value;
        memcpy(&value, &pool[at], 4 * (bytes == 4));
        y.push_back(bytes == 4 ? value : reference::half_at(&pool[at]));
      }
    return y;
  }

 private:
  static bool gates(const std::string& sequence) { return sequence.find("gate") != std::string::npos; }
  static bool adds(const std::string& sequence) { return sequence.find("add") != std::string::npos; }
  static bool scales(const std::string& sequence) { return sequence.find("scale") != std::string::npos; }
  static bool norms_y(const std::string& sequence) {
    return sequence.find("matmul+norm") != std::string::npos;
  }
  static float scale_of(const std::string& sequence) { return norms_y(sequence) ? 0.7f : 1; }
  bool rope_halves() const { return shape_.n / 32 % 2; }
  static bool rounds(const std::string& sequence) { return sequence.ends_with("convert"); }

  const std::vector<float>& x_of(bool norms) const {
    return norms || spoiled_x_values_.empty() ? x_values_ : spoiled_x_values_;
  }

  // What the matmul of a sequence reads. In the format q8x16 x was multiplied by a norm's gain, but not by
  // its factor, so that is done here.
  Values input(const std::string& sequence, Form form) const {
    Values h = to_values(x_values_);
    if (form == Form::Q8X16) {
      const bool norms = sequence.starts_with("norm");
      const Values factors = reference::norm(h, Values(shape_.depth, 1), kEpsilon);
      Values rounded = reference::decode_q8x16(q8x16_rows(norms), shape_.depth);
      for (size_t i = 0; i < h.size() && norms; ++i) rounded[i] *= h[i] == 0 ? 0 : factors[i] / h[i];
      return rounded;
    }
    if (sequence.starts_with("norm")) h = reference::norm(h, to_values(gain_values_), kEpsilon);
    if (form == Form::Q8) h = reference::decode_q8(q8_rows(h), shape_.depth);
    if (form == Form::F16) h = reference::halves(h);
    return h;
  }
  std::vector<uint8_t> q8_rows(const Values& x) const {
    std::vector<uint8_t> all;
    for (size_t at = 0; at < x.size(); at += shape_.depth) {
      const std::vector<uint8_t> row =
          reference::convert_q8({x.begin() + ptrdiff_t(at), x.begin() + ptrdiff_t(at + shape_.depth)});
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }
  std::vector<uint8_t> q8x16_rows(bool norms) const {
    std::vector<uint8_t> all;
    for (auto x = x_of(norms).begin(); x != x_of(norms).end(); x += shape_.depth) {
      const std::vector<uint8_t> row =
          reference::convert_q8x16({x, x + shape_.depth}, norms ? to_values(gain_values_) : Values{});
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }
  Rig& rig_;
  MatmulShape shape_;
  uint32_t cache_type_, page_bytes_;
  StepRows steps_;
  std::vector<float> x_values_, spoiled_x_values_, gain_values_, residual_values_, bias_values_,
      next_gain_values_, post_gain_values_;
  Matrix gate_matrix_, up_matrix_;
  Values table_values_;
  Slice step_, x_, spoiled_x_, residual_, bias_, table_, pool_, normed_, y_, y2_, out_, rounded_, counters_,
      factor_;
  Tensor gain_, weight_, weight2_, next_gain_, post_gain_;
};

// Runs the shape through every row of every sequence whose name contains `part`, and compares each result.
void check_matmul_shape(Rig& rig, const Stored& stored, const MatmulShape& shape, Random& random,
                        uint32_t cache_type = 0, const char* part = "");

}  // namespace greta::selftest
