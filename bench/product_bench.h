// Times rows of the kernel table that multiply by a matrix of weights, and checks some of their results in
// float64.
//
// Weights rotate over copies that no cache holds. "alone" has a barrier after each launch, as a step with one
// matmul; "beside" has none, as matmuls that do not wait for each other.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "selftest/quant/quant.h"
#include "selftest/reference/reference.h"
#include "tune/harness.h"

namespace greta {

constexpr uint32_t kLaunches = 24, kSamples = 64, kPatternBlocks = 4099;

struct Shape {
  uint32_t n, depth, tokens;
  bool gates;  // two matrices, the second of what the first one's results gate
};

// What a row of the table is run with: its own, or another size of tile, group and steps (constants 4 to 6).
struct Variant {
  uint32_t threads, rows, tokens, step, buffers, once;
  uint32_t splits = 1;  // groups that share a tile
};

struct Timing {
  double alone = 0, beside = 0;  // seconds of a launch
  double error = 0;              // NMSE
  uint32_t threads = 0;          // of a group
};

class Bench {
 public:
  Status open(const char* name) {
    Device* device = nullptr;
    GRETA_TRY(open_device(name, {}, &device));
    device_.reset(device);
    harness_ = std::make_unique<Harness>(*device_);
    return harness_->open();
  }

  Device& device() { return *device_; }
  RowFilter filter() const { return harness_->filter(); }

  // Random weights of the type in the row's layout, in as many copies as no cache holds, and random x.
  Status prepare(const KernelRow& row, const Shape& shape) {
    shape_ = shape;
    type_ = row.type;
    rows_ = shape.n * (shape.gates ? 2 : 1);
    random_.seed(shape.n + shape.depth);
    const reference::Quant& quant = *reference::find_quant(quant_info(row.type).name);
    matrix_.resize(tensor_bytes(row.type, Layout::Gguf, rows_, shape.depth, 1));
    // Some blocks, over and over: not in step with the rows.
    const size_t pattern = std::min<size_t>(matrix_.size(), size_t(kPatternBlocks) * quant.bytes);
    for (size_t i = 0; i < pattern; ++i) matrix_[i] = uint8_t(random_());
    for (size_t at = 0; at < pattern; at += quant.bytes) quant.resize(&matrix_[at], 1, random_);
    for (size_t at = pattern; at < matrix_.size(); at += pattern)
      memcpy(&matrix_[at], matrix_.data(), std::min(pattern, matrix_.size() - at));
    // Steps of 1/128, of which each 16 have a largest one that every form of x gives exactly.
    x_values_.resize(size_t(shape.tokens) * shape.depth);
    for (size_t i = 0; i < x_values_.size(); ++i)
      x_values_[i] = i % 16 ? float(int32_t(random_() % 255) - 127) / 128 : 127.0f / 128;
    StepState step = {};
    step.token_count = shape.tokens;
    harness_->reset();
    GRETA_TRY(harness_->room(x_values_.size() * sizeof(float), &x_));
    for (Slice* y : {&y_, &y2_, &out_}) GRETA_TRY(harness_->room(uint64_t(shape.tokens) * shape.n * 4, y));
    GRETA_TRY(harness_->put(&step, sizeof step, &step_));
    Slice gguf;
    GRETA_TRY(harness_->put(matrix_, &gguf));
    GRETA_TRY(harness_->copies(tensor_bytes(row.type, row.layout, rows_, shape.depth, 1), true, &weights_));
    GRETA_TRY(harness_->pack(gguf, {type_, row.layout, rows_, shape.depth, 1, weights_[0]}));
    GRETA_TRY(harness_->repeat(weights_));
    return harness_->finish();
  }

  // Times "beside" too where `both` is true; groups that share a tile are not run beside others.
  Status time(const KernelRow& from, const Variant& variant, bool both, Timing* out) {
    KernelRow row = from;
    row.tile = variant.rows;
    row.tile_tokens = variant.tokens;
    row.code.group_size[0] = variant.threads;
    const std::vector<uint8_t> x = form_of_x(row.form);
    GRETA_TRY(harness_->write({x_.buffer, x_.offset, x.size()}, x.data()));
    GRETA_TRY(split(row, variant.splits));
    uint32_t more[3] = {variant.step, variant.buffers, variant.once};
    if (variant.step) row.code.subgroups = 0;
    std::vector<Launch> launches(device_->info().cpu_type ? 1 : kLaunches);
    for (size_t i = 0; i < launches.size(); ++i)
      GRETA_TRY(
          harness_->prepare(calls(row, i), row, shape_.tokens, &launches[i], {more, variant.step ? 3u : 0u}));
    out->threads = launches[0].kernel->group_size[0];
    GRETA_TRY(seconds_of(launches, Harness::Order::Apart, &out->alone));
    if (both) GRETA_TRY(seconds_of(launches, Harness::Order::Together, &out->beside));
    return check(&out->error);
  }

  double flops() const { return 2.0 * rows_ * shape_.depth * shape_.tokens; }
  double bytes() const { return double(weights_.bytes); }
  uint32_t rows() const { return rows_; }

