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
#include "tune/tune.h"

namespace greta {

constexpr uint64_t kColdBytes = 256u << 20;
constexpr uint32_t kStagingBytes = 64u << 20, kRounds = 3, kLaunches = 24, kSamples = 64;
constexpr double kWarmSeconds = 0.2;  // clocks have fallen while a kernel was compiled
constexpr uint32_t kPatternBlocks = 4099;

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
    Stream* stream = nullptr;
    GRETA_TRY(open_device(name, {}, &device));
    device_.reset(device);
    GRETA_TRY(device_->create_stream(&stream));
    stream_.reset(stream);
    GRETA_TRY(device_->allocate(kStagingBytes, Memory::Upload, &upload_));
    GRETA_TRY(device_->allocate(kStagingBytes, Memory::Readback, &readback_));
    for (Event* event : {&from_, &to_}) GRETA_TRY(device_->create_event(event));
    return {};
  }

  ~Bench() {
    for (Kernel& kernel : kernels_) device_->unload(kernel);
    for (Buffer* buffer : {&weights_, &gguf_, &x_, &y_, &y2_, &out_, &step_, &parts_, &counters_, &upload_,
                           &readback_})
      if (device_) device_->release(*buffer);
    for (Event* event : {&from_, &to_})
      if (device_ && event->handle) device_->destroy(*event);
  }

  Device& device() { return *device_; }
  RowFilter filter() const { return {&device_->info(), false}; }

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
    weight_bytes_ = tensor_bytes(row.type, row.layout, rows_, shape.depth, 1);
    copies_ = std::max<uint64_t>(1, kColdBytes / weight_bytes_);
    // Steps of 1/128, of which each 16 have a largest one that every form of x gives exactly.
    x_values_.resize(size_t(shape.tokens) * shape.depth);
    for (size_t i = 0; i < x_values_.size(); ++i)
      x_values_[i] = i % 16 ? float(int32_t(random_() % 255) - 127) / 128 : 127.0f / 128;
    StepState step = {};
    step.token_count = shape.tokens;
    GRETA_TRY(make(&x_, x_values_.size() * sizeof(float)));
    for (Buffer* y : {&y_, &y2_, &out_}) GRETA_TRY(make(y, uint64_t(shape.tokens) * shape.n * 4));
    GRETA_TRY(make(&step_, sizeof step));
    GRETA_TRY(put(step_, &step, sizeof step));
    GRETA_TRY(make(&gguf_, matrix_.size()));
    GRETA_TRY(put(gguf_, matrix_.data(), matrix_.size()));
    GRETA_TRY(make(&weights_, weight_bytes_ * copies_));
    return copy_weights(row.layout);
  }

  // Times "beside" too where `both` is true; groups that share a tile are not run beside others.
  Status time(const KernelRow& from, const Variant& variant, bool both, Timing* out) {
    KernelRow row = from;
    row.tile = variant.rows;
    row.tile_tokens = variant.tokens;
    row.code.group_size[0] = variant.threads;
    const std::vector<uint8_t> x = form_of_x(row.form);
    GRETA_TRY(put(x_, x.data(), x.size()));
    GRETA_TRY(split(row, variant.splits));
    Launch launch;
    make_launch(calls(row, 0), row, shape_.tokens, &device_->info(), &launch);
    uint32_t constants[kMaxConstants + 1];
    uint32_t count = kernel_constants(row, {launch.block, launch.block_bytes}, constants);
    if (variant.step) {
      row.code.subgroups = 0;
      constants[count++] = variant.step;
      constants[count++] = variant.buffers;
      constants[count++] = variant.once;
    }
    row.code.constants = {constants, count};
    Kernel kernel;
    GRETA_TRY(device_->load(row.code, &kernel));
    kernel.name = row.name;
    kernels_.push_back(kernel);  // kept: other shapes take it again
    out->threads = kernel.group_size[0];
    GRETA_TRY(run(kernel, row, true, &out->alone));
    if (both) GRETA_TRY(run(kernel, row, false, &out->beside));
    return check(&out->error);
  }

  double flops() const { return 2.0 * rows_ * shape_.depth * shape_.tokens; }
  double bytes() const { return double(weight_bytes_); }
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

  Status make(Buffer* buffer, uint64_t bytes) {
    device_->release(*buffer);
    *buffer = {};
    return device_->allocate(bytes, Memory::Device, buffer);
  }

  // Memory for the sums and counters of groups that share a tile.
  Status split(const KernelRow& row, uint32_t splits) {
    splits_ = splits;
    if (splits == 1) return {};
    calls(row, 0);
    const std::vector<uint32_t> zeros(tile_count(calls_[0], row, shape_.tokens));
    GRETA_TRY(make(&parts_, split_bytes(calls_[0], row, shape_.tokens)));
    GRETA_TRY(make(&counters_, zeros.size() * sizeof(uint32_t)));
    return put(counters_, zeros.data(), counters_.bytes);
  }

  Status put(const Buffer& to, const void* from, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += kStagingBytes) {
      const uint64_t some = std::min<uint64_t>(kStagingBytes, bytes - at);
      memcpy(upload_.mapped, static_cast<const uint8_t*>(from) + at, some);
      GRETA_TRY(stream_->copy({&to, at, some}, {&upload_, 0, some}));
      GRETA_TRY(stream_->wait());
    }
    return {};
  }

  Status copy_weights(Layout layout) {
    const Slice first{&weights_, 0, weight_bytes_};
    if (layout == Layout::Gguf) {
      GRETA_TRY(stream_->copy(first, {&gguf_, 0, weight_bytes_}));
    } else {
      const Call call =
          CallMaker{}.pack({&gguf_, 0, gguf_.bytes}, {type_, layout, rows_, shape_.depth, 1, first});
      const KernelRow* row = nullptr;
      GRETA_TRY(choose_row({&call, 1}, 1, filter(), &row));
      Launch launch;
      make_launch({&call, 1}, *row, 1, &device_->info(), &launch);
      Kernel kernel;
      uint32_t constants[kMaxConstants + 1];
      KernelCode code = row->code;
      code.constants = {constants, kernel_constants(*row, {launch.block, launch.block_bytes}, constants)};
      GRETA_TRY(device_->load(code, &kernel));
      GRETA_TRY(dispatch(kernel, launch));
      GRETA_TRY(stream_->wait());
      device_->unload(kernel);
    }
    GRETA_TRY(stream_->barrier());
    for (uint64_t i = 1; i < copies_; ++i)
      GRETA_TRY(stream_->copy({&weights_, i * weight_bytes_, weight_bytes_}, first));
    return stream_->wait();
  }

  // What `row` covers, with this copy of the weights; valid until the next.
  std::span<const Call> calls(const KernelRow& row, uint64_t copy) {
    const uint64_t bytes = tensor_bytes(type_, row.layout, shape_.n, shape_.depth, 1);
    const CallMaker make{{&step_, 0, step_.bytes}};
    const Slice x = {&x_, 0, form_row_bytes(row.form, shape_.depth) * shape_.tokens}, y = {&y_, 0, y_.bytes},
                y2 = {&y2_, 0, y2_.bytes};
    Tensor weight = {type_, row.layout, shape_.n, shape_.depth, 1, {&weights_, copy * weight_bytes_, bytes}};
    calls_[0] = make.matmul(weight, x, y);
    weight.slice.offset += bytes;
    calls_[1] = make.matmul(weight, x, y2);
    calls_[2] = make.gate(y, y2, {&out_, 0, out_.bytes}, shape_.n, 0);
    calls_[0].form = calls_[1].form = row.form;
    calls_[0].matmul.splits = splits_;
    if (splits_ > 1) {
      calls_[0].slot[kScratch] = {&parts_, 0, parts_.bytes};
      calls_[0].slot[kCounters] = {&counters_, 0, counters_.bytes};
    }
    return {calls_, shape_.gates ? 3u : 1u};
  }

  Status dispatch(const Kernel& kernel, const Launch& launch) {
    return stream_->dispatch(kernel, launch.groups, launch.arguments(),
                             {launch.accesses, launch.access_count});
  }

  // Seconds of a launch, the best of some rounds after some that are not counted.
  Status run(const Kernel& kernel, const KernelRow& row, bool alone, double* out) {
    const uint32_t launches = device_->info().cpu_type ? 1 : kLaunches;
    double warmed = 0;
    *out = 1e30;
    for (uint32_t round = 0; round < kRounds;) {
      GRETA_TRY(stream_->signal(from_));
      for (uint32_t i = 0; i < launches; ++i) {
        Launch launch;
        make_launch(calls(row, i % copies_), row, shape_.tokens, &device_->info(), &launch);
        GRETA_TRY(dispatch(kernel, launch));
        if (alone) GRETA_TRY(stream_->barrier());
      }
      GRETA_TRY(stream_->signal(to_));
      GRETA_TRY(stream_->wait());
      uint64_t ns = 0;
      GRETA_TRY(device_->elapsed_ns(from_, to_, &ns));
      const double seconds = double(ns) * 1e-9;
      const bool warm = warmed > (device_->info().cpu_type ? 0 : kWarmSeconds);
      if (warm) *out = std::min(*out, seconds / launches);
      warmed += seconds;
      round += warm;
    }
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
    for (uint32_t sample = 0; sample < kSamples; ++sample) {
      const uint32_t n = uint32_t(random_() % shape_.n), t = uint32_t(random_() % shape_.tokens);
      const double sum = sum_of(n, t);
      expected[sample] = shape_.gates ? sum / (1 + std::exp(-sum)) * sum_of(n + shape_.n, t) : sum;
      const Slice value{&readback_, sample * 4, 4};
      GRETA_TRY(stream_->copy(value, {shape_.gates ? &out_ : &y_, (uint64_t(t) * shape_.n + n) * 4, 4}));
    }
    GRETA_TRY(stream_->wait());
    for (uint32_t sample = 0; sample < kSamples; ++sample) {
      const double y = double(static_cast<const float*>(readback_.mapped)[sample]), sum = expected[sample];
      error += (y - sum) * (y - sum);
      size += sum * sum;
    }
    *out = error / size;
    return {};
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;  // dies before the device
  Buffer weights_, gguf_, x_, y_, y2_, out_, step_, parts_, counters_, upload_, readback_;
  Event from_, to_;
  std::vector<Kernel> kernels_;
  Shape shape_ = {};
  uint32_t rows_ = 0;  // of weights
  uint32_t splits_ = 1;
  Call calls_[3];
  QuantType type_ = QuantType::f32;
  reference::Random random_;
  std::vector<uint8_t> matrix_;
  std::vector<float> x_values_;
  uint64_t weight_bytes_ = 0, copies_ = 1;
};

// `--ops gemm` (gemm.cpp).
struct GemmOptions {
  const char* device;
  std::string types, sweep;
  Shape shape;  // n 0: the matrices of an 8B model
};
Status time_gemm(const GemmOptions& options);

}  // namespace greta
