// Sizes that differ between layers, given by arrays with a value for each.
#include <catch2/catch_test_macros.hpp>

#include "engine/model/weights.h"
#include "models/reference_transformer.h"
#include "support/gguf_writer.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr const char* kHeads = "llama.attention.head_count";
constexpr const char* kKvHeads = "llama.attention.head_count_kv";
constexpr const char* kFfn = "llama.feed_forward_length";

// The float at a row and a column of a matrix.
float* at(ModelFile::Tensor& matrix, uint64_t row, uint64_t column) {
  return reinterpret_cast<float*>(matrix.data.data()) + row * matrix.ne[0] + column;
}
void keep_rows(ModelFile::Tensor& matrix, uint64_t rows) {
  matrix.ne[1] = rows;
  matrix.data.resize(rows * matrix.ne[0] * sizeof(float));
}
// Leaves the first columns of each row, or puts 0 into the others.
void keep_columns(ModelFile::Tensor& matrix, uint64_t columns, bool cut) {
  std::string kept;
  for (uint64_t row = 0; row < matrix.ne[1]; ++row) {
    if (cut) kept.append(reinterpret_cast<const char*>(at(matrix, row, 0)), columns * sizeof(float));
    for (uint64_t column = columns; !cut && column < matrix.ne[0]; ++column) *at(matrix, row, column) = 0;
  }
  if (!cut) return;
  matrix.ne[0] = columns;
  matrix.data = kept;
}

// Takes half of the heads, and all but 20 of the feed-forward's hidden values, away from layer 1, or makes
// their results 0.
ModelFile narrowed(bool cut) {
  ModelFile model = read_model("llama-plain");  // 4 heads, 2 key-value heads of 8
  keep_columns(model.tensor("blk.1.attn_output.weight"), 16, cut);
  keep_columns(model.tensor("blk.1.ffn_down.weight"), 20, cut);
  if (!cut) return model;
  keep_rows(model.tensor("blk.1.attn_q.weight"), 16);
  keep_rows(model.tensor("blk.1.attn_k.weight"), 8);
  keep_rows(model.tensor("blk.1.attn_v.weight"), 8);
  keep_rows(model.tensor("blk.1.ffn_gate.weight"), 20);
  keep_rows(model.tensor("blk.1.ffn_up.weight"), 20);
  model.set_u32("llama.attention.key_length", 8);
  model.set_u32("llama.attention.value_length", 8);
  set_layers(kHeads, {4, 2})(model);
  set_layers(kKvHeads, {2, 1})(model);
  set_layers(kFfn, {model.numbers<uint32_t>(kFfn)[0], 20})(model);
  return model;
}

int collect(void* user, const void* bytes, size_t count) {
  static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), count);
  return 0;
}

// Reads a file's shape as an architecture whose layers may lack parts.
Status read_partial(const ModelFile& model, Shape* shape) {
  const std::string file = write_model(model);
  Source source;
  GRETA_TRY(source.open_memory(file.data(), file.size()));
  Gguf gguf;
  GRETA_TRY(gguf.open(std::move(source)));
  const Arch* llama = nullptr;
  GRETA_TRY(find_arch("llama", &llama));
  Arch partial = *llama;
  partial.partial_layers = true;
  KeysRead keys;
  return read_shape(gguf, partial, shape, &keys);
}

ModelFile edited(std::initializer_list<Edit> edits) {
  ModelFile model = read_model("llama-plain");
  for (const Edit& edit : edits) edit(model);
  return model;
}

}  // namespace

TEST_CASE("layer sizes: a layer with fewer heads equals one whose other heads give 0", "[models]") {
  ModelLoader loader;
  std::unique_ptr<LoadedModel> zeroed, cut;
  REQUIRE(loader.load(narrowed(false), 64, &zeroed).ok());
  const Status status = loader.load(narrowed(true), 64, &cut);
  INFO(error_text());
  REQUIRE(status.ok());
  CHECK(cut->model.shape.each[1].kv_heads == 1);
  const auto tokens = read_model("llama-plain").numbers<int32_t>("golden.tokens");
  const std::vector<float> want = zeroed->logits(tokens, {tokens.size()});
  for (const std::vector<size_t>& pieces : {std::vector<size_t>{tokens.size()}, {1}, {3, 7}})
    CHECK(nmse(cut->logits(tokens, pieces).data(), {want.begin(), want.end()}) < 1e-12);
}

