// A LoRA on weights of every tensor type, and one whose own matrices have every type, against the same model
// with the adapter merged into decoded float32 weights: attention, experts, and an embedding that is the
// output matrix, too.
#include <catch2/catch_test_macros.hpp>

#include "selftest/rig.h"
#include "support/lora_file.h"
#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;
using selftest::Matrix;

namespace {

constexpr double kLimit = 1e-8;  // of NMSE, at any position
// Whole blocks of every type wherever a matrix has its depth: heads of 64, of which there are four, and two.
constexpr uint32_t kWidth = 256, kHead = 64, kExpert = 256, kExperts = 5, kVocab = 64;

bool ends(const std::string& name, std::string_view with) { return name.ends_with(with); }

// Of a matrix, or empty for a vector.
std::vector<uint64_t> matrix_shape(const std::string& name) {
  if (name == "token_embd.weight") return {kWidth, kVocab};
  if (ends(name, "attn_q.weight") || ends(name, "attn_output.weight")) return {kWidth, kWidth};
  if (ends(name, "attn_k.weight") || ends(name, "attn_v.weight")) return {kWidth, 2 * kHead};
  if (ends(name, "ffn_down_exps.weight")) return {kExpert, kWidth, kExperts};
  if (ends(name, "_exps.weight")) return {kWidth, kExpert, kExperts};
  return {};
}

uint64_t vector_width(const std::string& name) {
  if (ends(name, "attn_q_norm.weight") || ends(name, "attn_k_norm.weight")) return kHead;
  return ends(name, "attn_k.bias") || ends(name, "attn_v.bias") ? 2 * kHead : kWidth;
}

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
std::string floats(const reference::Values& values) {
  return floats(std::vector<float>(values.begin(), values.end()));
}
std::string bytes_of(const Matrix& matrix) { return {matrix.bytes.begin(), matrix.bytes.end()}; }

// The same random model with matrices of a type, and with the float32 values of these.
struct Both {
  ModelFile stored, decoded;
  std::vector<std::string> matrices;
};

Both make_both(QuantType type) {
  selftest::Random random(11);
  Both both{read_model("qwen3moe-converted-biases"), {}, {}};
  for (const auto& [key, number] : {std::pair{"embedding_length", kWidth},
                                    {"attention.key_length", kHead},
                                    {"attention.value_length", kHead},
                                    {"expert_feed_forward_length", kExpert}})
    both.stored.set_u32(std::string("qwen3moe.") + key, number);
  both.decoded = both.stored;
  for (ModelFile::Tensor& tensor : both.stored.tensors) {
    ModelFile::Tensor& other = both.decoded.tensor(tensor.name);
    tensor.ne = matrix_shape(tensor.name);
    if (tensor.ne.empty()) {
      const bool router = ends(tensor.name, "ffn_gate_inp.weight");
      tensor.ne = {router ? kWidth : vector_width(tensor.name)};
      if (router) tensor.ne.push_back(kExperts);
      tensor.data = floats(selftest::gaussians(tensor.ne[0] * (router ? kExperts : 1), random, 0.1f));
      other = tensor;
      continue;
    }
    const uint32_t count = tensor.ne.size() > 2 ? kExperts : 1;
    const Matrix matrix = selftest::random_matrix(type, uint32_t(tensor.ne[1]), uint32_t(tensor.ne[0]), count,
                                                  selftest::Scales::Plain, random);
    other.ne = tensor.ne;
    other.data = floats(matrix.values);
    tensor.type = quant_info(type).gguf_id;
    tensor.data = bytes_of(matrix);
    both.matrices.push_back(tensor.name);
  }
  return both;
}

std::vector<float> logits(const ModelFile& file, const std::string& lora, float scale) {
  ModelLoader loader;
  std::unique_ptr<LoadedModel> model;
  const bool loaded = loader.load(file, 64, &model).ok();
  INFO(error_text());
  REQUIRE(loaded);
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(model->executor, &session).ok());
  if (!lora.empty()) {
    Source source;
    AdapterFile read;
    std::shared_ptr<Adapter> adapter;
    std::shared_ptr<const AdapterList> list;
    REQUIRE(source.open_memory(lora.data(), lora.size()).ok());
    const bool set = read_adapter(std::move(source), &read).ok() &&
                     Adapter::open(model->model, std::move(read), {}, &adapter).ok() &&
                     AdapterList::make(std::vector<AdapterUse>{{adapter, scale}}, &list).ok() &&
                     session->set_adapters(list).ok();
    INFO(error_text());
    REQUIRE(set);
  }
  const std::vector<int32_t> tokens = {3, 10, 17, 24, 31, 38, 45, 52, 59, 2, 9};
  const float* rows = nullptr;
  REQUIRE(session->eval(tokens, OutputRows::All, &rows).ok());
  return {rows, rows + tokens.size() * kVocab};
}

}  // namespace

