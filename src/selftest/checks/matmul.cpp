// Checks matmul and the sequences around it: every row of the kernel table against float64, over odd shapes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "selftest/checks/checks.h"
#include "selftest/checks/matmul_case.h"

namespace greta::selftest {

namespace {

// Limits of the NMSE.
// In float32 a lane adds depth / 16 products. Each addition rounds with a variance of 2^-48 / 3 of the sum,
// so the NMSE is depth / 32 * 1.2e-15: 4e-13 at depth 11008. A norm, a gate and sums that cancel multiply it
// by a few. Rounding x to 127 steps of the largest of 32 Gaussian values (2.1 sigma) gives (2.1 / 127)^2 / 12
// = 2.3e-5. A product of two such sums has twice that, and a few large values decide it. If the kernel row
// makes a norm itself, a value half-way between two steps may round the other way. Each adds (2.1 / 127)^2 /
// depth, or (16 / 127)^2 / depth beside an outlier of 16 sigma.
constexpr double kFloatLimit = 1e-11, kRoundedLimit = 1e-10, kFlipLimit = 5e-6, kOutlierFlipLimit = 2e-4;
// A float16 row adds in float32, in an order that the hardware chooses. Rounding x and weights to 11 bits
// gives 2 * (2^-11)^2 / 6 = 8e-8.
constexpr double kHalfLimit = 1e-9, kHalfMethodLimit = 1e-6;
// A bfloat16 has 8 bits: 2 * (2^-8)^2 / 6 = 5e-6, whatever the data.
constexpr double kBrainLimit = 2e-5;
constexpr double kMethodLimit = 5e-5, kGateMethodLimit = 2e-4;

bool multiplies_brain(const KernelRow& row) { return row.arithmetic == Arithmetic::Brain; }

// Returns true if the kernel row rounds x, or reads it rounded. Vector rows of block types multiply in int8,
// so they are given the q8 format (Form::Q8) or make it themselves.
bool rounds_x(const KernelRow& row) {
  return row.form != Form::F32 || (row.rank > 0 && quant_info(row.type).block > 1);
}

// Runs split-K with `splits` groups for each tile of y, in memory that is just large enough. Fails unless the
// bits are always the same, whichever group finishes last.
void run_split(Rig& rig, std::vector<Call> calls, const Slice& y, const KernelRow& row, uint32_t bucket,
               uint32_t splits, int repeats) {
  Call& product = *std::ranges::find(calls, Op::Matmul, &Call::op);
  product.matmul.splits = splits;
  product.slot[kScratch] = rig.room(split_bytes(product, row, bucket));
  product.slot[kCounters] = rig.put(std::vector<uint32_t>(tile_count(product, row, bucket)));
  check_repeats(rig, calls, row, bucket, y, repeats);
  const std::vector<uint8_t> once = rig.get<uint8_t>(y);
  for (uint32_t again = 0; again < 2; ++again) {
    rig.poison(y);
    rig.run(calls, row, bucket);
    expect(rig.get<uint8_t>(y) == once,
           row.name + std::string(": other bits with the same number of splits, ") + std::to_string(splits));
  }
  for (const uint32_t counter : rig.get<uint32_t>(product.slot[kCounters]))
    expect(counter == 0, row.name + std::string(": a counter is left at ") + std::to_string(counter));
}

// How often a launch is repeated: one shape for rows of a few tokens, in all sequences, and one for tiles.
int repeats_of(const Rig& rig, const MatmulShape& shape, const std::string& sequence) {
  if (!rig.repeats()) return 0;
  return shape.n == 96 || (shape.n == 140 && sequence == "matmul") ? 100 : 0;
}

// Compares a row with float64 by two limits. Limit A, against the rounded x that the row uses, holds on all
// data. Limit B, against x itself, holds for many sums over Gaussian data: an outlier leaves its 31
// neighbours without bits.
void check_row(Rig& rig, MatmulCase& c, const std::string& sequence, const KernelRow& row,
               const MatmulShape& shape, uint32_t cache_type, uint32_t splits) {
  std::vector<Call> calls = c.calls(sequence);
  const bool rounds = rounds_x(row), norms = calls[0].op == Op::Norm;
  const bool tame = !shape.outliers && shape.scales == Scales::Plain, few = shape.n * shape.live < 16;
  const bool halves = row.form == Form::F16;
  const bool given = row.form != Form::F32;  // x comes rounded, so the row does not round it
  if (given) c.give_form(&calls, row.form);
  rig.poison(c.result(sequence));
  const int repeats = repeats_of(rig, shape, sequence);
  if (splits > 1)
    run_split(rig, calls, c.result(sequence), row, shape.bucket, splits, repeats);
  else
    check_repeats(rig, calls, row, shape.bucket, c.result(sequence), repeats);
  // A few sums that cancel are not averaged out, and a gate's exponential multiplies their error. A cache of
  // halves keeps 11 bits, which gives (2^-12)^2 / 3 = 2e-8.
  const double factor = !few                                         ? 1
                        : sequence.find("gate") != std::string::npos ? 10
                                                                     : 1,
               at_least = cache_type ? 1e-6 : 0;
  expect(!c.counters_are_left(), row.name + (" " + sequence) + ": a counter is left");
  const auto check = [&](const char* against, Form form, double limit) {
    const double cancels = few ? std::max(1.0, c.cancellation(sequence, form)) : 1;
    require_close(c.output(sequence), c.expected(sequence, form),
                  std::max(limit * factor * cancels, at_least),
                  std::string(row.name) + " " + sequence + against + ", n " + std::to_string(shape.n) +
                      " depth " + std::to_string(shape.depth) + " bucket " + std::to_string(shape.bucket) +
                      " splits " + std::to_string(splits));
  };
  if (calls.back().op == Op::Convert) {
    const std::string wrong = c.wrong_form(sequence);
    expect(wrong.empty(), row.name + (" " + sequence) + ": " + wrong + " of the rounded result is wrong");
  }
  if (multiplies_brain(row)) return check("", Form::F32, kBrainLimit);
  if (!rounds) return check("", Form::F32, kFloatLimit);
  const double limit = halves            ? kHalfLimit
                       : given || !norms ? kRoundedLimit
                       : tame            ? kFlipLimit
                                         : kOutlierFlipLimit;
  check(" (A)", given ? row.form : Form::Q8, limit);
  // All results of a token share its rounding. If weights have a mean, as in Q2_K, they are a single sample.
  if (tame && !few && shape.live > 1)
    check(" (B)", Form::F32,
          halves                                       ? kHalfMethodLimit
          : sequence.find("gate") != std::string::npos ? kGateMethodLimit
                                                       : kMethodLimit);
}

// Runs a row on x, or a norm's gain, with a value that is not finite.
void check_spoiled_row(Rig& rig, MatmulCase& c, const std::string& sequence, const KernelRow& row,
                       const MatmulShape& shape) {
  std::vector<Call> calls = c.calls(sequence);
  if (row.form != Form::F32) c.give_form(&calls, row.form);
  rig.poison(c.result(sequence));
  rig.run(calls, row, shape.bucket);
  c.require_spoiled(sequence, row.name + (" " + sequence) + " of what is not finite, bucket " +
                                  std::to_string(shape.bucket));
}

// Calls check(sequence, row) for all rows of all sequences that the shape fits and whose name has `part`.
template <class Check>
void for_each_row(Rig& rig, MatmulCase& c, const MatmulShape& shape, uint32_t cache_type, const char* part,
                  const Check& check) {
  for (const std::string& sequence : rig.sequences(Op::Matmul)) {
    const bool writes = sequence.ends_with("kv_write"), rotates = sequence.find("rope") != std::string::npos;
    if (sequence.find(part) == std::string::npos || ((writes || rotates) && shape.n % kHeadWidth)) continue;
    if (cache_type && !writes) continue;
    const std::vector<Call> calls = c.calls(sequence);
    for (const KernelRow* row : rig.rows(calls, shape.bucket)) check(sequence, *row);
  }
}

// Compares all rows that read x in float32.
void check_gathered(Rig& rig, const std::vector<Call>& calls, uint32_t bucket, const Values& expected) {
  const Slice& y = calls.back().slot[kY];
  for (const KernelRow* row : rig.rows(calls, bucket)) {
    if (row->form != Form::F32) continue;
    rig.poison(y);
    rig.run(calls, *row, bucket);
    require_close(rig.get<float>(y), expected, kFloatLimit,
                  row->name + std::string(" of rows that have outputs"));
  }
}

}  // namespace

void check_matmul_shape(Rig& rig, const Stored& stored, const MatmulShape& shape, Random& random,
                        uint32_t cache_type, const char* part) {
  if (shape.depth % quant_info(stored.type).block ||
      !rig.left(Op::Matmul, stored.type, stored.layout, shape.bucket))
    return;
  MatmulCase c(rig, stored, shape, random, cache_type);
  for_each_row(rig, c, shape, cache_type, part, [&](const std::string& sequence, const KernelRow& row) {
    const uint32_t splits = std::min(row.splits, uint32_t(divide_up(shape.depth, kTileColumns)));
    for (uint32_t some = 1; some <= splits; ++some) check_row(rig, c, sequence, row, shape, cache_type, some);
  });
  if (shape.scales == Scales::Plain && shape.depth <= 768)
    for (const float value : kNotFinite) {
      c.spoil(value);
      for_each_row(rig, c, shape, cache_type, part, [&](const std::string& sequence, const KernelRow& row) {
        check_spoiled_row(rig, c, sequence, row, shape);
      });
    }
  rig.reset();
}

constexpr Scales kPlain = Scales::Plain, kExtreme = Scales::Extreme;

void check_matmul(Rig& rig) {
  Random random(1);
  // The first shapes are for a quick rig and have most in them: matrix rows that do not fill a group, and
  // tokens that do not fill a tile.
  const MatmulShape shapes[] = {
      {31, 768, 4, 3, true, kPlain},      {96, 768, 8, 7, false, kPlain},
      {140, 1280, 32, 23, false, kPlain}, {70, 1312, 64, 39, false, kPlain},
      {64, 512, 16, 13, false, kPlain},   {33, 96, 16, 13, true, kPlain},
      {17, 100, 4, 4, true, kPlain},      {5, 7, 8, 8, false, kPlain},
      {1, 256, 1, 1, false, kPlain},      {3, 512, 2, 1, false, kPlain},
      {64, 256, 1, 1, true, kExtreme},    {48, 256, 32, 31, false, kExtreme},
      {80, 512, 128, 77, false, kPlain},  {16, 256, 512, 300, false, kPlain},
      {32, 1024, 1, 1, false, kPlain},    {9, 4096, 1, 1, false, kPlain},
      {1100, 256, 1, 1, false, kPlain},   {128, 1024, 32, 32, true, kPlain},
      {31, 256, 4, 3, true, kPlain},
  };
  // A checked device is slow, so it runs one shape of a token and those of some buckets.
  for (const Stored& stored : stored_types(rig, Op::Matmul))
    for (const MatmulShape& shape : shapes)
      if (!rig.checked() || shape.n == 64 || shape.bucket == 8 || shape.bucket == 16 || shape.bucket == 32 ||
          shape.bucket == 128)
        check_matmul_shape(rig, stored, shape, random);
  // Enough rows of y that a thread has more of them than it loads at once.
  if (!rig.checked())
    for (const Stored& stored : stored_types(rig, Op::Matmul))
      check_matmul_shape(rig, stored, {4128, 256, 2, 2, false, kPlain}, random, 0, "matmul+norm");
  rig.require_all_run(Op::Matmul);
}

void check_matmul_outputs(Rig& rig) {
  Random random(3);
  const uint32_t n = 40, depth = 264, tokens = 20;
  for (const Stored& stored : stored_types(rig, Op::Matmul)) {
    if (quant_info(stored.type).block > 1) continue;
    const Matrix matrix = random_matrix(stored.type, n, depth, 1, Scales::Plain, random);
    const std::vector<float> x = with_outliers(size_t(tokens) * depth, random),
                             gain = gaussians(depth, random);
    for (const Ids& outputs : {Ids{7}, Ids{2, 3, 11, 18, 19}}) {
      const uint32_t bucket = outputs.size() == 1 ? 1 : 8;
      StepRows steps;
      Values gathered;
      for (uint32_t t = 0; t < tokens; ++t) {
        const bool is_output = std::ranges::find(outputs, t) != outputs.end();
        steps.add(t, 0, t, is_output);
        if (is_output) gathered.insert(gathered.end(), x.begin() + t * depth, x.begin() + (t + 1) * depth);
      }
      const CallMaker make{steps.put(rig)};
      Call norm = make.norm(put_vector(rig, gain), rig.put_padded(x, 32 * depth),
                            rig.room(bucket * depth * 4), kEpsilon);
      norm.rows_of = kRowsGather;
      Call product =
          make.matmul(put_matrix(rig, matrix, stored.layout), norm.slot[kX], rig.room(bucket * n * 4));
      product.rows_of = kRowsGather;
      Call of_normed = product;
      of_normed.slot[kX] = norm.slot[kY];
      of_normed.rows_of = kRowsOutputs;
      const Values normed = reference::norm(gathered, to_values(gain), double(kEpsilon));
      check_gathered(rig, {product}, bucket, reference::matmul(matrix.values, gathered, depth));
      check_gathered(rig, {norm, of_normed}, bucket, reference::matmul(matrix.values, normed, depth));
      rig.reset();
    }
  }
}

}  // namespace greta::selftest