 private:
  // x as rows read it, each token's after the other's.
  std::vector<uint8_t> form_of_x(Form form) const {
    const auto bytes_of = [](const auto& values) {
      const auto* from = reinterpret_cast<const uint8_t*>(values.data());
      return std::vector<uint8_t>(from, from + values.size() * sizeof values[0]);
    };
    std::vector<uint8_t> all;
    for (auto at = x_values_.begin(); at != x_values_.end(); at += shape_.depth) {
      const std::vector<float> values(at, at + shape_.depth);
      const std::vector<double> doubles(values.begin(), values.end());
      const std::vector<uint8_t> row = form == Form::F32     ? bytes_of(values)
                                       : form == Form::Q8    ? reference::convert_q8(values)
                                       : form == Form::Q8X16 ? reference::convert_q8x16(values, {})
                                                             : reference::half_bytes(doubles);
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }

  // Memory for the sums and counters of groups that share a tile.
  Status split(const KernelRow& row, uint32_t splits) {
    splits_ = splits;
    if (splits == 1) return {};
    calls(row, 0);
    const std::vector<uint32_t> zeros(tile_count(calls_[0], row, shape_.tokens));
    GRETA_TRY(harness_->room(split_bytes(calls_[0], row, shape_.tokens), &parts_));
    return harness_->put(zeros, &counters_);
  }

  // What `row` covers, with this copy of the weights; valid until the next.
  std::span<const Call> calls(const KernelRow& row, uint64_t copy) {
    const uint64_t bytes = tensor_bytes(type_, row.layout, shape_.n, shape_.depth, 1);
    const CallMaker make{step_};
    const Slice x = {x_.buffer, x_.offset, form_row_bytes(row.form, shape_.depth) * shape_.tokens};
    Tensor weight = {type_, row.layout, shape_.n, shape_.depth, 1, weights_[copy]};
    weight.slice.bytes = bytes;
    calls_[0] = make.matmul(weight, x, y_);
    weight.slice.offset += bytes;
    calls_[1] = make.matmul(weight, x, y2_);
    calls_[2] = make.gate(y_, y2_, out_, shape_.n, 0);
    calls_[0].form = calls_[1].form = row.form;
    calls_[0].matmul.splits = splits_;
    if (splits_ > 1) {
      calls_[0].slot[kScratch] = parts_;
      calls_[0].slot[kCounters] = counters_;
    }
    return {calls_, shape_.gates ? 3u : 1u};
  }

  // Of one launch, the best of some rounds.
  Status seconds_of(std::span<const Launch> launches, Harness::Order order, double* out) {
    uint64_t ns = 0;
    GRETA_TRY(harness_->best_time(launches, order, &ns));
    *out = double(ns) * 1e-9 / double(launches.size());
    return {};
  }

  // Sum `n` of a matrix for token t, in float64.
  double sum_of(uint32_t n, uint32_t t) const {
    const reference::Quant& quant = *reference::find_quant(quant_info(type_).name);
    const uint8_t* row = &matrix_[n * quant_bytes(type_, shape_.depth)];
    double sum = 0;
    for (uint32_t k = 0; k < shape_.depth; ++k)
      sum += double(quant.weight(row + k / quant.block * quant.bytes, k % quant.block)) *
             double(x_values_[size_t(t) * shape_.depth + k]);
    return sum;
  }

  // Some results against float64.
  Status check(double* out) {
    double expected[kSamples], error = 0, size = 0;
    Slice values[kSamples];
    float read[kSamples];
    const Slice& results = shape_.gates ? out_ : y_;
    for (uint32_t sample = 0; sample < kSamples; ++sample) {
      const uint32_t n = uint32_t(random_() % shape_.n), t = uint32_t(random_() % shape_.tokens);
      const double sum = sum_of(n, t);
      expected[sample] = shape_.gates ? sum / (1 + std::exp(-sum)) * sum_of(n + shape_.n, t) : sum;
      values[sample] = {results.buffer, results.offset + (uint64_t(t) * shape_.n + n) * 4, 4};
    }
    GRETA_TRY(harness_->read(values, read));
    for (uint32_t sample = 0; sample < kSamples; ++sample) {
      const double y = double(read[sample]), sum = expected[sample];
      error += (y - sum) * (y - sum);
      size += sum * sum;
    }
    *out = error / size;
    return {};
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Harness> harness_;  // dies before the device
  Copies weights_;
  Slice x_, y_, y2_, out_, step_, parts_, counters_;
  Shape shape_ = {};
  uint32_t rows_ = 0;  // of weights
  uint32_t splits_ = 1;
  Call calls_[3];
  QuantType type_ = QuantType::f32;
  reference::Random random_;
  std::vector<uint8_t> matrix_;
  std::vector<float> x_values_;
};

// `--ops gemm` (gemm.cpp).
struct GemmOptions {
  const char* device;
  std::string types, sweep;
  Shape shape;  // n 0: the matrices of an 8B model
};
Status time_gemm(const GemmOptions& options);

}  // namespace greta
