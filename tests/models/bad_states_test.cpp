// Models whose layers keep states, with one thing broken: each must be refused at load, with a sentence that
// names the tensor or the key.
#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "support/gguf_writer.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr const char* kGoldens[] = {
    "lfm2-converted",          "lfm2moe-converted",    "qwen35-converted",         "qwen35moe-converted",
    "qwen3next-converted",     "mamba-converted",      "mamba2-converted",         "falcon-h1-converted",
    "granitehybrid-converted", "nemotron_h-converted", "nemotron_h_moe-converted", "jamba-converted"};

constexpr uint32_t kString = 8, kArray = 9, kFloats = 6, kInts = 5, kBools = 7;

// A key's value becomes an array of `count` zeros of a type.
Edit array_of(const std::string& key, uint32_t type, uint64_t count) {
  return [=](ModelFile& m) {
    std::erase_if(m.values, [&](const auto& value) { return value.key == key; });
    const size_t bytes = type == kBools ? 1 : type == kString ? 8 : 4;
    m.values.push_back({key, kArray, Bytes().u32(type).u64(count).data + std::string(count * bytes, '\0')});
  };
}

bool has_value(const ModelFile& file, const std::string& key) {
  return std::ranges::any_of(file.values, [&](const auto& value) { return value.key == key; });
}

}  // namespace

TEST_CASE("bad states: each tensor of a layer missing", "[models][architectures][bad]") {
  ModelLoader loader;
  for (const char* golden : kGoldens) {
    DYNAMIC_SECTION(golden) {
      const ModelFile good = read_model(golden);
      REQUIRE(loader.load(good).ok());
      size_t refused = 0;
      for (size_t i = 0; i < good.tensors.size(); ++i) {
        const std::string name = good.tensors[i].name;
        if (!name.starts_with("blk.") || name.ends_with("exp_probs_b.bias")) continue;
        INFO(name);
        ModelFile model = good;
        model.tensors.erase(model.tensors.begin() + std::ptrdiff_t(i));
        const std::string layer = name.substr(0, name.find('.', 4) + 1);
        // A router or an attention's key that is missing makes it a layer of another kind.
        loader.check_refused(model, name.find("ffn_") != name.npos ? layer + "ffn_" : layer);
        if (name.find("ssm_") != name.npos || name.find("shortconv") != name.npos)
          loader.check_refused(model, name);
        ++refused;
      }
      CHECK(refused > 5);
    }
  }
}

TEST_CASE("bad states: decays and rates that are not finite", "[models][architectures][bad]") {
  ModelLoader loader;
  for (const char* golden : kGoldens) {
    DYNAMIC_SECTION(golden) {
      const ModelFile good = read_model(golden);
      for (const ModelFile::Tensor& tensor : good.tensors) {
        if (!tensor.name.ends_with("ssm_a") && !tensor.name.ends_with("ssm_dt.bias")) continue;
        for (const float number :
             {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
              -std::numeric_limits<float>::infinity()}) {
          INFO(tensor.name << " of " << number);
          ModelFile model = good;
          poke(tensor.name.c_str(), number)(model);
          loader.check_refused(model, tensor.name);
        }
      }
    }
  }
}

TEST_CASE("bad states: arrays of layers that are too short, all zeros or of another type",
          "[models][architectures][bad]") {
  ModelLoader loader;
  for (const char* golden : kGoldens) {
    DYNAMIC_SECTION(golden) {
      const ModelFile good = read_model(golden);
      const std::string arch = good.text("general.architecture");
      const uint64_t layers = good.numbers<uint32_t>(arch + ".block_count")[0];
      for (const char* name :
           {".attention.head_count_kv", ".feed_forward_length", ".attention.recurrent_layers"}) {
        const std::string key = arch + name;
        if (!has_value(good, key)) continue;
        const bool flags = key.ends_with("recurrent_layers");
        const uint32_t type = flags ? kBools : kInts;
        const std::pair<const char*, Edit> edits[] = {
            {"too short", array_of(key, type, layers - 1)}, {"empty", array_of(key, type, 0)},
            {"too long", array_of(key, type, layers + 1)},  {"floats", array_of(key, kFloats, layers)},
            {"texts", array_of(key, kString, layers)},      {"a text", set_text(key, "2")}};
        for (const auto& [what, edit] : edits) {
          INFO(key << ": " << what);
          ModelFile model = good;
          edit(model);
          loader.check_refused(model, key);
        }
        INFO(key << ": zeros");
        ModelFile model = good;
        array_of(key, type, layers)(model);
        CHECK(loader.load(model).code != Code::Ok);  // tensors that are there would not be used
      }
    }
  }
}

TEST_CASE("bad states: a layer with neither attention, nor a state, nor a feed-forward block",
          "[models][architectures][bad]") {
  ModelLoader loader;
  ModelFile model = read_model("qwen35-converted");
  const uint64_t layers = model.numbers<uint32_t>("qwen35.block_count")[0];
  array_of("qwen35.attention.head_count_kv", kInts, layers)(model);
  array_of("qwen35.feed_forward_length", kInts, layers)(model);
  loader.check_refused(model, "qwen35.feed_forward_length");
}
