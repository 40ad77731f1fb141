// What only Gemma 4 has: heads of two sizes, values that are keys, caches of earlier layers, experts beside a
// dense block, and embeddings for each layer.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "models/reference_transformer.h"
#include "support/gguf_writer.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr const char* kDense = "gemma4-converted";
constexpr const char* kExperts = "gemma4-converted-experts";
constexpr const char* kEach = "gemma4-converted-each";  // six layers, of which the last three share caches

Edit add_tensor(const std::string& name, const std::vector<uint64_t>& ne) {
  return [=](ModelFile& model) {
    uint64_t values = 1;
    for (const uint64_t n : ne) values *= n;
    model.tensors.push_back({name, 0, ne, std::string(values * sizeof(float), '\0')});
  };
}

Edit keep_rows(const char* tensor, uint64_t rows) {
  return [=](ModelFile& model) {
    ModelFile::Tensor& t = model.tensor(tensor);
    t.ne[1] = rows;
    t.data.resize(t.ne[0] * rows * sizeof(float));
  };
}

Edit drop_experts(const std::string& layer) {
  return [=](ModelFile& model) {
    std::erase_if(model.tensors, [&](const ModelFile::Tensor& t) {
      return t.name.starts_with(layer) &&
             (t.name.find("_exps") != t.name.npos || t.name.find("ffn_gate_inp") != t.name.npos);
    });
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

TEST_CASE("gemma4: shared caches and embeddings that do not fit are refused", "[models][gemma4][bad]") {
  check({
      {"all layers share caches", kEach, set_u32("gemma4.attention.shared_kv_layers", 6), "shared_kv_layers"},
      {"more share than there are", kEach, set_u32("gemma4.attention.shared_kv_layers", UINT32_MAX),
       "shared_kv_layers"},
      {"none of the layers before has a window", kEach, set_u32("gemma4.attention.shared_kv_layers", 5),
       "layer 1 shares the cache of an earlier one"},
      {"the cache that is shared has other heads", kEach,
       set_layers("gemma4.attention.head_count_kv", {1, 1, 1, 1, 1, 2}),
       "layer 5 shares the cache of layer 1, whose heads have other sizes"},
      {"fewer rows of embeddings than tokens", kEach, keep_rows("per_layer_token_embd.weight", 63),
       "per_layer_token_embd.weight"},
      {"embeddings without end", kEach, set_u32("gemma4.embedding_length_per_layer_input", UINT32_MAX),
       "embedding_length_per_layer_input"},
      {"embeddings of another length", kEach, set_u32("gemma4.embedding_length_per_layer_input", 10),
       "per_layer_token_embd.weight"},
      {"no embeddings of layers", kEach, without("per_layer_token_embd.weight"),
       "per_layer_token_embd.weight"},
      {"a layer without its gate", kEach, without("blk.4.inp_gate.weight"), "blk.4.inp_gate.weight"},
      {"a layer without its scale", kEach, without("blk.4.layer_output_scale.weight"),
       "blk.4.layer_output_scale.weight"},
      {"a scale of two numbers", kDense,
       [](ModelFile& m) {
         m.drop_tensor("blk.1.layer_output_scale.weight");
         add_tensor("blk.1.layer_output_scale.weight", {2})(m);
       },
       "blk.1.layer_output_scale.weight"},
  });
}

TEST_CASE("gemma4: experts and heads that contradict each other are refused", "[models][gemma4][bad]") {
  check({
      {"experts in the last layer alone", kExperts, drop_experts("blk.0."), "blk.0.ffn_"},
      {"experts in the first layer alone", kExperts, drop_experts("blk.1."), "blk.1.ffn_"},
      {"a router without a gain", kExperts, without("blk.1.ffn_gate_inp.scale"), "blk.1.ffn_gate_inp.scale"},
      {"a gain of one number", kExperts,
       [](ModelFile& m) {
         m.drop_tensor("blk.1.ffn_gate_inp.scale");
         add_tensor("blk.1.ffn_gate_inp.scale", {1})(m);
       },
       "blk.1.ffn_gate_inp.scale"},
      {"no dense block beside the experts", kExperts, drop("gemma4.feed_forward_length"),
       "feed_forward_length"},
      {"values of the first layer alone that sees all", kDense, add_tensor("blk.2.attn_v.weight", {24, 16}),
       "blk.3.attn_v.weight"},
      {"values of the last layer alone that sees all", kDense, add_tensor("blk.3.attn_v.weight", {24, 16}),
       "blk.3.attn_v.weight"},
      {"no values of a layer with a window", kDense, without("blk.1.attn_v.weight"), "blk.1.attn_v.weight"},
      {"keys that cannot be values", kDense, set_u32("gemma4.attention.value_length", 12),
       "values of 12 cannot be keys of 16"},
      {"no keys in a window", kDense, set_u32("gemma4.attention.key_length_swa", 0), "key_length_swa"},
      {"other keys in a window", kDense, set_u32("gemma4.attention.key_length_swa", 12), "attn_q.weight"},
      {"an odd part that turns in a window", kDense, set_u32("gemma4.rope.dimension_count_swa", 7),
       "dimension_count_swa"},
      {"more turns than there is in a window", kDense, set_u32("gemma4.rope.dimension_count_swa", 10),
       "dimension_count_swa"},
      {"a factor that no file has", kDense, poke("rope_freqs.weight", 1e31f), "rope_freqs.weight"},
  });
}

TEST_CASE("gemma4: layers that share caches have none of their own", "[models][gemma4]") {
  ModelLoader loader;
  std::unique_ptr<LoadedModel> loaded;
  const ModelFile golden = read_model(kEach);
  REQUIRE(loader.load(golden, 64, &loaded).ok());
  uint64_t bytes = 0;
  const Executor& executor = *loaded->executor;
  for (const uint32_t width :
       {8, 16, 8}) {  // of the three layers that have some: one head of keys, one of values
    QuantType keys, values;
    REQUIRE(cache_quant(executor.options().key_type, &keys));
    REQUIRE(cache_quant(executor.options().value_type, &values));
    bytes += quant_bytes(keys, kPageTokens * width) + quant_bytes(values, kPageTokens * width);
  }
  CHECK(executor.page_bytes() == bytes + kPageTokens * sizeof(uint32_t));

  // Published files have keys and values of all layers.
  ModelFile more = golden;
  add_tensor("blk.3.attn_k.weight", {32, 8})(more);
  add_tensor("blk.3.attn_v.weight", {32, 8})(more);
  add_tensor("blk.3.attn_k_norm.weight", {8})(more);
  const std::vector<float> alone = loaded->last_logits(tokens_of(golden));
  REQUIRE(loader.load(more, 64, &loaded).ok());
  CHECK(loaded->last_logits(tokens_of(golden)) == alone);
  CHECK(std::ranges::any_of(loaded->model.unused, [](const UnusedPart& part) {
    return part.name == "blk.3.attn_v.weight" && part.verdict == UnusedPart::Verdict::Needless;
  }));
}

TEST_CASE("gemma4: the table of embeddings for each layer stays in the host's memory", "[models][gemma4]") {
  const ModelFile golden = read_model(kEach);
  const uint64_t table = const_cast<ModelFile&>(golden).tensor("per_layer_token_embd.weight").data.size();
  ModelLoader loader;
  std::unique_ptr<LoadedModel> mapped;
  REQUIRE(loader.load(golden, 64, &mapped).ok());
  const Model& model = mapped->model;
  ModelDevice device = model.devices[0];
  DeviceInfo apart = *device.filter.device;  // a device with memory of its own
  apart.unified_memory = apart.imports_host = false;
  device.filter.device = &apart;
  const Placement whole = Placement::whole(model.shape.layers);
  std::string file = write_model(golden);
  Source source;
  Gguf gguf;
  REQUIRE(source.open_memory(file.data(), file.size()).ok());
  REQUIRE(gguf.open(std::move(source)).ok());
  TensorStore store;
  REQUIRE(store.describe(gguf, *model.arch, model.shape, {&device, 1}, whole).ok());
  CHECK(store.mapped_bytes() == 0);
  CHECK(store.host_bytes() == table);
  CHECK(store.device_bytes() < store.file_bytes());
  REQUIRE(store.load(gguf, {&device, 1}, {}).ok());
  const Slice& slice = store.weights().layer_embedding.slice;
  REQUIRE(slice.bytes == table);
  CHECK(!memcmp(static_cast<const uint8_t*>(slice.buffer->mapped) + slice.offset,
                const_cast<ModelFile&>(golden).tensor("per_layer_token_embd.weight").data.data(), table));
  // A token reads one row of it.
  CHECK(model.store.token_bytes() < store.file_bytes() - table * 63 / 64 + 1);
}

TEST_CASE("gemma4: layers that share caches are not split over devices", "[models][gemma4]") {
  ModelLoader loader;
  std::unique_ptr<LoadedModel> loaded;
  REQUIRE(loader.load(read_model(kEach), 64, &loaded).ok());
  Model& model = loaded->model;
  const ModelDevice two[] = {model.devices[0], model.devices[0]};
  Placement split = Placement::whole(model.shape.layers);
  split.device.back() = 1;
  REQUIRE_FALSE(place_model(two, split, &model).ok());
  CHECK(strstr(error_text(), "cannot be split over 2 devices"));
}
