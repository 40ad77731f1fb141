// greta-bench-gemm [-d DEVICE] [-t TYPE] [-y TYPE] [--turned A|B|AB] [--tiles] [--only TEXT] [M N K ...]:
// times general products y[M][N] = A[M][K] . B[K][N] as greta_gemm runs them, and checks some results in
// float64. -t is the type of A and B (f16), -y that of y (f16). --turned: A lies as [K][M], B as [N][K].
// Without sizes those of --preset: smoke (256 cubed, once), standard (1024, 4096 and 8192 cubed, 5 rounds;
// the default), perf (also tall and wide ones, 10 rounds), verify (as standard, 12 rounds). --tiles also
// times other tiles and groups than a plan's; --only those whose description has this text.
//
// A line is CSV: m, n, k, kernel, tile/threads/step/band (GemmBlock in kernels/abi/gemm.h), us, TFLOP/s,
// NMSE, what a plan runs. Each launch waits for the one before. Operands stay where they are, so small ones
// are read from a cache.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "selftest/quant/quant.h"
#include "selftest/reference/reference.h"
#include "tune/harness.h"

namespace greta {
namespace {

struct Size {
  uint32_t m, n, k;
};

struct Options {
  const char* device = "auto";
  uint32_t type = kGemmF16, y_type = kGemmF16;
  bool a_turned = false, b_turned = false, tiles = false;
  uint32_t rounds = 5;  // of which the shortest counts
  std::string only;
  std::vector<Size> sizes;
};

// A tile, and the threads of a group.
struct Variant {
  uint32_t threads, high, wide;
};
constexpr Variant kVariants[] = {{256, 128, 256}, {256, 256, 128}, {256, 192, 128}, {256, 128, 192},
                                 {256, 128, 128}, {128, 128, 128}, {128, 128, 64},  {128, 64, 128},
                                 {128, 64, 64},   {64, 64, 64}};

constexpr uint32_t kPattern = 1000003, kSamples = 64;

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {}

  Status run() {
    Device* device = nullptr;
    GRETA_TRY(open_device(options_.device, {}, &device));
    device_.reset(device);
    harness_ = std::make_unique<Harness>(*device_);
    GRETA_TRY(harness_->open());
    const DeviceInfo& info = device_->info();
    uint64_t arithmetic = 0;
    GRETA_TRY(measure_arithmetic(*device_, &arithmetic));
    printf("# %s, %s, %u units, products %.1f TFLOP/s\n", info.name, info.driver, info.unit_count,
           double(arithmetic) * 1e-12);
    make_pattern();
    for (const Size& size : options_.sizes) {
      GRETA_TRY(prepare(size));
      GRETA_TRY(time_size(size));
      harness_->reset();
    }
    return {};
  }

 private:
  uint32_t bytes_of(uint32_t type) const { return type == kGemmF32 ? 4 : 2; }

  // Values of both operands: multiples of 1/64 from -1 to 1, which every type has.
  void make_pattern() {
    reference::Random random(1);
    values_.resize(kPattern);
    for (float& value : values_) value = float(int32_t(random() % 129) - 64) / 64;
  }

  std::vector<uint8_t> operand(uint64_t count) const {
    const uint32_t bytes = bytes_of(options_.type);
    std::vector<uint8_t> pattern(values_.size() * bytes), all(count * bytes);
    const std::vector<uint8_t> halves = reference::half_bytes({values_.begin(), values_.end()});
    for (size_t i = 0; i < values_.size(); ++i) {
      const auto bits = __builtin_bit_cast(uint32_t, values_[i]);
      const auto brain = uint16_t(bits >> 16);
      const void* from = options_.type == kGemmF32   ? static_cast<const void*>(&bits)
                         : options_.type == kGemmF16 ? static_cast<const void*>(&halves[i * 2])
                                                     : static_cast<const void*>(&brain);
      memcpy(&pattern[i * bytes], from, bytes);
    }
    for (size_t at = 0; at < all.size(); at += pattern.size())
      memcpy(&all[at], pattern.data(), std::min(pattern.size(), all.size() - at));
    return all;
  }

