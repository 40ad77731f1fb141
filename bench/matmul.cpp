// greta-bench-matmul [-d DEVICE] [-t TYPE[,TYPE]] [-r ROW] [-g] [-v] [N DEPTH TOKENS]: times rows of the
// kernel table that multiply by a matrix of weights and checks some of their results in float64. Without N
// DEPTH TOKENS: the matrices of an 8B model for one token and for 512. -g: two matrices N x DEPTH, a gate and
// what it gates. -v: also other tiles, threads and steps than the table's, of tiles and for the first type.
// --ops gemm: products of many tokens by name, as lines of JSON (gemm.cpp).
#include <cstdio>
#include <cstdlib>

#include "product_bench.h"

namespace greta {
namespace {

struct Options {
  const char* device = "auto";
  std::string types, row, ops, sweep;
  bool variants = false, gates = false;
  Shape shape = {};
};

constexpr Variant kVariants[] = {
    {128, 128, 128, 32, 2, 1}, {128, 128, 128, 32, 2, 0}, {256, 128, 128, 32, 2, 0},
    {128, 128, 128, 64, 1, 1}, {256, 128, 128, 64, 1, 1}, {256, 128, 128, 32, 1, 1},
    {128, 64, 128, 32, 2, 1},  {128, 64, 128, 64, 1, 1},  {128, 64, 128, 32, 2, 0},
    {128, 128, 64, 32, 2, 1},  {128, 128, 64, 64, 1, 1},  {256, 128, 64, 32, 2, 1},
    {128, 64, 64, 32, 2, 1},   {128, 64, 64, 64, 2, 1},   {256, 128, 256, 32, 1, 1},
    {256, 256, 128, 32, 1, 1}, {256, 256, 64, 32, 2, 1},  {256, 64, 256, 32, 2, 1}};

// Whether this row is to be measured: of the layout that the device prefers for its type, and no plainer than
// is used for so many tokens unless it is named.
bool measured(const KernelRow& row, const RowFilter& filter, const Options& options, const Shape& shape) {
  if (!row.rank || !strstr(row.name, options.row.c_str())) return false;
  if (options.row.empty() && (row.threads_field == 0) != (shape.tokens >= 16)) return false;
  const CallMaker make;
  Call product = make.matmul({row.type, preferred_layout(row.type, filter), shape.n, shape.depth}, {}, {});
  product.form = row.form;
  const Call calls[] = {product, product, make.gate({}, {}, {}, shape.n, 0)};
  const KernelRow* rows[64];
  const uint32_t count = find_rows({calls, shape.gates ? 3u : 1u}, shape.tokens, filter, rows);
  return std::find(rows, rows + count, &row) != rows + count;
}

void print_head(const DeviceInfo& info, uint64_t bandwidth) {
  printf("%s, %u units, %u bytes shared\n", info.name, info.unit_count, info.shared_bytes);
  printf("reads %.0f GB/s\n", double(bandwidth) * 1e-9);
  printf("%-28s %6s %6s %4s %16s %9s | %9s %8s %8s | %9s %8s %8s\n", "row", "n", "depth", "t",
         "threads tile step", "NMSE", "alone us", "TFLOP/s", "GB/s", "beside us", "TFLOP/s", "GB/s");
}

void print_timing(const Bench& bench, const KernelRow& row, const Shape& shape, const Variant& variant,
                  const Timing& timing) {
  char size[32];
  snprintf(size, sizeof size, "%u %ux%u %ux%u%s", timing.threads, variant.rows, variant.tokens, variant.step,
           variant.buffers, variant.step && !variant.once ? "h" : "");
  printf("%-28s %6u %6u %4u %16s %9.2g |", row.name, bench.rows(), shape.depth, shape.tokens, size,
         timing.error);
  for (const double seconds : {timing.alone, timing.beside})
    printf(" %9.1f %8.1f %8.0f %s", seconds * 1e6, bench.flops() / seconds * 1e-12,
           bench.bytes() / seconds * 1e-9, seconds == timing.alone ? "|" : "");
  printf("%s\n", timing.error < 1e-6 ? "" : "  WRONG");
  fflush(stdout);
}

Status run(const Options& options) {
  Bench bench;
  GRETA_TRY(bench.open(options.device));
  uint64_t bandwidth = 0;
  GRETA_TRY(measure_bandwidth(bench.device(), &bandwidth));
  print_head(bench.device().info(), bandwidth);
  std::vector<Shape> shapes;
  for (const uint32_t tokens : {1u, 512u})
    for (const auto& [n, depth] : {std::pair(14336u, 4096u), {4096u, 4096u}, {4096u, 14336u}, {1024u, 4096u}})
      shapes.push_back({n, depth, tokens, options.gates});
  if (options.shape.n) shapes = {options.shape};
  bool first = true;
  std::string types = (options.types.empty() ? "q4_k,q6_k,q8_0,q4_0" : options.types) + ",";
  for (size_t end; (end = types.find(',')) != std::string::npos; types.erase(0, end + 1)) {
    const std::string type = types.substr(0, end);
    for (size_t s = 0; s < shapes.size(); ++s) {
      const char* varied = "";  // the code whose variants have been timed
      bool prepared = false;
      for (const KernelRow& row : kernel_table()) {
        if (type != quant_info(row.type).name || !measured(row, bench.filter(), options, shapes[s])) continue;
        if (!prepared) GRETA_TRY(bench.prepare(row, shapes[s]));
        const auto time = [&](const Variant& variant) {
          Timing timing;
          if (bench.time(row, variant, true, &timing).ok())
            print_timing(bench, row, shapes[s], variant, timing);
          else
            printf("%s %u %ux%u %ux%u: %s\n", row.name, variant.threads, variant.rows, variant.tokens,
                   variant.step, variant.buffers, error_text());
        };
        time({row.code.group_size[0], row.tile, row.tile_tokens, 0, 0, 0});
        if (options.variants && first && row.splits > 1 && strcmp(varied, row.name))
          for (const Variant& variant : kVariants) time(variant);
        varied = row.name;
        prepared = true;
      }
    }
    first = false;
  }
  return {};
}

bool read_options(int count, char** words, Options* out) {
  std::vector<uint32_t> numbers;
  for (int i = 1; i < count; ++i) {
    if (!strcmp(words[i], "-v"))
      out->variants = true;
    else if (!strcmp(words[i], "-g"))
      out->gates = true;
    else if (!strcmp(words[i], "-d") && i + 1 < count)
      out->device = words[++i];
    else if (!strcmp(words[i], "-r") && i + 1 < count)
      out->row = words[++i];
    else if (!strcmp(words[i], "-t") && i + 1 < count)
      out->types = words[++i];
    else if (!strcmp(words[i], "--ops") && i + 1 < count)
      out->ops = words[++i];
    else if (!strcmp(words[i], "--sweep") && i + 1 < count)
      out->sweep = words[++i];
    else if (words[i][0] == '-')
      return false;
    else
      numbers.push_back(uint32_t(atoi(words[i])));
  }
  if (!out->ops.empty() && out->ops != "gemm") return false;
  if (numbers.empty()) return true;
  if (numbers.size() != 3) return false;
  out->shape = {numbers[0], numbers[1], numbers[2], out->gates};
  return out->shape.n && out->shape.depth && out->shape.depth % 256 == 0 && out->shape.tokens &&
         out->shape.tokens <= kMaxStepTokens;
}

}  // namespace
}  // namespace greta

int main(int count, char** words) {
  greta::Options options;
  if (!greta::read_options(count, words, &options)) {
    fprintf(stderr,
            "greta-bench-matmul [-d DEVICE] [-t TYPE[,TYPE]] [-r ROW] [-g] [-v] [N DEPTH TOKENS]; DEPTH in "
            "multiples of 256, 1 to %u TOKENS\n"
            "greta-bench-matmul --ops gemm [--sweep NAME[=VALUE[:VALUE]][,NAME]] [-d DEVICE] "
            "[-t TYPE[,TYPE]] [N DEPTH TOKENS]\n",
            kMaxStepTokens);
    return 2;
  }
  const greta::Status status =
      options.ops.empty() ? greta::run(options)
                          : greta::time_gemm({options.device, options.types, options.sweep, options.shape});
  if (status.ok()) return 0;
  fprintf(stderr, "%s\n", greta::error_text());
  return 1;
}
