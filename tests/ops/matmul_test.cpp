// matmul and the sequences around it: every row of the kernel table against float64, over odd shapes.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <cstring>

#include "support/op_rig.h"

namespace greta::test {

using Catch::Generators::from_range;
namespace {

struct Shape {
  uint32_t n, depth, bucket, live;
  bool outliers;
  Scales scales;
};

// Heads of a sequence that rotates or stores: width, and how much of it is rotated.
constexpr uint32_t kHeadWidth = 16, kRopeWidth = 12;
constexpr float kEpsilon = 1e-5f;

// Limits of NMSE. In float32 a lane adds depth / 16 products and rounds each time with a variance of
// 2^-48 / 3 of its sum: depth / 32 * 1.2e-15 in all, 4e-13 at depth 11008; a norm and a gate around it,
// and weights whose sums cancel, take some times that. Rounding x to 127 steps of the largest of 32
// Gaussian values (2.1 sigma) is (2.1 / 127)^2 / 12 = 2.3e-5 of it; a product of two such sums has twice
// that, and a few large ones decide it. After a norm inside the row a value on the edge may round the
// other way: (2.1 / 127)^2 / depth each, and with an outlier of 16 sigma, (16 / 127)^2 / depth.
constexpr double kFloatLimit = 1e-11, kRoundedLimit = 1e-10, kFlipLimit = 5e-6, kOutlierFlipLimit = 2e-4;
constexpr double kMethodLimit = 5e-5, kGateMethodLimit = 2e-4;

// One set of operands for all sequences, and what each should give. Half of the shapes have a bias.
class MatmulCase {
 public:
  MatmulCase(OpRig& rig, const Stored& stored, const Shape& shape, Random& random, uint32_t cache_type = 0)
      : rig_(rig), shape_(shape), cache_type_(cache_type) {
    steps_.add_tokens(shape.live);
    const size_t values = size_t(shape.live) * shape.depth;
    x_values_ = shape.outliers ? with_outliers(values, random) : gaussians(values, random);
    gain_values_ = gaussians(shape.depth, random, 0.1);
    for (float& gain : gain_values_) gain += 1;  // what follows the norm is still Gaussian
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
    for (Slice* slice : {&normed_, &y_, &y2_, &out_})
      *slice = rig.room(size_t(shape.bucket) * std::max(shape.n, shape.depth) * 4);
  }

  // The calls of a sequence like "norm+matmul+rope"; intermediate results go through normed, y and y2.
  std::vector<Call> calls(const std::string& sequence) {
    std::vector<Call> list;
    const bool norms = sequence.starts_with("norm");
    if (norms) list.push_back(norm());
    list.push_back(matmul(weight_, norms ? normed_ : x_, y_));
    if (!sequence.ends_with("gate")) list.back().slot[kBias] = bias_;
    if (sequence.find("matmul+matmul") != std::string::npos) {
      list.push_back(matmul(weight2_, norms ? normed_ : x_, y2_));
      list.push_back(gate());
    }
    if (sequence.find("rope") != std::string::npos) list.push_back(rope());
    if (sequence.find("kv_write") != std::string::npos) list.push_back(kv_write());
    if (sequence.ends_with("add")) list.push_back(add());
    return list;
  }

  // Where the sequence leaves its result, poisoned before a run.
  Slice& result(const std::string& sequence) {
    if (sequence.ends_with("add") || sequence.ends_with("gate")) return out_;
    return sequence.ends_with("kv_write") ? pool_ : y_;
  }

  // `rounded`: as a row gives it that multiplies in int8.
  Values expected(const std::string& sequence, bool rounded) const {
    Values h = to_values(x_values_);
    if (sequence.starts_with("norm")) h = reference::norm(h, to_values(gain_values_), kEpsilon);
    if (rounded) h = reference::decode_q8(q8_rows(h), shape_.depth);
    Values y = reference::matmul(gate_matrix_.values, h, shape_.depth);
    if (!sequence.ends_with("gate") && !bias_values_.empty())
      for (size_t i = 0; i < y.size(); ++i) y[i] += double(bias_values_[i % shape_.n]);
    if (sequence.ends_with("gate"))
      y = reference::gate(y, reference::matmul(up_matrix_.values, h, shape_.depth),
                          reference::Activation::Silu);
    if (sequence.ends_with("add")) y = reference::add(to_values(residual_values_), y, 1);
    if (sequence.find("rope") != std::string::npos) {
      Ids positions;
      for (const StepRow& row : steps_.rows) positions.push_back(row.position);
      y = reference::rope(y, positions, table_values_, {shape_.n / kHeadWidth, kHeadWidth, kRopeWidth, true});
    }
    return y;
  }

