// A device behind greta_compute.h for measurements: buffers of any contents, and times of calls.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "greta_compute.h"

namespace greta::bench {

template <class Struct>
Struct sized() {
  Struct made = {};
  made.struct_size = sizeof made;
  return made;
}

// What a call computes and must move.
struct Work {
  double flops = 0, bytes = 0;
};

class Rig {
 public:
  Rig(const char* name, double seconds, uint32_t runs) : seconds_(seconds), runs_(runs) {
    auto options = sized<greta_runtime_options>();
    options.device = name;
    must(greta_runtime_open(&options, &runtime_));
    must(greta_compute_open(runtime_, nullptr, &compute));
    must(greta_stream_open(compute, &stream));
    auto timed = sized<greta_timeline_options>();
    timed.timed = 1;
    must(greta_timeline_open(compute, &timed, &timeline_));
    info = sized<greta_device_info>();
    must(greta_runtime_describe(runtime_, &info));
  }
  ~Rig() {
    greta_compute_close(compute);
    greta_runtime_close(runtime_);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  static void must(greta_status status) {
    if (!status) return;
    fprintf(stderr, "%s\n", greta_error_text());
    exit(1);
  }
  bool gpu() const { return !info.cpu_type; }
  // Bytes that no cache holds.
  uint64_t beyond_caches() const { return gpu() ? uint64_t(512) << 20 : uint64_t(128) << 20; }
  double bandwidth() {
    uint64_t bytes = 0;
    must(greta_runtime_measure_bandwidth(runtime_, &bytes));
    return double(bytes);
  }

  // Memory whose words are small floats in every type: no zero, no NaN. It is closed by drop().
  greta_buffer buffer(uint64_t bytes, uint32_t word = 0x11111111) {
    auto options = sized<greta_buffer_options>();
    options.bytes = (bytes + 3) / 4 * 4;
    greta_buffer made = {};
    must(greta_buffer_open(compute, &options, &made));
    must(greta_stream_fill(compute, stream, made, 0, options.bytes, word));
    buffers_.push_back(made);
    return made;
  }
  greta_tensor tensor(std::vector<uint64_t> shape) {
    greta_tensor made = {};
    uint64_t values = 1;
    made.rank = uint32_t(shape.size());
    for (size_t d = 0; d < shape.size(); ++d) values *= made.shape[d] = shape[d];
    made.buffer = buffer(values * sizeof(float), 0x3f000000);  // 0.5
    return made;
  }
  static uint32_t type(const char* name) {
    uint32_t found = 0;
    must(greta_type_find(name, &found));
    return found;
  }
  // Matrices of the same shape, so many that no cache holds all of them, or one.
  std::vector<greta_weights> weights(const char* of, uint64_t n, uint64_t depth, bool many) {
    greta_weights made = {};
    uint64_t bytes = 0;
    must(greta_weights_size(compute, type(of), n, depth, &made, &bytes, nullptr));
    weight_bytes = double(bytes);
    std::vector<greta_weights> all(many ? size_t(beyond_caches() / bytes + 1) : 1, made);
    for (greta_weights& each : all) each.buffer = buffer(bytes);
    return all;
  }
  void drop() {
    must(greta_stream_wait(compute, stream));
    for (const greta_buffer buffer : buffers_) must(greta_buffer_close(compute, buffer));
    buffers_.clear();
  }

  // The seconds of one call of record(i), i = 0, 1, ...: the least of several runs of many calls, and the
  // median. Each run takes about a share of the given time.
  struct Times {
    double least, median;
    uint32_t calls;
  };
  Times time(const std::function<void(uint32_t)>& record) {
    double first = run(record, 1);
    first = run(record, 1);
    const auto calls = uint32_t(std::clamp(seconds_ / runs_ / first, 1.0, 2000.0));
    std::vector<double> all;
    for (uint32_t r = 0; r < runs_; ++r) all.push_back(run(record, calls) / calls);
    std::sort(all.begin(), all.end());
    return {all.front(), all[runs_ / 2], calls};
  }

  greta_compute* compute = nullptr;
  greta_stream stream = {};
  greta_device_info info = {};
  double weight_bytes = 0;  // of the last weights()

 private:
  double run(const std::function<void(uint32_t)>& record, uint32_t calls) {
    uint64_t ns = 0;
    must(greta_stream_wait(compute, stream));
    must(greta_stream_signal(compute, stream, timeline_, ++signal_));
    for (uint32_t i = 0; i < calls; ++i) record(i);
    must(greta_stream_signal(compute, stream, timeline_, ++signal_));
    must(greta_timeline_wait(compute, timeline_, signal_));
    must(greta_timeline_elapsed(compute, timeline_, signal_ - 1, signal_, &ns));
    return double(std::max<uint64_t>(ns, 1)) * 1e-9;
  }

  const double seconds_;
  const uint32_t runs_;
  greta_runtime* runtime_ = nullptr;
  greta_timeline timeline_ = {};
  uint64_t signal_ = 0;
  std::vector<greta_buffer> buffers_;
};

}  // namespace greta::bench
