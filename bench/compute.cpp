// greta-bench-compute [--device NAME] [--seconds S] [--large] [PRESET ...]: times the operations of
// greta_compute.h, as CSV behind lines of metadata that begin with #.
//
// Presets: smoke (every operation once, small), fill, gemm, linear, rmsnorm, layernorm, softmax, rope,
// attention, block (a layer of an 8B llama as one graph), and as in `greta-cli bench` standard (all of
// these), perf (all, with the shapes of GPUs and 10 runs) and verify (all, 12 runs). Without one it is smoke.
// --large takes the shapes of GPUs on a processor, too.
//
// Times are those of the device, by a timeline; on a processor those of the thread that waits. Weights of few
// rows rotate over copies that no cache holds. Bytes are what must be moved once: weights, x, y, caches.
#include <cmath>
#include <cstring>

#include "llama_layer.h"

namespace greta::bench {
namespace {

struct Options {
  const char* device = "auto";
  double seconds = 0.5;  // of each case
  uint32_t runs = 5;     // in these seconds
  bool large = false;
  std::vector<std::string> presets;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : rig_(options.device, options.seconds, options.runs), large_(options.large || rig_.gpu()) {
    const uint32_t version = greta_version();
    printf("# greta %u.%u.%u, device %s: %s, %s, %s\n", version / 10000, version / 100 % 100, version % 100,
           rig_.info.id, rig_.info.name, rig_.info.arch, rig_.info.driver);
    printf("# %u units, plain read %.1f GB/s, %.2f s for each case in %u runs\n", rig_.info.unit_count,
           rig_.bandwidth() * 1e-9, options.seconds, options.runs);
    printf("preset,case,calls,us,median_us,gflops,gbytes_s\n");
  }

  bool run(const std::string& preset) {
    static constexpr struct {
      const char* name;
      void (Bench::*run)();
    } kPresets[] = {
        {"smoke", &Bench::smoke},         {"fill", &Bench::fill},       {"gemm", &Bench::gemm},
        {"linear", &Bench::linear},       {"rmsnorm", &Bench::rmsnorm}, {"layernorm", &Bench::layernorm},
        {"softmax", &Bench::softmax},     {"rope", &Bench::rope},       {"elementwise", &Bench::elementwise},
        {"attention", &Bench::attention}, {"block", &Bench::block}};
    preset_ = preset;
    if (preset == "standard" || preset == "perf" || preset == "verify") {
      for (const auto& each : kPresets)
        if (each.run != &Bench::smoke) (this->*each.run)();
      return true;
    }
    for (const auto& each : kPresets)
      if (preset == each.name) {
        (this->*each.run)();
        return true;
      }
    return false;
  }

 private:
  static constexpr auto must = Rig::must;

  void report(const std::string& name, const Work& work, const std::function<void(uint32_t)>& record) {
    const Rig::Times times = rig_.time(record);
    printf("%s,%s,%u,%.2f,%.2f,%.1f,%.1f\n", preset_.c_str(), name.c_str(), times.calls, times.least * 1e6,
           times.median * 1e6, work.flops / times.least * 1e-9, work.bytes / times.least * 1e-9);
    fflush(stdout);
    rig_.drop();
  }
  template <class Call>
  greta_buffer scratch_of(greta_status (*ask)(greta_compute*, const Call*, uint64_t*), const Call& call) {
    uint64_t bytes = 0;
    must(ask(rig_.compute, &call, &bytes));
    return bytes ? rig_.buffer(bytes) : greta_buffer{};
  }