  Status prepare(const Size& size) {
    const uint64_t m = size.m, n = size.n, k = size.k;
    GRETA_TRY(harness_->put(operand(m * k), &a_));
    GRETA_TRY(harness_->put(operand(k * n), &b_));
    GRETA_TRY(harness_->room(m * n * bytes_of(options_.y_type), &y_));
    Call::Gemm shape = {.m = size.m,
                        .n = size.n,
                        .k = size.k,
                        .type = options_.type,
                        .y_type = options_.y_type,
                        .a_turned = options_.a_turned,
                        .b_turned = options_.b_turned};
    shape.a_stride = options_.a_turned ? size.m : size.k;
    shape.b_stride = options_.b_turned ? size.k : size.n;
    shape.y_stride = size.n;
    call_ = CallMaker{}.gemm(a_, b_, y_, shape);
    return harness_->finish();
  }

  Status time_size(const Size& size) {
    const KernelRow* best = nullptr;
    GRETA_TRY(choose_row({&call_, 1}, 1, harness_->filter(), &best));
    time(size, *best, nullptr);
    if (!options_.tiles || !best->rank) return {};
    for (const Variant& variant : kVariants) {
      KernelRow row = *best;
      row.tile = variant.high, row.tile_tokens = variant.wide;
      row.code.group_size[0] = variant.threads, row.code.subgroups = 0;
      time(size, row, &variant);
    }
    return {};
  }

  // `variant` is null for what a plan runs.
  void time(const Size& size, const KernelRow& row, const Variant* variant) {
    char text[96];
    Launch launch;
    make_launch({&call_, 1}, row, 1, &device_->info(), &launch);
    GemmBlock block;
    memcpy(&block, launch.block, sizeof block);
    snprintf(text, sizeof text, "%ux%u/%u/%u/%u", row.tile, row.tile_tokens, row.code.group_size[0],
             block.step, block.band);
    if (!strstr(text, options_.only.c_str())) return;
    printf("%u,%u,%u,%s,%s,", size.m, size.n, size.k, row.name, text);
    fflush(stdout);
    uint64_t ns = 1;
    double error = 0;
    const Status status = measure(row, &ns, &error);
    const double flops = 2.0 * size.m * size.n * size.k;
    if (status.ok())
      printf("%.2f,%.4g,%.2g,%s%s\n", double(ns) * 1e-3, flops / double(ns) * 1e-3, error,
             error < 1e-5 ? "right" : "WRONG", variant ? "" : ",chosen");
    else
      printf("failed: %s\n", error_text());
    fflush(stdout);
  }

  Status measure(const KernelRow& row, uint64_t* ns, double* error) {
    const bool cpu = device_->info().cpu_type;
    Launch launch;
    GRETA_TRY(harness_->fill(y_, 0x7fff7fff));
    GRETA_TRY(harness_->prepare({&call_, 1}, row, 1, &launch));
    uint64_t once = 0;
    GRETA_TRY(harness_->time({&launch, 1}, Harness::Order::Apart, &once));
    const size_t count = size_t(std::clamp<uint64_t>(20'000'000 / std::max<uint64_t>(once, 1), 1, 64));
    const std::vector<Launch> launches(cpu ? 1 : count, launch);
    GRETA_TRY(harness_->best_time(launches, Harness::Order::Apart, ns, options_.rounds));
    *ns /= launches.size();
    return check(call_.gemm, error);
  }

  double value_of(uint64_t at) const { return double(values_[at % kPattern]); }

  double read_y(const uint8_t* from) const {
    if (options_.y_type == kGemmF32) {
      float value;
      memcpy(&value, from, sizeof value);
      return double(value);
    }
    uint16_t bits;
    memcpy(&bits, from, sizeof bits);
    if (options_.y_type == kGemmBf16) return double(__builtin_bit_cast(float, uint32_t(bits) << 16));
    const uint32_t exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double size = exponent == 31 ? INFINITY
                        : exponent     ? std::ldexp(1024 + mantissa, int(exponent) - 25)
                                       : std::ldexp(mantissa, -24);
    return bits & 0x8000 ? -size : size;
  }

