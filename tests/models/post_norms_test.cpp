// Models with norms behind their blocks, of random weights in Q8_0: the fastest kernels against the plain
// ones, which the goldens hold to the reference in float32 weights alone.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdio>
#include <random>

#include "models/reference_transformer.h"
#include "selftest/reference/reference.h"
#include "support/gguf_writer.h"
#include "support/test_device.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr uint32_t kLayers = 3, kWidth = 64, kHeads = 4, kHead = 32, kFfn = 96, kVocab = 67, kTokens = 40;
constexpr uint32_t kF32 = 0, kQ8_0 = 8;  // types of GGUF

class ModelFile {
 public:
  explicit ModelFile(const Arch& arch) : arch_(arch) {
    std::vector<std::string> pieces = {"<unk>", "<s>", "</s>"};
    while (pieces.size() < kVocab) pieces.push_back(std::to_string(pieces.size()) + "t");
    file_.value("general.architecture", arch.name).value("tokenizer.ggml.model", "llama");
    file_.value("tokenizer.ggml.tokens", pieces)
        .value("tokenizer.ggml.scores", std::vector<float>(kVocab, 0.0f));
    file_.value("tokenizer.ggml.bos_token_id", 1u).value("tokenizer.ggml.eos_token_id", 2u);
    size("block_count", kLayers), size("embedding_length", kWidth), size("feed_forward_length", kFfn);
    size("context_length", 512), size("attention.head_count", kHeads),
        size("attention.head_count_kv", kHeads / 2);
    size("attention.key_length", kHead), size("attention.value_length", kHead),
        size("attention.sliding_window", 16);
    file_.value(arch.name + std::string(".attention.layer_norm_rms_epsilon"), 1e-6f);
    file_.value(arch.name + std::string(".rope.freq_base"), 10000.0f);
    matrix("token_embd.weight", kWidth, kVocab);
    vector("output_norm.weight", kWidth);
    matrix("output.weight", kWidth, kVocab);
    for (uint32_t l = 0; l < kLayers; ++l) layer(l);
  }
  std::string text() const { return file_.file(); }

 private:
  void size(const char* key, uint32_t value) { file_.value(std::string(arch_.name) + "." + key, value); }
  void layer(uint32_t index) {
    Shape s;
    s.layers = kLayers, s.width = kWidth, s.vocab = kVocab;
    LayerShape each;
    each.ffn_width = kFfn, each.heads = kHeads, each.kv_heads = kHeads / 2;
    each.key_width = each.value_width = each.rope_width = kHead;
    s.each.resize(kLayers, each);
    Layer unused;
    for (const WantedTensor& wanted : layer_tensors(arch_, s, index, false, &unused)) {
      if (!wanted.name.text || wanted.name.optional) continue;
      char name[64];
      snprintf(name, sizeof name, wanted.name.text, index);
      if (wanted.use == Use::Vector)
        vector(name, wanted.depth);
      else
        matrix(name, wanted.depth, wanted.n);
    }
  }
  void vector(const std::string& name, uint64_t depth) {
    std::normal_distribution<float> around(1, 0.2f);
    std::vector<float> values(depth);
    for (float& value : values) value = around(random_);
    file_.tensor(name, kF32, {depth}, {reinterpret_cast<const char*>(values.data()), depth * sizeof(float)});
  }
  // Sums of as many products as a row has are of about 1: an integer of a block is 73 in the mean square.
  void matrix(const std::string& name, uint64_t depth, uint64_t n) {
    const std::vector<uint8_t> scale = reference::half_bytes({1 / (73 * std::sqrt(double(depth)))});
    std::string bytes;
    for (uint64_t block = 0; block < n * depth / 32; ++block) {
      bytes.append(scale.begin(), scale.end());
      for (int i = 0; i < 32; ++i) bytes.push_back(char(int(random_() % 255) - 127));
    }
    file_.tensor(name, kQ8_0, {depth, n}, bytes);
  }

  const Arch& arch_;
  GgufWriter file_;
  std::mt19937 random_{11};
};

// Logits of all positions, fed in pieces of so many tokens.
std::vector<float> logits_of(Engine& engine, uint32_t piece) {
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session).ok());
  std::vector<int32_t> tokens;
  for (uint32_t t = 0; t < kTokens; ++t) tokens.push_back(int32_t(t * 37 % kVocab));
  std::vector<float> all;
  for (uint32_t at = 0; at < kTokens; at += piece) {
    const uint32_t count = std::min(piece, kTokens - at);
    const float* logits = nullptr;
    INFO(error_text());
    REQUIRE(session->eval({tokens.data() + at, count}, OutputRows::All, &logits).ok());
    all.insert(all.end(), logits, logits + count * kVocab);
  }
  return all;
}

}  // namespace

TEST_CASE("norms behind blocks: fast kernels are close to the plain ones, with the same bits every time",
          "[models]") {
  for (const char* name : {"gemma2", "gemma3", "olmo2"}) {
    INFO(name);
    const Arch* arch = nullptr;
    REQUIRE(find_arch(name, &arch).ok());
    const std::string file = ModelFile(*arch).text();
    Engine plain;
    open_engine(file, {}, &plain);
    const std::vector<float> want = logits_of(plain, kTokens);
    for (const bool checked : {false, true}) {
      Engine fast;
      EngineOptions options;
      options.exact = false;
      options.checked = checked;
      open_engine(file, options, &fast);
      for (const uint32_t piece : {1u, 7u, kTokens}) {
        INFO("pieces of " << piece << (checked ? ", checked" : ""));
        const std::vector<float> got = logits_of(fast, piece);
        // Products in int8 round x to 1 / 254 of the largest of a group.
        CHECK(nmse(got.data(), {want.begin(), want.end()}) < 1e-3);
        for (int again = 0; again < (checked ? 1 : 10); ++again) REQUIRE(logits_of(fast, piece) == got);
      }
    }
  }
}