  void linear_case(const char* type, uint64_t rows, uint64_t n, uint64_t depth) {
    const auto weights = rig_.weights(type, n, depth, rows <= 16);
    auto call = sized<greta_linear_call>();
    call.weights = weights[0], call.x = rig_.tensor({rows, depth}), call.y = rig_.tensor({rows, n});
    const greta_buffer scratch = scratch_of(greta_linear_scratch, call);
    char name[96];
    snprintf(name, sizeof name, "%s %llux%llux%llu", type, (unsigned long long)rows, (unsigned long long)n,
             (unsigned long long)depth);
    report(name, {2.0 * double(rows * n * depth), rig_.weight_bytes + 4.0 * double(rows * (n + depth))},
           [&](uint32_t i) {
             call.weights = weights[i % weights.size()];
             must(greta_linear(rig_.compute, rig_.stream, &call, scratch, 0));
           });
  }
  void gemm_case(uint32_t type, const char* name, uint64_t size) {
    auto call = sized<greta_gemm_call>();
    call.alpha = 1;
    call.a = call.b = call.y = rig_.tensor({size, size});
    call.b.buffer = rig_.tensor({size, size}).buffer, call.y.buffer = rig_.tensor({size, size}).buffer;
    call.a.type = call.b.type = call.y.type = type;
    const double bytes = type == GRETA_TYPE_F32 ? 4 : 2;
    report(std::string(name) + " " + std::to_string(size),
           {2.0 * double(size * size * size), 3 * bytes * double(size * size)},
           [&](uint32_t) { must(greta_gemm(rig_.compute, rig_.stream, &call, {}, 0)); });
  }
  void gemm() {
    for (const uint64_t size : {1024, 4096, 8192}) {
      if (size != 1024 && !large_) break;
      gemm_case(GRETA_TYPE_F32, "f32", size), gemm_case(GRETA_TYPE_F16, "f16", size);
      gemm_case(GRETA_TYPE_BF16, "bf16", size);
    }
  }
  void linear() {
    for (const char* type : {"q4_k", "q8_0", "f16"})
      for (const uint64_t rows : {1, 4, 16, 64, 512, 4096})
        if (rows <= 512 || large_) linear_case(type, rows, 4096, 14336);
  }
  void rmsnorm_case(uint64_t rows, uint64_t width) {
    auto call = sized<greta_rms_norm_call>();
    call.x = rig_.tensor({rows, width}), call.y = rig_.tensor({rows, width});
    call.gain = rig_.tensor({width}), call.epsilon = 1e-5f;
    report(shape_of(rows, width), {4.0 * double(rows * width), 8.0 * double(rows * width)},
           [&](uint32_t) { must(greta_rms_norm(rig_.compute, rig_.stream, &call, {}, 0)); });
  }
  void rmsnorm() { rmsnorm_case(4096, 8192), rmsnorm_case(16, 8192); }
  void layernorm() {
    const uint64_t rows = 4096, width = 8192;
    auto call = sized<greta_layer_norm_call>();
    call.x = rig_.tensor({rows, width}), call.y = rig_.tensor({rows, width});
    call.gain = rig_.tensor({width}), call.bias = rig_.tensor({width}), call.epsilon = 1e-5f;
    report(shape_of(rows, width), {7.0 * double(rows * width), 8.0 * double(rows * width)},
           [&](uint32_t) { must(greta_layer_norm(rig_.compute, rig_.stream, &call, {}, 0)); });
  }
  void softmax_case(uint64_t rows, uint64_t width, bool masked) {
    auto call = sized<greta_softmax_call>();
    call.x = rig_.tensor({rows, width}), call.y = rig_.tensor({rows, width});
    if (masked) call.mask = rig_.tensor({1, width});
    report(shape_of(rows, width) + (masked ? " masked" : ""),
           {20.0 * double(rows * width), 8.0 * double(rows * width)},
           [&](uint32_t) { must(greta_softmax(rig_.compute, rig_.stream, &call, {}, 0)); });
  }
  void softmax() { softmax_case(4096, 8192, false), softmax_case(4096, 8192, true); }
  void rope() {
    const uint64_t rows = 4096, heads = 64, width = 128;
    auto call = sized<greta_rope_call>();
    call.x = call.y = rig_.tensor({rows, heads, width}), call.table = rig_.tensor({rows, width / 2, 2});
    report(shape_of(rows, heads * width),
           {3.0 * double(rows * heads * width), 8.0 * double(rows * heads * width)},
           [&](uint32_t) { must(greta_rope(rig_.compute, rig_.stream, &call, {}, 0)); });
  }
  void elementwise() {
    const uint64_t rows = 4096, width = 8192;
    auto gate = sized<greta_gate_call>();
    gate.gate = rig_.tensor({rows, width}), gate.up = rig_.tensor({rows, width});
    gate.y = rig_.tensor({rows, width});
    report("gate " + shape_of(rows, width), {0, 12.0 * double(rows * width)},
           [&](uint32_t) { must(greta_gate(rig_.compute, rig_.stream, &gate, {}, 0)); });
    auto add = sized<greta_add_call>();
    add.a = rig_.tensor({rows, width}), add.b = rig_.tensor({rows, width}),
    add.y = rig_.tensor({rows, width});
    report("add " + shape_of(rows, width), {double(rows * width), 12.0 * double(rows * width)},
           [&](uint32_t) { must(greta_add(rig_.compute, rig_.stream, &add, {}, 0)); });
  }
  void fill() {
    const uint64_t bytes = uint64_t(256) << 20;
    const greta_buffer filled = rig_.buffer(bytes);
    report("fill 256 MiB", {0, double(bytes)},
           [&](uint32_t) { must(greta_stream_fill(rig_.compute, rig_.stream, filled, 0, bytes, 1)); });
    const greta_buffer from = rig_.buffer(bytes), to = rig_.buffer(bytes);
    report("copy 256 MiB", {0, 2.0 * double(bytes)},
           [&](uint32_t) { must(greta_stream_copy(rig_.compute, rig_.stream, to, 0, from, 0, bytes)); });
  }

