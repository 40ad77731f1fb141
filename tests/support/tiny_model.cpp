#include "support/tiny_model.h"

#include <catch2/catch_test_macros.hpp>
#include <random>

#include "engine/executor/place.h"
#include "support/gguf_writer.h"
#include "support/limited_device.h"
#include "support/test_device.h"

namespace greta::test {

TinyModel make_tiny(const TinyShape& s) {
  TinyModel m;
  m.shape = s;
  std::mt19937 random(s.seed);
  std::normal_distribution<float> normal;
  std::vector<std::string> pieces = {"<unk>", "<s>", "</s>"};
  while (pieces.size() < s.vocab) pieces.push_back(std::to_string(pieces.size()) + "t");
  GgufWriter w;
  w.value("general.architecture", "llama").value("general.name", "tiny");
  w.value("tokenizer.ggml.model", "llama").value("tokenizer.ggml.tokens", pieces);
  w.value("tokenizer.ggml.scores", std::vector<float>(s.vocab, 0.0f));
  w.value("tokenizer.ggml.bos_token_id", 1u).value("tokenizer.ggml.eos_token_id", 2u);
  w.value("llama.block_count", s.layers).value("llama.embedding_length", s.width);
  w.value("llama.feed_forward_length", s.ffn).value("llama.context_length", s.context);
  w.value("llama.attention.head_count", s.heads).value("llama.attention.head_count_kv", s.kv_heads);
  w.value("llama.attention.layer_norm_rms_epsilon", s.epsilon).value("llama.rope.freq_base", s.rope_base);
  if (s.head_width)
    w.value("llama.attention.key_length", s.head_width).value("llama.attention.value_length", s.head_width);
  if (s.rope_width) w.value("llama.rope.dimension_count", s.rope_width);
  if (s.rope_scale != 1.0f)
    w.value("llama.rope.scaling.type", "linear").value("llama.rope.scaling.factor", s.rope_scale);

  const auto tensor = [&](const std::string& name, uint64_t depth, uint64_t n, float around, float spread) {
    std::vector<float> values(depth * std::max<uint64_t>(n, 1));
    for (float& v : values) v = around + spread * normal(random);
    std::vector<uint64_t> ne = {depth};
    if (n) ne.push_back(n);
    w.tensor(name, 0, ne, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
    return values;
  };
  const float spread = 1.0f / std::sqrt(float(s.width));
  const uint32_t q = s.heads * s.head(), kv = s.kv_heads * s.head();
  m.embedding = tensor("token_embd.weight", s.width, s.vocab, 0, 1);
  m.output_norm = tensor("output_norm.weight", s.width, 0, 1, 0.2f);
  m.output = s.tied ? m.embedding : tensor("output.weight", s.width, s.vocab, 0, spread);
  if (s.rope_factors) {
    m.rope_factors = tensor("rope_freqs.weight", (s.rope_width ? s.rope_width : s.head()) / 2, 0, 3, 0.5f);
    w.value("llama.rope.scaling.type", "llama3");
  }
  for (uint32_t l = 0; l < s.layers; ++l) {
    const std::string at = "blk." + std::to_string(l) + ".";
    TinyLayer t;
    t.attention_norm = tensor(at + "attn_norm.weight", s.width, 0, 1, 0.2f);
    t.query = tensor(at + "attn_q.weight", s.width, q, 0, 2 * spread);
    t.key = tensor(at + "attn_k.weight", s.width, kv, 0, 2 * spread);
    t.value = tensor(at + "attn_v.weight", s.width, kv, 0, spread);
    t.output = tensor(at + "attn_output.weight", q, s.width, 0, spread);
    t.ffn_norm = tensor(at + "ffn_norm.weight", s.width, 0, 1, 0.2f);
    t.gate = tensor(at + "ffn_gate.weight", s.width, s.ffn, 0, spread);
    t.up = tensor(at + "ffn_up.weight", s.width, s.ffn, 0, spread);
    t.down = tensor(at + "ffn_down.weight", s.ffn, s.width, 0, spread);
    m.layers.push_back(std::move(t));
  }
  m.file = w.file();
  return m;
}

TestDevice::~TestDevice() {
  kernels.reset();
  device.reset();
  limited.reset();
}

Engine::~Engine() {
  executor.reset();
  model.reset();
}

Placement split_placement(const std::string& given, uint32_t layers) {
  const std::string split = given == "brought" ? "experts" : given == "brought mixed" ? "mixed" : given;
  Placement p = Placement::whole(layers);
  for (uint32_t piece = 0; piece < p.device.size(); ++piece) {
    const bool middle = piece > (layers + 1) / 2, output = piece == layers + 1;
    p.device[piece] = split == "first"    ? piece != 1
                      : split == "middle" ? middle
                      : split == "turns"  ? piece % 2
                      : split == "output" ? output
                      : split == "mixed"  ? piece % 2
                                          : 0;
  }
  for (uint32_t l = 0; l < layers; ++l) {
    if (split == "experts") p.experts.push_back(1);
    if (split == "mixed") p.experts.push_back(l % 4 < 2 ? 1 - p.layer(l) : p.layer(l));
  }
  return p;
}

static void require(Status status) {
  INFO(error_text());
  REQUIRE(status.ok());
}

static LimitedDevice* open_test_device(const char* name, const EngineOptions& options,
                                       const std::function<std::unique_ptr<Device>(Device&)>& wrap,
                                       TestDevice* out) {
  DeviceOptions device_options;
  device_options.threads = options.threads;
  Device* device = nullptr;
  require(open_device(name, device_options, &device));
  out->device.reset(device);
  LimitedDevice* limited = nullptr;
  if (wrap) {
    out->inner = std::move(out->device);
    out->device = wrap(*out->inner);
  } else if (options.largest_weights) {
    out->inner = std::move(out->device);
    out->device = std::make_unique<LimitedDevice>(*out->inner, options.largest_weights);
    limited = static_cast<LimitedDevice*>(out->device.get());
  }
  if (options.checked) {
    std::unique_ptr<Device>& wrapped = limited ? out->limited : out->inner;
    wrapped = std::move(out->device);
    require(open_checked_device(wrapped.get(), &device));
    out->device.reset(device);
  }
  out->kernels = std::make_unique<DeviceKernels>(*out->device);
  return limited;
}

// Where a part of a split model lies: on the CPU, or on the device that GRETA_TEST_SECOND names.
static const char* second_device() {
  const char* name = std::getenv("GRETA_TEST_SECOND");
  return name && *name ? name : "cpu";
}

void open_engine(const std::string& file, const EngineOptions& options, Engine* out) {
  LimitedDevice* limited = open_test_device(test_device(), options, options.wrap, out);
  LimitedDevice* second = nullptr;
  Source source;
  require(source.open_memory(file.data(), file.size()));
  out->model = std::make_unique<Model>();
  require(describe_model(std::move(source), *out->kernels, options.exact, Log{}, out->model.get()));
  if (options.split.starts_with("brought")) out->model->bring_from = 1;
  if (!options.split.empty()) {
    second = open_test_device(second_device(), options, options.wrap_second, &out->second);
    const ModelDevice devices[] = {{out->device.get(), out->kernels.get(), {}, "first"},
                                   {out->second.device.get(), out->second.kernels.get(), {}, "second"}};
    const Placement placement = split_placement(options.split, out->model->shape.layers);
    require(place_on(devices, placement, out->model.get()));
  }
  if (options.head) require(use_head(out->model.get()));
  require(load_model(out->model.get(), {}));
  for (LimitedDevice* each : {limited, second})
    if (each) each->lift();
  const uint64_t free[] = {uint64_t(1) << 32, uint64_t(1) << 32};
  require(Executor::open(*out->model, options.executor, Executor::FreeBytes(free, out->model->devices.size()),
                         &out->executor));
}

}  // namespace greta::test
