// greta-bench-ops [-t THREADS] [-r REPEATS] [ROW] [N DEPTH TOKENS]: times rows of the kernel table on
// the CPU. ROW is part of a row's name ("matmul", "rows_avx2_q4_k"); without N DEPTH TOKENS the shapes
// of a 1.1B model at 1, 4, 16 and 512 tokens are taken.
//
// With few tokens a matmul is timed over copies of its weight that no cache holds. The last columns
// compare with a plain read of memory on the same threads in the same minute: on a shared machine only
// such ratios mean something.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tune/harness.h"

namespace greta {
namespace {

struct Options {
  uint32_t threads = 0, repeats = 5;
  std::string row;
  uint32_t n = 0, depth = 0, tokens = 0;
};

struct Shape {
  uint32_t n, depth, tokens;
};

class Bench {
 public:
  Status open(const Options& options) {
    DeviceOptions device;
    device.threads = options.threads;
    repeats_ = options.repeats;
    Device* opened = nullptr;
    GRETA_TRY(open_device("cpu", device, &opened));
    device_.reset(opened);
    harness_ = std::make_unique<Harness>(*device_);
    GRETA_TRY(harness_->open());
    uint64_t bandwidth = 0;
    GRETA_TRY(measure_bandwidth(*device_, &bandwidth));
    bandwidth_ = double(bandwidth);
    printf("%s, %u workers, plain read %.1f GB/s\n", device_->info().name, device_->info().unit_count,
           bandwidth_ * 1e-9);
    printf("%-34s %6s %6s %6s %10s %8s %8s %6s\n", "row", "n", "depth", "tokens", "us", "GB/s", "Gop/s",
           "read");
    return {};
  }

  bool usable(const KernelRow& row) const {
    return !strcmp(row.backend, "cpu") && !(row.needs & ~device_->info().features) && row.op_count == 1 &&
           row.ops[0] == Op::Matmul;
  }

  Status time_matmul(const KernelRow& row, const Shape& shape) {
    StepState step = {};
    step.token_count = shape.tokens;
    const uint64_t weight_bytes = tensor_bytes(row.type, row.layout, shape.n, shape.depth, 1);
    Copies weights;
    Slice x, y, of_step;
    harness_->reset();
    GRETA_TRY(harness_->copies(weight_bytes, shape.tokens <= 8, &weights));
    GRETA_TRY(harness_->room(uint64_t(shape.tokens) * q8_row_bytes(uint64_t(shape.depth)) * 4, &x));
    GRETA_TRY(harness_->room(uint64_t(shape.tokens) * shape.n * 4, &y));
    GRETA_TRY(harness_->put(&step, sizeof step, &of_step));
    for (const Slice& slice : {weights.all, x})
      GRETA_TRY(harness_->fill(slice, 0x11111111));  // no zero, no NaN
    Call call = CallMaker{of_step}.matmul({row.type, row.layout, shape.n, shape.depth}, x, y);
    call.form = row.form;
    std::vector<Launch> launches(weights.count);
    for (uint64_t i = 0; i < weights.count; ++i) {
      call.weight.slice = weights[i];
      GRETA_TRY(harness_->prepare({&call, 1}, row, shape.tokens, &launches[i]));
    }
    uint64_t ns = 0;
    GRETA_TRY(harness_->best_time(launches, Harness::Order::Apart, &ns, repeats_));
    const double seconds = double(ns) * 1e-9 / double(weights.count), bytes = double(weight_bytes) / seconds,
                 ops = 2.0 * shape.n * shape.depth * shape.tokens / seconds;
    printf("%-34s %6u %6u %6u %10.1f %8.1f %8.0f %5.0f%%\n", row.name, shape.n, shape.depth, shape.tokens,
           seconds * 1e6, bytes * 1e-9, ops * 1e-9, 100 * bytes / bandwidth_);
    return {};
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Harness> harness_;  // dies before the device
  uint32_t repeats_ = 5;
  double bandwidth_ = 1;
};

Status run(const Options& options) {
  Bench bench;
  GRETA_TRY(bench.open(options));
  std::vector<Shape> shapes;
  if (options.tokens)
    shapes.push_back({options.n, options.depth, options.tokens});
  else
    for (const uint32_t tokens : {1u, 4u, 16u, 512u})
      for (const auto& [n, depth] : {std::pair{2048u, 2048u}, {5632u, 2048u}, {2048u, 5632u}})
        shapes.push_back({n, depth, tokens});
  for (const KernelRow& row : kernel_table()) {
    if (!bench.usable(row) || !strstr(row.name, options.row.c_str())) continue;
    for (const Shape& shape : shapes) {
      if (shape.tokens < row.tokens_min || shape.tokens > row.tokens_max) continue;
      if (shape.n % row.n_multiple || shape.depth % row.depth_multiple) continue;
      GRETA_TRY(bench.time_matmul(row, shape));
    }
  }
  return {};
}

bool read_options(int count, char** words, Options* out) {
  std::vector<const char*> rest;
  for (int i = 1; i < count; ++i) {
    const bool option = !strcmp(words[i], "-t") || !strcmp(words[i], "-r");
    if (!option) {
      rest.push_back(words[i]);
      continue;
    }
    if (i + 1 == count) return false;
    (words[i][1] == 't' ? out->threads : out->repeats) = uint32_t(atoi(words[i + 1]));
    ++i;
  }
  if (rest.size() == 1 || rest.size() == 4) out->row = rest[0];
  if (rest.size() < 3) return rest.size() < 2;
  const size_t at = rest.size() - 3;
  out->n = uint32_t(atoi(rest[at]));
  out->depth = uint32_t(atoi(rest[at + 1]));
  out->tokens = uint32_t(atoi(rest[at + 2]));
  return out->n && out->depth && out->depth % 256 == 0 && out->tokens && out->tokens <= kMaxStepTokens;
}

}  // namespace
}  // namespace greta

int main(int count, char** words) {
  greta::Options options;
  if (!greta::read_options(count, words, &options)) {
    fprintf(stderr,
            "greta-bench-ops [-t THREADS] [-r REPEATS] [ROW] [N DEPTH TOKENS]; DEPTH in multiples of 256\n");
    return 2;
  }
  if (greta::run(options).ok()) return 0;
  fprintf(stderr, "%s\n", greta::error_text());
  return 1;
}
