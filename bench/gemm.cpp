// greta-bench-matmul --ops gemm: products of many tokens, by the rows of the kernel table that read x in
// float16, one line of JSON each. A name says what is multiplied: "f16 GEMM", "bf16 GEMM", and "W4A16 GEMM"
// for weights of four bits. Without --sweep a product is timed as a plan would run it.
//
// --sweep NAME[=VALUE[:VALUE]][,NAME] also times other values of these constants:
//   tile      rows x tokens of a group, such as 128x64; without values all of the table's
//   splits    groups that share a tile; without values 1, 2, 4, 8 and 16
//   threads, step, buffers, round     on Vulkan alone: kernels of other backends have them in their code
// "chosen" marks what a plan runs. A file of these lines is what a tuner of the device starts from.
#include <cstdio>
#include <cstdlib>

#include "product_bench.h"

namespace greta {
namespace {

// Values of a constant; none: the row's own.
struct Sweep {
  std::string name;
  std::vector<std::string> values;
};
constexpr const char* kNames[] = {"tile", "splits", "threads", "step", "buffers", "round"};

std::vector<std::string> parts_of(const std::string& text, char between) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(between, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Status read_sweeps(const std::string& text, const DeviceInfo& info, std::vector<Sweep>* out) {
  for (const std::string& part : parts_of(text, ',')) {
    const size_t equals = std::min(part.find('='), part.size());
    Sweep sweep = {part.substr(0, equals), {}};
    if (equals < part.size()) sweep.values = parts_of(part.substr(equals + 1), ':');
    const auto known = std::find(std::begin(kNames), std::end(kNames), sweep.name);
    if (known == std::end(kNames))
      return fail(Code::Argument, "--sweep %s: the constants are tile, splits, threads, step, buffers, round",
                  sweep.name.c_str());
    if (known - kNames >= 2 && strcmp(info.backend, "vulkan"))
      return fail(Code::Argument, "--sweep %s: kernels of %s have it in their code", sweep.name.c_str(),
                  info.backend);
    if (known - kNames >= 2 && sweep.values.empty())
      return fail(Code::Argument, "--sweep %s needs values, such as %s=32:64", sweep.name.c_str(),
                  sweep.name.c_str());
    if (sweep.name == "splits" && sweep.values.empty()) sweep.values = {"1", "2", "4", "8", "16"};
    out->push_back(std::move(sweep));
  }
  return {};
}

// "f16 GEMM", "W4A16 GEMM": the bits of a weight stand in the type's name.
std::string gemm_name(QuantType type) {
  const QuantInfo& info = quant_info(type);
  const char* bits = strpbrk(info.name, "0123456789");
  if (info.block == 1 || !bits) return std::string(info.name) + " GEMM";
  return std::string("W") + *bits + "A16 GEMM";
}

class Gemms {
 public:
  Gemms(Bench& bench, std::vector<Sweep> sweeps) : bench_(bench), sweeps_(std::move(sweeps)) {}

  Status time(QuantType type, const Shape& shape) {
    const Layout layout = preferred_layout(type, bench_.filter());
    Call call = CallMaker{}.matmul({type, layout, shape.n, shape.depth}, {}, {});
    call.form = Form::F16;
    const KernelRow* rows[64];
    const uint32_t count = find_rows({&call, 1}, shape.tokens, bench_.filter(), rows);
    const KernelRow* best = best_row({&call, 1}, shape.tokens, bench_.filter());
    bool prepared = false;
    for (uint32_t i = 0; i < count; ++i) {
      const KernelRow& row = *rows[i];
      if (row.form != Form::F16 || !row.rank || (&row != best && !sweeps("tile"))) continue;
      if (!prepared) GRETA_TRY(bench_.prepare(row, shape));
      prepared = true;
      const Variant own = {row.code.group_size[0], row.tile, row.tile_tokens, 0, 0, 0,
                           choose_splits({&call, 1}, row, shape.tokens, bench_.filter())};
      time_variants(row, shape, own, &row == best ? own.splits : 0);
    }
    return {};
  }

 private:
  bool sweeps(const char* name) const {
    return std::any_of(sweeps_.begin(), sweeps_.end(),
                       [&](const Sweep& sweep) { return sweep.name == name; });
  }

  // Sets a constant; returns false where the row has no such value.
  static bool set(Variant* variant, const KernelRow& row, const std::string& name, const std::string& value) {
    const auto number = uint32_t(atoi(value.c_str()));
    if (name == "tile") {
      char own[32];
      snprintf(own, sizeof own, "%ux%u", row.tile, row.tile_tokens);
      return value == own;
    }
    if (name == "splits") {
      variant->splits = number;
      return number >= 1 && number <= row.splits;
    }
    if (!variant->step) variant->step = 32, variant->buffers = 2, variant->once = 1;
    uint32_t& constant = name == "threads"   ? variant->threads
                         : name == "step"    ? variant->step
                         : name == "buffers" ? variant->buffers
                                             : variant->once;
    constant = number;
    return true;
  }

  // All combinations of the constants' values. `chosen` is the number of splits that a plan has, or 0.
  void time_variants(const KernelRow& row, const Shape& shape, const Variant& own, uint32_t chosen) {
    std::vector<Variant> variants = {own};
    for (const Sweep& sweep : sweeps_) {
      if (sweep.values.empty()) continue;
      std::vector<Variant> more;
      for (Variant variant : variants)
        for (const std::string& value : sweep.values)
          if (Variant other = variant; set(&other, row, sweep.name, value)) more.push_back(other);
      variants = more;
    }
    for (const Variant& variant : variants) {
      if (variant.splits > divide_up(shape.depth, kTileColumns)) continue;
      Timing timing;
      const bool timed = bench_.time(row, variant, false, &timing).ok();
      print(row, shape, variant, timing, timed, variant.splits == chosen && !variant.step);
    }
  }

  void print(const KernelRow& row, const Shape& shape, const Variant& variant, const Timing& timing,
             bool timed, bool chosen) const {
    printf("{\"op\": \"%s\", \"type\": \"%s\", \"kernel\": \"%s\", ", gemm_name(row.type).c_str(),
           quant_info(row.type).name, row.name);
    printf("\"n\": %u, \"depth\": %u, \"tokens\": %u, ", shape.n, shape.depth, shape.tokens);
    printf("\"tile\": \"%ux%u\", \"splits\": %u", variant.rows, variant.tokens, variant.splits);
    if (variant.step)
      printf(", \"threads\": %u, \"step\": %u, \"buffers\": %u, \"round\": %u", variant.threads, variant.step,
             variant.buffers, variant.once);
    if (timed)
      printf(", \"us\": %.2f, \"tflops\": %.3f, \"nmse\": %.2g, \"right\": %s, \"chosen\": %s}\n",
             timing.alone * 1e6, bench_.flops() / timing.alone * 1e-12, timing.error,
             timing.error < 1e-6 ? "true" : "false", chosen ? "true" : "false");
    else
      printf(", \"failed\": true}\n");
    fflush(stdout);
  }

  Bench& bench_;
  std::vector<Sweep> sweeps_;
};

}  // namespace

Status time_gemm(const GemmOptions& options) {
  Bench bench;
  GRETA_TRY(bench.open(options.device));
  const DeviceInfo& info = bench.device().info();
  std::vector<Sweep> sweeps;
  GRETA_TRY(read_sweeps(options.sweep, info, &sweeps));
  std::vector<QuantType> types;
  const std::string names = options.types.empty() ? "f16,bf16,q4_0,q4_k" : options.types;
  for (const std::string& name : parts_of(names, ',')) {
    QuantType type;
    if (!quant_from_name(name.c_str(), &type))
      return fail(Code::Argument, "there is no type %s", name.c_str());
    types.push_back(type);
  }
  uint64_t bandwidth = 0, arithmetic = 0;
  GRETA_TRY(measure_bandwidth(bench.device(), &bandwidth));
  GRETA_TRY(measure_arithmetic(bench.device(), &arithmetic));
  printf("{\"device\": \"%s\", \"backend\": \"%s\", \"arch\": \"%s\", \"driver\": \"%s\", "
         "\"units\": %u, \"read_gbps\": %.0f, \"multiply_tflops\": %.2f}\n",
         info.name, info.backend, info.arch, info.driver, info.unit_count, double(bandwidth) * 1e-9,
         double(arithmetic) * 1e-12);
  std::vector<Shape> shapes = {options.shape};
  if (!options.shape.n) {
    shapes.clear();
    for (const uint32_t tokens : {16u, 64u, 128u, 512u})
      for (const auto& [n, depth] :
           {std::pair(14336u, 4096u), {4096u, 4096u}, {4096u, 14336u}, {1024u, 4096u}})
        shapes.push_back({n, depth, tokens, false});
  }
  Gemms gemms(bench, std::move(sweeps));
  for (const QuantType type : types)
    for (const Shape& shape : shapes) GRETA_TRY(gemms.time(type, shape));
  return {};
}

}  // namespace greta