  // 32 heads of 128 over 8 of a float16 cache, of so many sequences. Either all of a prompt in steps of
  // `rows`, or with one row the last of `depth` positions.
  void attention_case(uint32_t sequences, uint32_t rows, uint32_t depth) {
    constexpr uint32_t kHeads = 32, kKvHeads = 8, kWidth = 128;
    const bool prompt = rows > 1;
    std::vector<greta_step> steps(prompt ? depth / rows : 1);
    for (uint32_t s = 0; s < steps.size(); ++s)
      steps[s] = step_of(sequences, rows, prompt ? s * rows : depth - 1, depth);
    auto call = sized<greta_attention_call>();
    uint64_t bytes = 0;
    call.keys.type = GRETA_TYPE_F16, call.keys.heads = kKvHeads, call.keys.width = kWidth;
    call.keys.pages = sequences * pages_of(depth);
    must(greta_cache_size(rig_.compute, &call.keys, &bytes));
    call.values = call.keys;
    call.keys.buffer = rig_.buffer(bytes), call.values.buffer = rig_.buffer(bytes);
    const uint64_t all = uint64_t(sequences) * rows;
    call.lone_rows = !prompt;
    call.q = rig_.tensor({all, kHeads, kWidth}), call.y = rig_.tensor({all, kHeads, kWidth});
    const greta_buffer scratch = scratch_of(greta_attention_scratch, call);
    double pairs = 0;  // of queries and positions
    for (uint32_t p = prompt ? 0 : depth - 1; p < depth; ++p) pairs += double(sequences) * (p + 1);
    const double reads = prompt ? 0.5 * double(steps.size()) : 1;  // of the caches
    char name[96];
    snprintf(name, sizeof name, "%s %u x %u", prompt ? "prompt" : "decode", sequences, depth);
    report(name, {pairs * kHeads * kWidth * 4, reads * 2 * double(bytes)}, [&](uint32_t) {
      for (const greta_step step : steps) {
        must(greta_stream_step(rig_.compute, rig_.stream, step));
        must(greta_attention(rig_.compute, rig_.stream, &call, scratch, 0));
      }
    });
    must(greta_stream_step(rig_.compute, rig_.stream, {}));
    for (const greta_step step : steps) must(greta_step_close(rig_.compute, step));
  }
  void attention() {
    attention_case(1, 512, large_ ? 4096 : 1024);
    attention_case(1, 1, 4096);
    attention_case(16, 1, large_ ? 16384 : 2048);
  }
  void smoke();
  void block();
  void block_case(const char* type, uint32_t sequences, uint32_t rows);