// Pages of layer 1 have half the bytes of those of layer 0.
TEST_CASE("layer sizes: a session of such a model is forked, saved and restored", "[models]") {
  ModelLoader loader;
  std::unique_ptr<LoadedModel> cut;
  REQUIRE(loader.load(narrowed(true), 512, &cut).ok());
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 300; ++i) tokens.push_back(3 + i * 7 % 60);  // more than a page
  std::unique_ptr<Session> first, fork, restored;
  REQUIRE(Session::open(cut->executor, &first).ok());
  const float* logits = nullptr;
  REQUIRE(first->eval(tokens, OutputRows::None, &logits).ok());
  const int32_t next[] = {9};
  REQUIRE(first->fork(&fork).ok());
  REQUIRE(fork->eval(next, OutputRows::Last, &logits).ok());
  const std::vector<float> forked(logits, logits + cut->model.shape.vocab);
  std::string state;
  REQUIRE(first->save(collect, &state).ok());
  CHECK(state.size() == first->state_bytes());
  REQUIRE(first->eval(next, OutputRows::Last, &logits).ok());
  const std::vector<float> want(logits, logits + cut->model.shape.vocab);
  CHECK(forked == want);
  first.reset();
  fork.reset();
  REQUIRE(Session::open(cut->executor, &restored).ok());
  Source source;
  REQUIRE(source.open_memory(state.data(), state.size()).ok());
  const Status status = restored->restore(source);
  INFO(error_text());
  REQUIRE(status.ok());
  REQUIRE(restored->eval(next, OutputRows::Last, &logits).ok());
  CHECK(std::vector<float>(logits, logits + cut->model.shape.vocab) == want);
}

TEST_CASE("layer sizes: arrays that say nothing good are refused", "[models][bad]") {
  ModelLoader loader;
  const struct {
    const char* what;
    Edit edit;
    const char* named;
  } rows[] = {
      {"too short", set_layers(kKvHeads, {2}), "head_count_kv\": an array of 1 values, expected 2"},
      {"too long", set_layers(kFfn, {28, 28, 28}), "feed_forward_length\": an array of 3 values, expected 2"},
      {"another type", set_text(kKvHeads, "2"), "head_count_kv"},
      {"a layer without attention", set_layers(kKvHeads, {2, 0}),
       "head_count_kv is 0 in layer 1, expected 1 to 4096"},
      {"a layer without a feed-forward", set_layers(kFfn, {0, 28}),
       "feed_forward_length is 0 in layer 0, expected 1 to"},
      {"too many", set_layers(kHeads, {4, 1u << 31}), "head_count is 2147483648 in layer 1"},
      {"heads that do not divide", set_layers(kKvHeads, {2, 3}), "3 key-value heads in layer 1"},
      {"heads that the tensors do not have", set_layers(kHeads, {4, 2}), "blk.1.attn_q.weight"},
      {"hidden values that the tensors do not have", set_layers(kFfn, {28, 30}), "blk.1.ffn_"},
  };
  for (const auto& row : rows) {
    DYNAMIC_SECTION(row.what) { loader.check_refused(edited({row.edit}), row.named); }
  }
}

TEST_CASE("layer sizes: a layer without attention, or without a feed-forward block", "[models]") {
  Shape shape;
  const Status status =
      read_partial(edited({set_layers(kKvHeads, {0, 2}), set_layers(kFfn, {28, 0})}), &shape);
  INFO(error_text());
  REQUIRE(status.ok());
  CHECK_FALSE(shape.each[0].attends());
  CHECK(shape.each[0].has_ffn());
  CHECK(shape.each[1].attends());
  CHECK_FALSE(shape.each[1].has_ffn());
  CHECK(shape.attending().heads == 4);
  const Arch* llama = nullptr;
  REQUIRE(find_arch("llama", &llama).ok());
  const auto names = [&](uint32_t layer) {
    Layer unused;
    std::string all;
    for (const WantedTensor& wanted : layer_tensors(*llama, shape, layer, false, &unused))
      if (wanted.name.text && !wanted.name.optional) all += wanted.name.text + std::string(" ");
    return all;
  };
  CHECK(names(0) ==
        "blk.%u.ffn_gate.weight blk.%u.ffn_up.weight blk.%u.ffn_down.weight blk.%u.ffn_norm.weight ");
  CHECK(names(1) ==
        "blk.%u.attn_norm.weight blk.%u.attn_q.weight blk.%u.attn_k.weight blk.%u.attn_v.weight "
        "blk.%u.attn_output.weight ");
}

TEST_CASE("layer sizes: layers without anything are refused", "[models][bad]") {
  const struct {
    const char* what;
    std::initializer_list<Edit> edits;
    const char* named;
  } rows[] = {
      {"no attention at all", {set_layers(kKvHeads, {0, 0})}, "head_count_kv is 0 in all layers"},
      {"no attention at all, by a number", {set_u32(kKvHeads, 0)}, "no layer has attention"},
      {"no feed-forward at all", {set_layers(kFfn, {0, 0})}, "feed_forward_length is 0 in all layers"},
      {"a layer without both",
       {set_layers(kKvHeads, {2, 0}), set_layers(kFfn, {28, 0})},
       "layer 1 has neither attention nor a feed-forward block"},
      {"key-value heads without heads", {set_layers(kHeads, {0, 4})}, "0 query heads cannot share 2"},
  };
  for (const auto& row : rows) {
    DYNAMIC_SECTION(row.what) {
      Shape shape;
      CHECK_FALSE(read_partial(edited(row.edits), &shape).ok());
      CHECK(std::string(error_text()).find(row.named) != std::string::npos);
    }
  }
}