  // Makes the matmuls of a sequence read x in the q8 form.
  void give_q8(std::vector<Call>* calls) {
    std::vector<uint8_t> all = q8_rows(to_values(x_values_));
    all.resize(size_t(shape_.bucket) * q8_row_bytes(shape_.depth), 0xff);
    const Slice slice = rig_.put(all);
    for (Call& call : *calls) {
      if (call.op != Op::Matmul) continue;
      call.slot[kX] = slice;
      call.form = Form::Q8;
    }
  }

  // The result as [t][n] floats followed by poison, out of its pages if it went there.
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
  std::vector<uint8_t> q8_rows(const Values& x) const {
    std::vector<uint8_t> all;
    for (size_t at = 0; at < x.size(); at += shape_.depth) {
      const std::vector<uint8_t> row =
          reference::convert_q8({x.begin() + ptrdiff_t(at), x.begin() + ptrdiff_t(at + shape_.depth)});
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }
  Call call(Op op, const Slice& x, const Slice& y) const {
    Call c;
    c.op = op;
    c.slot[kX] = x;
    c.slot[kY] = y;
    c.slot[kStep] = step_;
    return c;
  }
  Call norm() const {
    Call c = call(Op::Norm, x_, normed_);
    c.weight = gain_;
    c.width = shape_.depth;
    c.heads = 1;
    c.epsilon = kEpsilon;
    return c;
  }
  Call matmul(const Tensor& weight, const Slice& x, const Slice& y) const {
    Call c = call(Op::Matmul, x, y);
    c.weight = weight;
    return c;
  }
  Call gate() const {
    Call c = call(Op::Gate, y_, out_);
    c.slot[kX2] = y2_;
    c.width = shape_.n;
    return c;
  }
  Call add() const {
    Call c = call(Op::Add, residual_, out_);
    c.slot[kX2] = y_;
    c.width = shape_.n;
    return c;
  }
  Call rope() const {
    Call c = call(Op::Rope, y_, y_);
    c.slot[kTable] = table_;
    c.heads = shape_.n / kHeadWidth;
    c.width = kHeadWidth;
    c.rope_width = kRopeWidth;
    c.rope_halves = 1;
    return c;
  }
  Call kv_write() const {
    Call c = call(Op::KvWrite, y_, {});
    c.slot[kPool] = pool_;
    c.heads = shape_.n / kHeadWidth;
    c.width = kHeadWidth;
    c.page_bytes = page_bytes_;
    c.cache_type = cache_type_;
    return c;
  }

  OpRig& rig_;
  Shape shape_;
  uint32_t cache_type_, page_bytes_;
  StepRows steps_;
  std::vector<float> x_values_, gain_values_, residual_values_, bias_values_;
  Matrix gate_matrix_, up_matrix_;
  Values table_values_;
  Slice step_, x_, residual_, bias_, table_, pool_, normed_, y_, y2_, out_;
  Tensor gain_, weight_, weight2_;
};

const char* const kSequences[] = {"matmul",
                                  "norm+matmul",
                                  "matmul+add",
                                  "norm+matmul+rope",
                                  "norm+matmul+kv_write",
                                  "norm+matmul+rope+kv_write",
                                  "norm+matmul+matmul+gate"};

// Vector rows of block types multiply in int8: they round x to the q8 form, which they are given
// (Form::Q8) or make themselves.
bool rounds_x(const KernelRow& row) {
  return row.form == Form::Q8 || (row.rank > 0 && quant_info(row.type).block > 1);
}

// Limit A, against the row's own rounded x, holds on all data. Limit B, against x itself, is for Gaussian
// data, since an outlier leaves its 31 neighbours without bits, and for more than a few sums.
void check_row(OpRig& rig, MatmulCase& c, const std::string& sequence, const KernelRow& row,
               const Shape& shape, uint32_t cache_type) {
  std::vector<Call> calls = c.calls(sequence);
  const bool rounds = rounds_x(row), norms = calls[0].op == Op::Norm;
  const bool tame = !shape.outliers && shape.scales == Scales::Plain, few = shape.n * shape.live < 16;
  if (row.form == Form::Q8 && !norms) c.give_q8(&calls);
  rig.poison(c.result(sequence));
  rig.run(calls, row, shape.bucket);
  // One sum that cancels is not averaged out, and a gate's exponential multiplies what it is off by; a cache
  // of halves keeps 11 bits: (2^-12)^2 / 3 is 2e-8.
  const double factor = !few ? 1 : sequence.ends_with("gate") ? 100 : 10, at_least = cache_type ? 1e-6 : 0;
  const auto check = [&](const char* against, const Values& expected, double limit) {
    require_close(c.output(sequence), expected, std::max(limit * factor, at_least),
                  std::string(row.name) + " " + sequence + against + ", n " + std::to_string(shape.n) +
                      " depth " + std::to_string(shape.depth) + " bucket " + std::to_string(shape.bucket));
  };
  if (!rounds) return check("", c.expected(sequence, false), kFloatLimit);
  const double limit = !norms ? kRoundedLimit : tame ? kFlipLimit : kOutlierFlipLimit;
  check(" (A)", c.expected(sequence, true), limit);
  // Rows of one token share its rounding: where weights have a mean, as in Q2_K, they are one sample.
  if (tame && !few && shape.live > 1)
    check(" (B)", c.expected(sequence, false), sequence.ends_with("gate") ? kGateMethodLimit : kMethodLimit);
}

void check_shape(OpRig& rig, const Stored& stored, const Shape& shape, Random& random,
                 uint32_t cache_type = 0) {
  if (shape.depth % quant_info(stored.type).block) return;
  MatmulCase c(rig, stored, shape, random, cache_type);
  for (const char* sequence : kSequences) {
    const bool heads = strstr(sequence, "rope") || strstr(sequence, "kv_write");
    if (heads && shape.n % kHeadWidth) continue;
    if (cache_type && !strstr(sequence, "kv_write")) continue;
    const std::vector<Call> calls = c.calls(sequence);
    for (const KernelRow* row : rig.rows(calls, shape.bucket))
      check_row(rig, c, sequence, *row, shape, cache_type);
  }
  rig.reset();
}

constexpr Scales kPlain = Scales::Plain, kExtreme = Scales::Extreme;

}  // namespace

TEST_CASE("matmul: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(1);
  const Shape shapes[] = {
      {1, 256, 1, 1, false, kPlain},      {3, 512, 2, 1, false, kPlain},
      {31, 256, 4, 3, true, kPlain},      {96, 768, 8, 7, false, kPlain},
      {64, 256, 1, 1, true, kExtreme},    {33, 96, 16, 13, true, kPlain},
      {5, 7, 8, 8, false, kPlain},        {17, 100, 4, 4, true, kPlain},
      {48, 256, 32, 31, false, kExtreme}, {80, 512, 128, 77, false, kPlain},
      {16, 256, 512, 300, false, kPlain}, {32, 1024, 1, 1, false, kPlain},
  };
  for (const Stored& stored : stored_types(rig, Op::Matmul))
    for (const Shape& shape : shapes)
      if (!rig.checked() || shape.bucket == 8 || shape.bucket == 32) check_shape(rig, stored, shape, random);
  rig.require_all_run(Op::Matmul);
}

TEST_CASE("matmul: deep rows and a cache of halves", "[ops]") {
  OpRig rig;
  Random random(2);
  for (const Stored& stored : stored_types(rig, Op::Matmul)) {
    check_shape(rig, stored, {31, 11008, 1, 1, false, kPlain}, random);
    check_shape(rig, stored, {32, 256, 4, 3, false, kPlain}, random, 1);
  }
}

TEST_CASE("matmul: plain rows give the same bits fused and unfused", "[ops]") {
  OpRig rig;
  Random random(3);
  for (const Stored& stored : stored_types(rig, Op::Matmul)) {
    const Shape shape{48, 512, 8, 7, true, kPlain};
    MatmulCase c(rig, stored, shape, random);
    for (const char* sequence : kSequences) {
      const std::vector<Call> calls = c.calls(sequence);
      const KernelRow* row = rig.plain_row(calls, shape.bucket);
      INFO(sequence);
      REQUIRE(row);
      rig.poison(c.result(sequence));
      rig.run(calls, *row, shape.bucket);
      const auto fused = rig.get<uint32_t>(c.result(sequence));
      rig.poison(c.result(sequence));
      for (const Call& call : calls) rig.run_plain(call, shape.bucket);
      REQUIRE(fused == rig.get<uint32_t>(c.result(sequence)));
    }
    rig.reset();
  }
}

TEST_CASE("matmul: plain rows give the same bits in pieces of any size", "[ops]") {
  OpRig rig;
  Random random(6);
  const uint32_t n = 20, tokens = 70;
  for (const Stored& stored : stored_types(rig, Op::Matmul)) {
    const uint32_t depth = quant_info(stored.type).block == 1 ? 300 : 512;
    const Matrix matrix = random_matrix(stored.type, n, depth, 1, kPlain, random);
    const std::vector<float> x = with_outliers(size_t(tokens) * depth, random);
    const Tensor weight = put_matrix(rig, matrix, stored.layout);
    std::vector<uint32_t> first;
    for (const uint32_t bucket : {512u, 128u, 32u, 8u, 1u}) {
      std::vector<uint32_t> all;
      for (uint32_t t = 0; t < tokens; t += bucket) {
        const uint32_t live = std::min(bucket, tokens - t);
        StepRows steps;
        for (uint32_t i = 0; i < live; ++i) steps.add(0, 0, t + i);
        Call call;
        call.op = Op::Matmul;
        call.weight = weight;
        const auto from = x.begin() + ptrdiff_t(size_t(t) * depth);
        call.slot[kX] = rig.put(std::vector<float>(from, from + ptrdiff_t(size_t(live) * depth)));
        call.slot[kY] = rig.room(size_t(live) * n * 4);
        call.slot[kStep] = steps.put(rig);
        rig.run_plain(call, bucket);
        const auto y = rig.get<uint32_t>(call.slot[kY]);
        all.insert(all.end(), y.begin(), y.end());
      }
      if (first.empty()) first = all;
      REQUIRE(all == first);
    }
    rig.reset();
  }
}

TEST_CASE("matmul: the same bits every time, whatever the threads and the bucket", "[ops]") {
  Random random(4);
  for (const char* sequence : {"matmul", "norm+matmul", "norm+matmul+matmul+gate"}) {
    std::vector<std::vector<uint32_t>> first;  // by row
    for (const uint32_t threads : {1u, 2u, 3u}) {
      OpRig rig("cpu", ~0u, threads);
      Random same(5);
      size_t index = 0;
      for (const Stored& stored : stored_types(rig, Op::Matmul)) {
        const Shape shape{96, 256, 8, 5, false, kPlain};
        MatmulCase c(rig, stored, shape, same);
        for (const KernelRow* row : rig.rows(c.calls(sequence), shape.bucket)) {
          std::vector<Call> calls = c.calls(sequence);
          if (row->form == Form::Q8 && calls[0].op == Op::Matmul) c.give_q8(&calls);
          for (int repeat = 0; repeat < (threads == 2 ? 100 : 1); ++repeat) {
            rig.run(calls, *row, shape.bucket);
            const auto bits = rig.get<uint32_t>(c.result(sequence));
            if (first.size() <= index) first.push_back(bits);
            REQUIRE(bits == first[index]);
          }
          ++index;
        }
        rig.reset();
      }
    }
  }
}

TEST_CASE("matmul: says what does not fit", "[ops]") {
  OpRig rig;
  Call call;
  call.op = Op::Matmul;
  call.weight.type = QuantType::q4_k;
  call.weight.n = 4;
  call.weight.depth = 100;
  const RowFilter filter{&rig.info(), false};
  const KernelRow* rows[8];
  REQUIRE(find_rows({&call, 1}, 1, filter, rows) == 0);
  REQUIRE(strstr(error_text(), "rows of 100 weights are not whole q4_k blocks of 256"));
  call.weight.depth = 256;
  REQUIRE(find_rows({&call, 1}, 1, filter, rows) > 0);
  REQUIRE(find_rows({&call, 1}, 1024, filter, rows) == 0);  // no such bucket
}

}  // namespace greta::test