  Status check(const Call::Gemm& g, double* out) {
    const uint32_t bytes = bytes_of(options_.y_type);
    reference::Random random(3);
    double error = 0, size = 0;
    for (uint32_t sample = 0; sample < kSamples; ++sample) {
      const auto m = uint32_t(random() % g.m), n = uint32_t(random() % g.n);
      double sum = 0;
      for (uint64_t k = 0; k < g.k; ++k)
        sum += value_of(g.a_turned ? k * g.m + m : uint64_t(m) * g.k + k) *
               value_of(g.b_turned ? uint64_t(n) * g.k + k : k * g.n + n);
      uint8_t read[4];
      // Slices are read by words of four bytes.
      const uint64_t at = (uint64_t(m) * g.n + n) * bytes, whole = at & ~uint64_t(3);
      const Slice slice = {y_.buffer, y_.offset + whole, 4};
      GRETA_TRY(harness_->read({&slice, 1}, read));
      const double y = read_y(read + (at - whole));
      error += (y - sum) * (y - sum), size += sum * sum;
    }
    *out = error / size;
    return {};
  }

  const Options& options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Harness> harness_;  // dies before the device
  std::vector<float> values_;
  Slice a_, b_, y_;
  Call call_;
};

bool read_type(const char* word, uint32_t* out) {
  constexpr const char* kNames[] = {"f32", "f16", "bf16"};
  for (uint32_t type = 0; type < kGemmTypes; ++type)
    if (!strcmp(word, kNames[type])) return *out = type, true;
  return false;
}

// The presets of `greta-cli bench`, for these products.
struct Preset {
  const char* name;
  uint32_t rounds;
  std::vector<uint32_t> sizes;
};

const Preset* preset_of(const std::string& name) {
  static const Preset kPresets[] = {
      {"smoke", 1, {256, 256, 256}},
      {"standard", 5, {1024, 1024, 1024, 4096, 4096, 4096, 8192, 8192, 8192}},
      {"perf",
       10,
       {1024, 1024, 1024, 4096, 4096, 4096, 8192, 8192, 8192, 512, 14336, 4096, 16384, 512, 4096}},
      {"verify", 12, {1024, 1024, 1024, 4096, 4096, 4096, 8192, 8192, 8192}}};
  const auto found =
      std::find_if(std::begin(kPresets), std::end(kPresets), [&](const Preset& p) { return name == p.name; });
  return found == std::end(kPresets) ? nullptr : found;
}

bool read_options(int count, char** words, Options* out) {
  std::vector<uint32_t> numbers;
  const Preset* preset = preset_of("standard");
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const char* const next = i + 1 < count ? words[i + 1] : nullptr;
    if (word == "--tiles") {
      out->tiles = true;
    } else if (word[0] != '-') {
      numbers.push_back(uint32_t(atoi(words[i])));
    } else if (!next) {
      return false;
    } else {
      ++i;
      if (word == "-d")
        out->device = next;
      else if (word == "--preset" && !(preset = preset_of(next)))
        return false;
      else if (word == "--only")
        out->only = next;
      else if (word == "--turned")
        out->a_turned = strchr(next, 'A'), out->b_turned = strchr(next, 'B');
      else if (word != "--preset" &&
               !(word == "-t" ? read_type(next, &out->type) : word == "-y" && read_type(next, &out->y_type)))
        return false;
    }
  }
  out->rounds = preset->rounds;
  if (numbers.empty()) numbers = preset->sizes;
  for (size_t i = 0; i + 2 < numbers.size(); i += 3)
    out->sizes.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
  return numbers.size() % 3 == 0 && std::find(numbers.begin(), numbers.end(), 0u) == numbers.end() &&
         (out->y_type == kGemmF32 || out->y_type == out->type);
}

}  // namespace
}  // namespace greta

int main(int count, char** words) {
  greta::Options options;
  if (!greta::read_options(count, words, &options)) {
    fprintf(stderr,
            "usage: greta-bench-gemm [--preset smoke|standard|perf|verify] [-d DEVICE] [-t f32|f16|bf16] [-y "
            "TYPE] [--turned A|B|AB] [--tiles] "
            "[--only TEXT] [M N K ...]\n");
    return 2;
  }
  if (greta::Bench(options).run().ok()) return 0;
  fprintf(stderr, "greta-bench-gemm: %s\n", greta::error_text());
  return 1;
}
