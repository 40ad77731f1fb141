// Heads that end with marks of their position, by which scores fall with the distance (bloom) or see chunks
// (llama4): what files may say wrongly of them and of what else these architectures have, and how far marks
// reach.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "engine/model/rope.h"
#include "support/gguf_writer.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;

namespace {

struct Bad {
  const char* what;
  const char* golden;
  Edit edit;
  const char* named;
};

// A tensor as another one has it, under another name.
Edit copied(const char* from, const char* golden, const char* to) {
  return [=](ModelFile& m) {
    ModelFile other = read_model(golden);
    m.tensors.push_back(other.tensor(from));
    m.tensors.back().name = to;
  };
}

// A table's values at all positions, as the rotation of ones makes them.
std::vector<double> values_of(const Shape& shape, uint32_t table, uint32_t context) {
  std::vector<float> turns(uint64_t(context) * shape.rope[table].width);
  fill_rope_table(shape, {}, table, context, turns.data());
  std::vector<double> values;
  for (size_t i = 0; i < turns.size(); i += 2) {
    values.push_back(double(turns[i] - turns[i + 1]));
    values.push_back(double(turns[i + 1] + turns[i]));
  }
  return values;
}

bool fits_half(double x) {
  if (x == 0) return true;
  const double step = std::exp2(std::max(std::floor(std::log2(std::abs(x))), -14.0) - 10);
  return std::abs(x) < 65520 && x / step == std::round(x / step);
}

}  // namespace

TEST_CASE("marks: files that say something wrong are refused", "[models][marks][bad]") {
  ModelLoader loader;
  const std::vector<Bad> rows = {
      {"a temperature length of 0", "llama4-converted-chunks",
       set_u32("llama4.attention.temperature_length", 0), "attention.temperature_length"},
      {"chunks of heads that rotate in part", "llama4-converted-chunks",
       set_u32("llama4.rope.dimension_count", 6), "of a head's 12 values 6 rotate"},
      {"a text for a chunk", "llama4-converted-chunks", set_text("llama4.attention.sliding_window", "6"),
       "sliding_window"},
      {"two experts whose inputs have weights", "llama4-converted", set_u32("llama4.expert_used_count", 2),
       "expert_used_count is 2, expected 1"},
      {"experts in some layers only", "llama4-converted",
       [](ModelFile& m) {
         std::erase_if(m.tensors, [](const ModelFile::Tensor& t) {
           return t.name.starts_with("blk.2.ffn_") && t.name != "blk.2.ffn_norm.weight";
         });
       },
       "no tensor blk.2.ffn_gate_inp.weight, but of 1 layers"},
      {"experts in a layer that has none", "llama4-converted-chunks",
       copied("blk.1.ffn_gate_inp.weight", "llama4-converted-chunks", "blk.2.ffn_gate_inp.weight"),
       "there is blk.2.ffn_gate_inp.weight, but of 2 layers"},
      {"no shared expert", "llama4-converted", without("blk.1.ffn_up_shexp.weight"),
       "blk.1.ffn_up_shexp.weight"},
      {"slopes of half of all bits", "bloom-converted",
       [](ModelFile& m) {
         m.set_u32("bloom.attention.head_count", 1u << 31);
         m.set_u32("bloom.attention.head_count_kv", 1u << 31);
       },
       "bloom.attention.head_count is 2147483648"},
      {"two heads of one key and two slopes", "bloom-converted", set_u32("bloom.attention.head_count_kv", 2),
       "bloom.attention.head_count_kv is 2, expected 4"},
      {"heads of an odd number of values", "bloom-converted",
       [](ModelFile& m) {
         m.values.push_back({"bloom.attention.key_length", 4, Bytes().u32(3).data});
         m.values.push_back({"bloom.rope.dimension_count", 4, Bytes().u32(2).data});
       },
       "heads of 3 values"},
      {"embeddings without a norm", "bloom-converted", without("token_embd_norm.weight"),
       "token_embd_norm.weight"},
      {"a norm of embeddings where others have none", "gpt2-converted",
       copied("token_embd_norm.weight", "bloom-converted", "token_embd_norm.weight"),
       "token_embd_norm.weight"},
      {"no factor of logits", "muse-glimmer-converted", drop("muse-glimmer.logit_scale"), "logit_scale"},
  };
  for (const Bad& row : rows) {
    DYNAMIC_SECTION(row.golden << ": " << row.what) {
      ModelFile model = read_model(row.golden);
      row.edit(model);
      loader.check_refused(model, row.named);
    }
  }
}

TEST_CASE("marks: a chunk of 0 means that there are none, as for MobileLLM, whose layers all rotate",
          "[models][marks]") {
  ModelLoader loader;
  std::unique_ptr<LoadedModel> loaded;
  ModelFile model = read_model("llama4-converted");
  set_u32("llama4.attention.sliding_window", 0)(model);
  REQUIRE(loader.load(model, 64, &loaded).ok());
  for (const LayerShape& layer : loaded->model.shape.each) {
    CHECK(layer.rope_table == 0);
    CHECK(layer.marks == 0);
    CHECK(layer.window == 0);
  }
}

TEST_CASE("marks: those of keys are sums of halves, which hold slopes times positions", "[models][marks]") {
  ModelLoader loader;
  std::unique_ptr<LoadedModel> loaded;
  REQUIRE(loader.load(read_model("bloom-converted-six"), 64, &loaded).ok());
  const Shape& shape = loaded->model.shape;
  const double slopes[] = {1 / 4.0, 1 / 16.0, 1 / 64.0, 1 / 256.0, 1 / 2.0, 1 / 8.0};
  constexpr uint32_t kContext = 1 << 17, kMarks = 16;
  const double query = values_of(shape, 2, 8)[0], scale = double(shape.attention_scale);
  CHECK(std::abs(query * scale / M_LN2 - 512) < 1e-3);
  const std::vector<double> values = values_of(shape, 1, kContext);
  for (uint32_t head = 0; head < 6; ++head)
    for (const uint32_t position : {0u, 1u, 77u, 2047u, kContext - 1}) {
      double sum = 0;
      for (uint32_t i = 0; i < kMarks; ++i) {
        const double mark = values[(uint64_t(position) * 6 + head) * kMarks + i];
        CHECK(fits_half(mark));
        sum += mark;
      }
      const double wanted = slopes[head] * position;
      CHECK(std::abs(sum * query * scale - wanted) <= 1.1e-5 + 1e-7 * wanted);
    }
}

TEST_CASE("marks: a cache that rounds keys to eight bits is refused where they hold positions",
          "[models][marks]") {
  ModelLoader loader;
  std::unique_ptr<LoadedModel> loaded;
  REQUIRE(loader.load(read_model("bloom-converted"), 64, &loaded).ok());
  ExecutorOptions options;
  options.context = 64;
  options.key_type = 2;  // q8_0
  ExecutorPlan plan;
  clear_error_text();
  CHECK_FALSE(Executor::plan(loaded->model, &options, {}, &plan).ok());
  CHECK(strstr(error_text(), "keys of bloom hold their positions"));
}
