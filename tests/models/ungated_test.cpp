// Feed-forward blocks without a gate, embeddings of positions, and gates behind attention: what a file may
// say wrongly of them, and that each counts.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <limits>

#include "models/reference_transformer.h"
#include "support/gguf_writer.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr uint32_t kArray = 9, kFloat = 6;  // of GGUF's values

Edit set_floats(const char* key, const std::vector<float>& numbers) {
  return [=](ModelFile& model) {
    model.drop_value(key);
    Bytes payload;
    payload.u32(kFloat).u64(numbers.size());
    for (const float number : numbers) payload.number(number);
    model.values.push_back({key, kArray, payload.data});
  };
}

Edit keep_rows(const char* tensor, uint64_t rows) {
  return [=](ModelFile& model) {
    ModelFile::Tensor& t = model.tensor(tensor);
    t.ne[1] = rows;
    t.data.resize(t.ne[0] * rows * sizeof(float));
  };
}

std::vector<int32_t> tokens_of(const ModelFile& model) { return model.numbers<int32_t>("golden.tokens"); }

struct Bad {
  const char* what;
  const char* golden;
  Edit edit;
  const char* named;
};

void check(const std::vector<Bad>& rows) {
  ModelLoader loader;
  for (const Bad& row : rows) {
    DYNAMIC_SECTION(row.golden << ": " << row.what) {
      ModelFile model = read_model(row.golden);
      row.edit(model);
      loader.check_refused(model, row.named);
    }
  }
}

}  // namespace

TEST_CASE("ungated: constants of xIELU that are not there, too few, or no numbers are refused",
          "[models][ungated][bad]") {
  constexpr const char* kGolden = "apertus-converted";  // two layers
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  check({
      {"no constants", kGolden, drop("xielu.alpha_p"), "xielu.alpha_p"},
      {"no constants for what is negative", kGolden, drop("xielu.alpha_n"), "xielu.alpha_n"},
      {"for one layer", kGolden, set_floats("xielu.beta", {0.5f}),
       "xielu.beta has 1 numbers, expected one for each of 2"},
      {"for three layers", kGolden, set_floats("xielu.alpha_n", {1, 1, 1}), "xielu.alpha_n has 3 numbers"},
      {"a NaN", kGolden, set_floats("xielu.alpha_p", {1, kNan}), "xielu.alpha_p holds nan"},
      {"a number without end", kGolden, set_floats("xielu.alpha_n", {1, 1e30f}), "xielu.alpha_n holds 1e+30"},
      {"a limit that counts", kGolden, set_floats("xielu.eps", {-1e-6f, -0.5f}),
       "xielu.eps is -0.5 in layer 1"},
      {"an activation that others do not have", "llama-converted", set_floats("xielu.beta", {0.5f, 0.5f}),
       "another activation"},
  });
}

TEST_CASE("ungated: each constant of xIELU belongs to its layer", "[models][ungated]") {
  ModelLoader loader;
  std::unique_ptr<LoadedModel> loaded;
  const ModelFile golden = read_model("apertus-converted");
  REQUIRE(loader.load(golden, 64, &loaded).ok());
  const std::vector<float> before = loaded->last_logits(tokens_of(golden));
  for (const char* key : {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta"})
    for (size_t layer : {0u, 1u}) {
      std::vector<float> numbers = golden.numbers<float>(key);
      numbers[layer] += 0.25f;
      ModelFile changed = golden;
      set_floats(key, numbers)(changed);
      REQUIRE(loader.load(changed, 64, &loaded).ok());
      INFO(key << " of layer " << layer);
      CHECK(nmse(loaded->last_logits(tokens_of(golden)).data(), {before.begin(), before.end()}) > 1e-6);
    }
}

TEST_CASE("learned positions: a table that does not fit is refused", "[models][ungated][bad]") {
  check({
      {"no table", "gpt2-converted", without("position_embd.weight"), "position_embd.weight"},
      {"a table without rows", "gpt2-converted", keep_rows("position_embd.weight", 0),
       "position_embd.weight"},
      {"rows of another width", "gpt2-converted",
       [](ModelFile& m) {
         ModelFile::Tensor& t = m.tensor("position_embd.weight");
         t.ne = {t.ne[0] / 2, t.ne[1] * 2};
       },
       "position_embd.weight is f32 with rows of 16 values, expected f32 with rows of 32"},
      {"half as many bits", "gpt2-converted",
       [](ModelFile& m) {
         ModelFile::Tensor& t = m.tensor("position_embd.weight");
         t.type = 1;
         t.data.resize(t.data.size() / 2);
       },
       "position_embd.weight is f16"},
      {"positions where others rotate", "llama-converted",
       [](ModelFile& m) {
         m.tensors.push_back({"position_embd.weight", 0, {32, 64}, std::string(32 * 64 * 4, '\0')});
       },
       "position_embd.weight"},
  });
}

TEST_CASE("learned positions: a context of more than there are is refused with both numbers",
          "[models][ungated]") {
  ModelLoader loader;
  std::unique_ptr<LoadedModel> loaded;
  const ModelFile golden = read_model("gpt2-converted");  // 64 positions
  clear_error_text();
  REQUIRE_FALSE(loader.load(golden, 65, &loaded).ok());
  CHECK(strstr(error_text(), "a context of 65 tokens, but the model has learned 64 positions"));
  REQUIRE(loader.load(golden, 64, &loaded).ok());
  // A file may promise a longer context than it has positions for: the default one is as long as these.
  ModelFile longer = golden;
  longer.set_u32("gpt2.context_length", 1024);
  REQUIRE(loader.load(longer, 0, &loaded).ok());
  CHECK(loaded->executor->plan().context == 64);
}

TEST_CASE("learned positions: such a model is not split over devices", "[models][ungated]") {
  ModelLoader loader;
  std::unique_ptr<LoadedModel> loaded;
  REQUIRE(loader.load(read_model("gpt2-converted"), 64, &loaded).ok());
  Model& model = loaded->model;
  const ModelDevice two[] = {model.devices[0], model.devices[0]};
  Placement split = Placement::whole(model.shape.layers);
  split.device.back() = 1;
  REQUIRE_FALSE(place_model(two, split, &model).ok());
  CHECK(strstr(error_text(), "cannot be split over 2 devices"));
}

TEST_CASE("gates behind attention: those of another size are refused", "[models][ungated][bad]") {
  check({
      {"no gate", "laguna-converted", without("blk.1.attn_gate.weight"), "blk.1.attn_gate.weight"},
      {"gates of fewer heads", "laguna-converted", keep_rows("blk.1.attn_gate.weight", 5),
       "blk.1.attn_gate.weight"},
      {"gates of half of the values", "afmoe-converted", keep_rows("blk.2.attn_gate.weight", 16),
       "blk.2.attn_gate.weight"},
      {"heads of one layer that are not there", "laguna-converted",
       set_layers("laguna.attention.head_count", {4, 6, 8, 6, 4}), "blk.2.attn_q.weight"},
      {"no window", "afmoe-converted", drop("afmoe.attention.sliding_window"), "sliding_window"},
      {"experts in some layers only", "afmoe-converted",
       [](ModelFile& m) {
         std::erase_if(m.tensors, [](const ModelFile::Tensor& t) {
           return t.name.starts_with("blk.3.") && t.name.find("_exps") != t.name.npos;
         });
       },
       "blk.3.ffn_gate_exps.weight"},
  });
}