TEST_CASE("adapters: a LoRA on weights of every type computes what merged float32 weights do",
          "[models][adapter]") {
  for (const reference::Quant* of_type : reference::quants()) DYNAMIC_SECTION(of_type->name) {
      QuantType type;
      REQUIRE(quant_from_name(of_type->name, &type));
      const Both both = make_both(type);
      REQUIRE(both.matrices.size() == 15);  // seven of each layer, and the embedding
      const Lora lora = make_lora(both.decoded, both.matrices, 6, 12, 1);
      ModelFile merged = both.decoded;
      lora.merge_into(&merged, 0.75f);
      const std::vector<float> expected = logits(merged, {}, 0);
      CHECK(worst_error(logits(both.stored, lora.file(), 0.75f), expected, kVocab) < kLimit);
      CHECK(worst_error(logits(both.stored, {}, 0), expected, kVocab) > 1e-4);
    }
}

TEST_CASE("adapters: the matrices of a LoRA may have every type", "[models][adapter]") {
  const Both both = make_both(QuantType::f32);
  constexpr uint32_t kRank = 256;
  for (const reference::Quant* of_type : reference::quants()) DYNAMIC_SECTION(of_type->name) {
      QuantType type;
      REQUIRE(quant_from_name(of_type->name, &type));
      selftest::Random random(5);
      const std::string target = "blk.0.attn_k.weight";
      const auto matrix = [&](uint32_t n, uint32_t depth) {
        return selftest::random_matrix(type, n, depth, 1, selftest::Scales::Plain, random);
      };
      const Matrix a = matrix(kRank, kWidth), b = matrix(2 * kHead, kRank);
      const Lora lora{"qwen3moe",
                      0,
                      {{target,
                        {kWidth, 2 * kHead},
                        kRank,
                        {a.values.begin(), a.values.end()},
                        {b.values.begin(), b.values.end()}}}};
      GgufWriter writer;
      writer.value("general.type", "adapter").value("general.architecture", "qwen3moe");
      writer.value("adapter.type", "lora").value("adapter.lora.alpha", 0.0f);
      writer.tensor(target + ".lora_a", quant_info(type).gguf_id, {kWidth, kRank}, bytes_of(a));
      writer.tensor(target + ".lora_b", quant_info(type).gguf_id, {kRank, 2 * kHead}, bytes_of(b));
      ModelFile merged = both.decoded;
      lora.merge_into(&merged, 0.01f);
      const std::vector<float> expected = logits(merged, {}, 0);
      CHECK(worst_error(logits(both.stored, writer.file(), 0.01f), expected, kVocab) < kLimit);
      CHECK(worst_error(logits(both.stored, {}, 0), expected, kVocab) > 1e-6);
    }
}

namespace {

// Logits of the fastest kernels, of a step of several rows and one of a single row.
std::vector<float> fast_logits(const std::string& file, std::span<const AdapterUse> uses, Engine* engine) {
  std::unique_ptr<Session> session;
  if (!engine->executor) open_engine(file, {.exact = false, .checked = on_cpu()}, engine);
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine->executor.get(), [](Executor*) {}), &session).ok());
  std::shared_ptr<const AdapterList> list;
  REQUIRE((AdapterList::make(uses, &list).ok() && session->set_adapters(list).ok()));
  const std::vector<int32_t> tokens = {3, 10, 17, 24, 31, 38, 45, 52, 59, 2, 9};
  std::vector<float> all;
  for (const auto part : {std::span(tokens).first(10), std::span(tokens).last(1)}) {
    const float* rows = nullptr;
    REQUIRE(session->eval(part, OutputRows::All, &rows).ok());
    all.insert(all.end(), rows, rows + part.size() * kVocab);
  }
  return all;
}

}  // namespace

TEST_CASE("adapters: scales that all rows have in common may be constants of a plan, and change",
          "[models][adapter]") {
  const Both both = make_both(QuantType::f32);
  const Lora lora = make_lora(both.decoded, both.matrices, 6, 12, 1);
  const std::string file = write_model(both.stored), bytes = lora.file();
  Engine engine;
  const std::vector<float> plain = fast_logits(file, {}, &engine);
  Source source;
  AdapterFile read;
  std::shared_ptr<Adapter> adapter;
  REQUIRE(source.open_memory(bytes.data(), bytes.size()).ok());
  REQUIRE(read_adapter(std::move(source), &read).ok());
  REQUIRE(Adapter::open(*engine.model, std::move(read), {}, &adapter).ok());
  for (const float scale : {0.75f, -0.5f, 0.75f}) {
    ModelFile merged = both.decoded;
    lora.merge_into(&merged, scale);
    const AdapterUse use{adapter, scale};
    const std::vector<float> expected = logits(merged, {}, 0);
    CHECK(worst_error(fast_logits(file, {&use, 1}, &engine), expected, kVocab) < kLimit);
    CHECK(worst_error(plain, expected, kVocab) > 1e-4);
  }
  CHECK(fast_logits(file, {}, &engine) == plain);
}
