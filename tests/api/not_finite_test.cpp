// A model of which one gain of one norm is NaN or infinite gives no text and no vectors, whatever type its
// weights have: the call says that the file is at fault.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <fstream>

#include "support/api_objects.h"
#include "support/test_data.h"

using namespace greta;
using namespace greta::test;

namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  REQUIRE(stream);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Opens the file's bytes with a float of a tensor overwritten.
TinyModel spoiled(const std::string& good, const char* tensor, float value) {
  TinyModel model;
  model.file = good;
  auto source = sized<greta_source>();
  source.memory = good.data();
  source.memory_bytes = good.size();
  greta_file* file = nullptr;
  REQUIRE(greta_file_open(&source, &file) == GRETA_OK);
  bool found = false;
  for (uint64_t i = 0; i < greta_file_tensor_count(file) && !found; ++i) {
    auto info = sized<greta_tensor_info>();
    REQUIRE(greta_file_tensor(file, i, &info) == GRETA_OK);
    if (strcmp(info.name, tensor)) continue;
    found = true;
    memcpy(&model.file[info.offset_bytes + 37 * sizeof value], &value, sizeof value);
  }
  greta_file_close(file);
  REQUIRE(found);
  return model;
}

void check_told(Objects& o) {
  const int32_t tokens[] = {1, 20, 30, 40, 50};
  auto generate = sized<greta_generate_options>();
  generate.max_tokens = 4;
  for (const size_t count : {size_t(1), std::size(tokens)}) {  // a decode step, and that of a prompt
    REQUIRE(greta_session_truncate(o.session, 0) == GRETA_OK);
    CHECK(greta_session_generate(o.session, tokens, count, &generate, nullptr) == GRETA_ERROR_FILE);
    REQUIRE(greta_session_truncate(o.session, 0) == GRETA_OK);
    const float* logits = nullptr;
    REQUIRE(greta_session_eval(o.session, tokens, count, GRETA_ROWS_LAST, &logits) == GRETA_OK);
    size_t finite = 0;
    auto info = sized<greta_model_info>();
    REQUIRE(greta_model_describe(o.model, &info) == GRETA_OK);
    for (uint32_t i = 0; i < info.vocab_size; ++i) finite += std::isfinite(logits[i]);
    CHECK(finite == 0);
  }
  REQUIRE(greta_session_truncate(o.session, 0) == GRETA_OK);
  const float* vector = nullptr;
  auto embed = sized<greta_embed_options>();
  CHECK(greta_session_embed(o.session, tokens, std::size(tokens), &embed, &vector) == GRETA_ERROR_FILE);
}

}  // namespace

TEST_CASE("not finite: a gain that is NaN or infinite is told in every type of weights", "[api][models]") {
  const char* const names[] = {"tales-llama-7m-q8_0",   "tales-llama-7m-q4_k_m",   "tales-llama-7m-q2_k",
                               "tales-llama-7m-iq4_xs", "tales-llama-7m-f16",      "stories260K-bf16",
                               "stories260K-q4_0",      "tales-qwen3moe-8m-q4_k_m"};
  for (const char* name : names) {
    const std::string good = read_file(test_data() / "models" / (std::string(name) + ".gguf"));
    for (const char* tensor : {"blk.0.attn_norm.weight", "blk.1.ffn_norm.weight", "output_norm.weight"})
      for (const float value : {NAN, INFINITY, -INFINITY}) {
        INFO(name << ", " << value << " in " << tensor);
        Objects o(spoiled(good, tensor, value));
        REQUIRE(o.load() == GRETA_OK);
        check_told(o);
      }
  }
}
