// What is said of a file with an architecture that nobody knows: which known one is nearest by its tensors.
#include "engine/model/nearest_arch.h"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "places.h"
#include "support/gguf_writer.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;

namespace {

// A golden under a name of its own.
ModelFile renamed(const char* golden, const std::string& name) {
  ModelFile model = read_model(golden);
  const std::string prefix = model.text("general.architecture") + ".";
  set_text("general.architecture", name.c_str())(model);
  for (ModelFile::Value& value : model.values)
    if (value.key.starts_with(prefix)) value.key = name + "." + value.key.substr(prefix.size());
  return model;
}

using Names = std::set<std::string>;

// The tensors of each architecture that the public package `gguf` knows, without their endings
// (make_tensor_lists.py).
std::map<std::string, Names> tensor_lists() {
  std::map<std::string, Names> lists;
  std::ifstream file(GRETA_SOURCE_DIR "/tests/models/tensor_lists.tsv");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string arch, name;
    words >> arch;
    while (words >> name) lists[arch].insert(name);
  }
  REQUIRE(lists.size() > 150);
  return lists;
}

// "blk.%u.attn_q.weight" and "blk.*.attn_q.weight" to "blk.*.attn_q".
std::string stem(std::string name) {
  if (const size_t layer = name.find("%u"); layer != name.npos) name.replace(layer, 2, "*");
  for (const std::string ending : {".weight", ".bias"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

std::span<const TensorName> all_names(const Arch& arch) {
  return {reinterpret_cast<const TensorName*>(&arch.tensors), sizeof(TensorNames) / sizeof(TensorName)};
}

bool is_default(const TensorName& name, const TensorName& of_llama) {
  return of_llama.text && std::string_view(name.text) == of_llama.text;
}

// The names that files give tensors, by those without an ending, as far as an architecture of this build says
// them.
std::map<std::string, std::string> known_names(const std::map<std::string, Names>& lists) {
  std::map<std::string, std::string> known;
  for (const auto& [name, list] : lists) {
    const Arch* arch = nullptr;
    if (!find_arch(name, &arch).ok()) continue;
    for (const TensorName& each : all_names(*arch)) {
      if (!each.text) continue;
      std::string& full = known[stem(each.text)];
      if (full.ends_with(".weight")) continue;  // of one with a bias beside it
      full = each.text;
      if (const size_t layer = full.find("%u"); layer != full.npos) full.replace(layer, 2, "*");
    }
  }
  return known;
}

// A file of two layers with the tensors of a list, and sizes such as an architecture with them has.
std::string file_of(const std::string& arch, const Names& full_names) {
  const auto has = [&](const char* part) {
    return std::ranges::any_of(full_names,
                               [&](const std::string& name) { return name.find(part) != name.npos; });
  };
  const bool latent = has("attn_kv_a_mqa");
  GgufWriter writer;
  writer.value("general.architecture", arch.c_str());
  const auto put = [&](const char* key, uint32_t number) { writer.value(arch + "." + key, number); };
  put("block_count", 2), put("context_length", 64), put("embedding_length", 16),
      put("feed_forward_length", 32);
  const uint32_t heads = has("attn_q") || has("attn_kv") ? 2 : 0;
  put("vocab_size", 8), put("attention.head_count", heads);
  put("attention.head_count_kv", latent ? 1 : heads);
  put("attention.key_length", latent ? 12 : 8), put("attention.value_length", 8),
      put("rope.dimension_count", 4);
  if (latent) {
    put("attention.kv_lora_rank", 8), put("attention.q_lora_rank", 8);
    put("attention.key_length_mla", 8), put("attention.value_length_mla", 4);
  }
  if (has("_exps")) put("expert_count", 4), put("expert_used_count", 2), put("expert_feed_forward_length", 8);
  if (has("_shexp")) put("expert_shared_count", 1), put("expert_shared_feed_forward_length", 8);
  if (has("ssm_")) {
    put("ssm.conv_kernel", 4), put("ssm.inner_size", 32), put("ssm.state_size", 8), put("ssm.group_count", 2);
    put("ssm.time_step_rank", 2), put("full_attention_interval", 2);
  }
  if (has("shortconv")) put("shortconv.l_cache", 3);
  writer.value(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
  writer.value(arch + ".attention.layer_norm_epsilon", 1e-5f);
  for (const std::string& name : full_names) {
    const size_t layer = name.find('*');
    for (const char* number : {"0", "1"}) {
      if (layer == name.npos && number[0] == '1') break;
      std::string in_file = name;
      if (layer != name.npos) in_file.replace(layer, 1, number);
      writer.tensor(in_file, 0, {8, 8}, std::string(256, 0));
    }
  }
  return writer.file();
}

}  // namespace

TEST_CASE("tensor lists: an architecture of this build has the tensors that the public package knows",
          "[models]") {
  // What it does not run: the fused form of experts, embeddings of texts and classes, norms that no published
  // model has, and experts that read fewer values than a layer has.
  const std::map<std::string, Names> left_out = {
      {"granite_swa", {"blk.*.ffn_gate_up_exps"}},
      {"lfm2", {"cls", "cls.norm", "cls.output", "dense_2", "token_types"}},
      {"nemotron_h_moe", {"blk.*.ffn_latent_down", "blk.*.ffn_latent_up"}},
      {"qwen35", {"cls.output"}},
      {"qwen35moe", {"blk.*.ffn_gate_up_exps"}},
      {"qwen3next", {"blk.*.ffn_gate_up_exps", "blk.*.ssm_in"}},
      {"stablelm", {"blk.*.attn_k_norm", "blk.*.attn_q_norm"}},
  };
  const TensorNames defaults;
  const auto* of_llama = reinterpret_cast<const TensorName*>(&defaults);
  size_t known = 0;
  for (const auto& [name, list] : tensor_lists()) {
    const Arch* arch = nullptr;
    if (!find_arch(name, &arch).ok()) continue;
    ++known;
    INFO(name);
    Names ours, missing;
    for (size_t i = 0; i < all_names(*arch).size(); ++i) {
      const TensorName& each = all_names(*arch)[i];
      if (!each.text) continue;
      ours.insert(stem(each.text));
      // The router's gain of gemma4 is in no list, since it has the name of a factor.
      if (is_default(each, of_llama[i]) || stem(each.text) == "blk.*.ffn_gate_inp.scale") continue;
      INFO(each.text);
      CHECK(list.contains(stem(each.text)));
    }
    for (const std::string& tensor : list)
      if (!ours.contains(tensor) && tensor.find(".nextn.") == tensor.npos && tensor != "blk.*.attn_rot_embd")
        missing.insert(tensor);
    const auto expected = left_out.find(name);
    CHECK(missing == (expected == left_out.end() ? Names{} : expected->second));
  }
  CHECK(known >= 58);
}

TEST_CASE("tensor lists: of each architecture that nobody knows the nearest one is named, with what differs",
          "[models]") {
  const std::map<std::string, Names> lists = tensor_lists();
  const std::map<std::string, std::string> known = known_names(lists);
  // Every architecture reads attention and experts under llama's names where the file's sizes call for them.
  Names of_all;
  const Arch plain = {.name = ""};
  for (const TensorName& each : all_names(plain))
    if (each.text) of_all.insert(stem(each.text));
  size_t by_size = 0, unknown = 0;
  for (const auto& [name, list] : lists) {
    const Arch* arch = nullptr;
    if (find_arch(name, &arch).ok() || list.empty()) continue;
    INFO(name);
    Names full;
    for (const std::string& tensor : list) {
      const auto found = known.find(tensor);
      full.insert(found == known.end() ? tensor + ".weight" : found->second);
    }
    const std::string bytes = file_of(name, full);
    Source source;
    Gguf gguf;
    REQUIRE(source.open_memory(bytes.data(), bytes.size()).ok());
    REQUIRE(gguf.open(std::move(source)).ok());
    const Nearest nearest = nearest_arch(gguf, name);
    REQUIRE(!nearest.archs.empty());
    ++unknown, by_size += nearest.by_size;
    Names of_nearest = of_all;
    std::string called;
    for (const Arch* each : nearest.archs) {
      called += std::string(" ") + each->name;
      of_nearest.insert(lists.at(each->name).begin(), lists.at(each->name).end());
    }
    INFO(called << (nearest.by_size ? "" : " by names"));
    for (const std::string& tensor : nearest.unused_tensors) {
      INFO(tensor);
      CHECK(full.contains(tensor));
    }
    for (const std::string& tensor : nearest.lacking_tensors) {
      INFO(tensor);
      CHECK(!full.contains(tensor));
      CHECK(of_nearest.contains(stem(tensor)));
    }
    // What the other's list does not have is said to be of no use.
    for (const std::string& tensor : full)
      if (!of_nearest.contains(stem(tensor)) && tensor.starts_with("blk.") &&
          tensor != "blk.*.attn_rot_embd.weight") {
        INFO(tensor);
        CHECK(nearest.unused_tensors.contains(tensor));
      }
    CHECK(file_arch(gguf, &arch).code == Code::Unsupported);
    CHECK(std::string(error_text()).find("nearest by ") != std::string::npos);
  }
  INFO(unknown << " unknown, " << by_size << " by size");
  CHECK(unknown >= 95);
  CHECK(by_size >= 70);
}

TEST_CASE("nearest architecture: the error for an unknown one names it, and what is different", "[models]") {
  ModelLoader loader;
  loader.check_refused(
      renamed("qwen3-converted", "nobody"),
      "nearest by its tensors: \"hunyuan-dense\", \"qwen3\", \"qwen3vl\", with the same tensors and keys");
  loader.check_refused(renamed("gpt-oss-f32", "nobody"), "nearest by its tensors: \"gpt-oss\"");
  loader.check_refused(renamed("glm4-converted", "nobody"), "nearest by its tensors: \"glm4\"");
  loader.check_refused(renamed("deepseek2-v3", "nobody"), "nearest by its tensors: \"deepseek2\"");
  loader.check_refused(renamed("gemma3-pattern6", "nobody"), "nearest by its tensors: \"gemma3\"");

  ModelFile gated = renamed("qwen3-converted", "nobody");
  for (const char* name : {"blk.0.attn_gate.weight", "blk.1.attn_gate.weight"})
    gated.tensors.push_back({name, 0, {4}, std::string(16, 0)});
  gated.drop_tensor("blk.1.ffn_norm.weight");
  gated.values.push_back({"nobody.attention.clamp_kqv", 6, Bytes().number(8.0f).data});
  loader.check_refused(gated, "tensors that it has no use for, 1: \"blk.*.attn_gate.weight\"");
  loader.check_refused(gated, "tensors that it would lack, 1: \"blk.*.ffn_norm.weight\"");
  loader.check_refused(gated, "keys that it does not read, 1: \"nobody.attention.clamp_kqv\"");
}

TEST_CASE("nearest architecture: a file whose sizes are like nothing is refused all the same", "[models]") {
  ModelLoader loader;
  ModelFile model = renamed("llama-plain", "nobody");
  model.drop_value("nobody.embedding_length");
  loader.check_refused(model, "no known architecture has sizes like its own");
  model = renamed("llama-plain", std::string(300, 'x'));
  loader.check_refused(model, "is not one of those this build runs");
}
