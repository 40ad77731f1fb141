// greta-bench-ops [-t THREADS] [-r REPEATS] [ROW] [N DEPTH TOKENS]: times rows of the kernel table on
// the CPU. ROW is part of a row's name ("matmul", "rows_avx2_q4_k"); without N DEPTH TOKENS the shapes
// of a 1.1B model at 1, 4, 16 and 512 tokens are taken.
//
// With few tokens a matmul is timed over copies of its weight that no cache holds. The last columns
// compare with a plain read of memory on the same threads in the same minute: on a shared machine only
// such ratios mean something.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tune/tune.h"

namespace greta {
namespace {

constexpr uint64_t kColdBytes = 256u << 20;

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
    GRETA_TRY(open_device("cpu", device, &opened_));
    device_.reset(opened_);
    Stream* stream = nullptr;
    GRETA_TRY(device_->create_stream(&stream));
    stream_.reset(stream);
    GRETA_TRY(device_->allocate(sizeof(StepState) + 4096, Memory::Device, &step_));
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
    const uint64_t weight_bytes = tensor_bytes(row.type, row.layout, shape.n, shape.depth, 1);
    const uint64_t copies = shape.tokens > 8 ? 1 : std::max<uint64_t>(1, kColdBytes / weight_bytes);
    Buffer weights, x, y;
    GRETA_TRY(device_->allocate(weight_bytes * copies, Memory::Device, &weights));
    GRETA_TRY(device_->allocate(uint64_t(shape.tokens) * q8_row_bytes(uint64_t(shape.depth)) * 4,
                                Memory::Device, &x));
    GRETA_TRY(device_->allocate(uint64_t(shape.tokens) * shape.n * 4, Memory::Device, &y));
    for (Buffer* buffer : {&weights, &x}) memset(buffer->mapped, 0x11, buffer->bytes);  // no zero, no NaN
    static_cast<StepState*>(step_.mapped)->token_count = shape.tokens;
    Call call = CallMaker{{&step_, 0, step_.bytes}}.matmul({row.type, row.layout, shape.n, shape.depth},
                                                           {&x, 0, x.bytes}, {&y, 0, y.bytes});
    call.form = row.form;
    const Status status = time_launches(row, call, shape.tokens, weights, weight_bytes, copies);
    for (Buffer* buffer : {&weights, &x, &y}) device_->release(*buffer);
    return status;
  }

 private:
  Status time_launches(const KernelRow& row, Call call, uint32_t tokens, const Buffer& weights,
                       uint64_t weight_bytes, uint64_t copies) {
    Kernel kernel;
    GRETA_TRY(device_->load(row.code, &kernel));
    double best = 1e30;
    for (uint32_t repeat = 0; repeat < repeats_; ++repeat) {
      const uint64_t start = now_ns();
      for (uint64_t copy = 0; copy < copies; ++copy) {
        call.weight.slice = {&weights, copy * weight_bytes, weight_bytes};
        Launch launch;
        make_launch({&call, 1}, row, tokens, &device_->info(), &launch);
        GRETA_TRY(stream_->dispatch(kernel, launch.groups, launch.arguments(),
                                    {launch.accesses, launch.access_count}));
        GRETA_TRY(stream_->barrier());
      }
      GRETA_TRY(stream_->wait());
      best = std::min(best, double(now_ns() - start) * 1e-9 / double(copies));
    }
    device_->unload(kernel);
    const double bytes = double(weight_bytes) / best,
                 ops = 2.0 * call.weight.n * call.weight.depth * tokens / best;
    printf("%-34s %6u %6u %6u %10.1f %8.1f %8.0f %5.0f%%\n", row.name, call.weight.n, call.weight.depth,
           tokens, best * 1e6, bytes * 1e-9, ops * 1e-9, 100 * bytes / bandwidth_);
    return {};
  }

  Device* opened_ = nullptr;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;  // dies before the device
  Buffer step_;
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