  static uint32_t pages_of(uint32_t positions) {
    return (positions + GRETA_PAGE_POSITIONS - 1) / GRETA_PAGE_POSITIONS;
  }
  // A step of `rows` rows of each sequence, from this position on.
  greta_step step_of(uint32_t sequences, uint32_t rows, uint32_t position, uint32_t positions) {
    auto options = sized<greta_step_options>();
    options.rows = sequences * rows, options.sequences = sequences, options.positions = positions;
    options.lone_rows = rows == 1;
    greta_step step = {};
    must(greta_step_open(rig_.compute, &options, &step));
    std::vector<greta_row> list;
    for (uint32_t s = 0; s < sequences; ++s)
      for (uint32_t r = 0; r < rows; ++r) list.push_back({0, position + r, s, 0});
    must(greta_step_set(rig_.compute, rig_.stream, step, list.data(), uint32_t(list.size())));
    return step;
  }
  static std::string shape_of(uint64_t rows, uint64_t width) {
    return std::to_string(rows) + "x" + std::to_string(width);
  }

  Rig rig_;
  const bool large_;
  std::string preset_;
};

void Bench::smoke() {
  for (const char* type : {"f32", "f16", "q4_k", "q8_0"})
    for (const uint64_t rows : {1, 64}) linear_case(type, rows, 1024, 1024);
  rmsnorm_case(64, 1024);
  attention_case(2, 1, 256);
  block_case("q4_k", 1, 1);
}

void Bench::block_case(const char* type, uint32_t sequences, uint32_t rows) {
  const greta_step step = step_of(sequences, rows, 512, LlamaLayer::kPositions);
  LlamaLayer layer(rig_, step, type, sequences, rows);
  const greta_graph graph = layer.record();
  auto info = sized<greta_graph_info>();
  must(greta_graph_describe(rig_.compute, graph, &info));
  char name[96];
  snprintf(name, sizeof name, "%s %u x %u rows: %u launches %u barriers", type, sequences, rows,
           info.launches, info.barriers);
  report(name, layer.work,
         [&](uint32_t) { must(greta_graph_run(rig_.compute, rig_.stream, graph, nullptr, 0)); });
  must(greta_stream_step(rig_.compute, rig_.stream, {}));
  must(greta_graph_close(rig_.compute, graph));
  must(greta_step_close(rig_.compute, step));
}

void Bench::block() {
  block_case("q4_k", 1, 1);
  block_case("q4_k", 16, 1);
  block_case("q4_k", 1, 512);
  if (large_) block_case("f16", 1, 1);
}

bool read_options(int count, char** words, Options* out) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--large") {
      out->large = true;
    } else if (word == "--device" || word == "--seconds") {
      if (++i == count) return false;
      if (word == "--device")
        out->device = words[i];
      else
        out->seconds = atof(words[i]);
    } else if (word[0] == '-') {
      return false;
    } else {
      out->presets.push_back(word);
    }
  }
  if (out->presets.empty()) out->presets = {"smoke"};
  for (const std::string& preset : out->presets) {
    if (preset == "perf") out->large = true, out->runs = 10;
    if (preset == "verify") out->runs = 12;
  }
  return out->seconds > 0;
}

}  // namespace
}  // namespace greta::bench

int main(int count, char** words) {
  greta::bench::Options options;
  if (!greta::bench::read_options(count, words, &options)) {
    fprintf(stderr, "usage: greta-bench-compute [--device NAME] [--seconds S] [--large] [PRESET ...]\n");
    return 2;
  }
  greta::bench::Bench bench(options);
  for (const std::string& preset : options.presets)
    if (!bench.run(preset)) {
      fprintf(stderr, "there is no preset \"%s\"\n", preset.c_str());
      return 2;
    }
  return 0;
}
