// What a file says is what runs: goldens with one key or one tensor changed. After each change the logits are
// those of the reference with that setting, or loading ends with a sentence that names the key or the tensor.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "models/reference_transformer.h"
#include "places.h"
#include "support/gguf_writer.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr double kSame = 1e-8;  // NMSE; changes that the reference sees are above 2e-7

// What the reference says of changed goldens, made by tests/golden/make_settings.py.
struct Settings {
  struct Entry {
    std::vector<float> logits;  // of the last position; empty: those of the golden
    std::string reason;         // why they are those of the golden
    bool refused = false;       // there is no result
    bool used = false;
  };
  std::map<std::string, Entry> entries;  // by "<golden>|<key or tensor>|<change>"

  Settings() {
    Source source;
    Gguf gguf;
    REQUIRE(source.open_file(GRETA_SOURCE_DIR "/tests/golden/settings.gguf").ok());
    REQUIRE(gguf.open(std::move(source)).ok());
    for (const GgufValue& value : gguf.values()) {
      Entry entry;
      entry.refused = value.type == ValueType::Bool;
      if (value.type == ValueType::String)
        entry.reason.assign(reinterpret_cast<const char*>(value.data), value.bytes);
      else if (value.type == ValueType::Array)
        entry.logits.resize(value.count), memcpy(entry.logits.data(), value.data, value.bytes);
      if (value.key.find('|') != value.key.npos) entries.emplace(value.key, std::move(entry));
    }
  }
  // Null: the reference has no result.
  Entry* find(const std::string& name) {
    const auto found = entries.find(name);
    if (found == entries.end()) return nullptr;
    found->second.used = true;
    return &found->second;
  }
  // The changes of a golden's key that have an entry and begin with `kind`.
  std::vector<std::string> changes(const std::string& key, const char* kind) const {
    std::vector<std::string> found;
    for (auto at = entries.lower_bound(key + "|" + kind); at != entries.end(); ++at) {
      if (!at->first.starts_with(key + "|" + kind)) break;
      found.push_back(at->first.substr(key.size() + 1));
    }
    return found;
  }
};

// ---- changes of a value -----------------------------------------------------------------------

// A number of GGUF's type, times the factor; a bool turned round.
template <class T>
void scale_as(char* data, double factor) {
  T value;
  memcpy(&value, data, sizeof value);
  if constexpr (std::is_same_v<T, float>)
    value *= float(factor);
  else
    value = T(double(value) * factor);
  memcpy(data, &value, sizeof value);
}

void scale(ValueType type, char* data, double factor) {
  switch (type) {
    case ValueType::U32:
      return scale_as<uint32_t>(data, factor);
    case ValueType::I32:
      return scale_as<int32_t>(data, factor);
    case ValueType::F32:
      return scale_as<float>(data, factor);
    case ValueType::Bool:
      *data = !*data;
      return;
    default:
      FAIL("a key of type " << value_type_name(type));
  }
}

void change_value(ModelFile* model, const std::string& key, const std::string& change) {
  ModelFile::Value& value = model->value(key);
  const ValueType type = ValueType(value.type);
  if (change == "removed") return model->drop_value(key);
  if (change == "renamed") return void(value.key += "_x");
  if (change == "twice") return model->values.push_back(ModelFile::Value(value));
  if (change.starts_with("= ")) return void(value.payload = Bytes().string(change.substr(2)).data);
  if (change.starts_with("x")) return scale(type, value.payload.data(), std::stod(change.substr(1)));
  if (change == "flipped") return scale(type, value.payload.data(), 2);
  REQUIRE(change.starts_with("element "));
  ValueType element;
  memcpy(&element, value.payload.data(), sizeof element);
  const size_t bytes = value_bytes(element), index = std::stoul(change.substr(8));
  scale(element, value.payload.data() + 12 + index * bytes, 2);
}

std::vector<std::string> changes_of(const ModelFile::Value& value, const Settings& settings,
                                    const std::string& entry) {
  std::vector<std::string> changes = {"removed", "renamed", "twice"};
  const ValueType type = ValueType(value.type);
  const auto add = [&](const std::string& change) {
    if (std::ranges::find(changes, change) == changes.end()) changes.push_back(change);
  };
  if (type == ValueType::Array) {
    uint64_t count = 0;
    memcpy(&count, value.payload.data() + 4, sizeof count);
    add("element " + std::to_string(count / 2));
  } else if (type == ValueType::String) {
    for (const char* text : {"none", "linear", "yarn", "longrope", "llama3", "banana"})
      if (value.payload != Bytes().string(text).data) add(std::string("= ") + text);
  } else if (type == ValueType::Bool) {
    add("flipped");
  } else {
    for (const std::string& change : settings.changes(entry, "x")) add(change);
    if (std::ranges::none_of(changes, [&](const std::string& change) {
          return change[0] == 'x' && !settings.entries.at(entry + "|" + change).refused;
        }))
      add("x2");
  }
  return changes;
}

// ---- what comes of a file ---------------------------------------------------------------------

// Whether the text has the name as a word of its own: head_count is not in head_count_kv.
bool names(const std::string& text, const std::string& name) {
  const auto part_of_name = [](char c) { return isalnum(uint8_t(c)) || c == '_'; };
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool goes_on =
        end < text.size() && (part_of_name(text[end]) ||
                              (text[end] == '.' && end + 1 < text.size() && part_of_name(text[end + 1])));
    if (!goes_on && (at == 0 || !part_of_name(text[at - 1]))) return true;
  }
  return false;
}

struct Golden {
  std::string name, prefix;
  ModelFile good;
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // of the last position
  uint32_t context = 0;
};

Golden read_golden(const std::string& name) {
  Golden golden{name, "", read_model(name), {}, {}, 0};
  golden.prefix = golden.good.text("general.architecture") + ".";
  golden.tokens = golden.good.numbers<int32_t>("golden.tokens");
  golden.context = golden.good.numbers<uint32_t>("golden.context")[0];
  const std::vector<float> all = golden.good.numbers<float>("golden.logits");
  golden.logits.assign(all.end() - ptrdiff_t(all.size() / golden.tokens.size()), all.end());
  golden.good.drop_value("golden.logits");  // so that there is less to write
  return golden;
}

// The model lists the key as one that it does not know; or as needless, where all keys of a family are
// (ssm.*).
bool is_listed(const Model& model, const std::string& key) {
  const auto wanted =
      key.find(".ssm.") == key.npos ? UnusedPart::Verdict::Unknown : UnusedPart::Verdict::Needless;
  return std::ranges::any_of(
      model.unused, [&](const UnusedPart& part) { return part.name == key && part.verdict == wanted; });
}

// As the entry of the reference says; without one the file is refused with one of these names in the text.
void check_outcome(ModelLoader& loader, const Golden& golden, const ModelFile& changed,
                   const Settings::Entry* entry, const std::vector<std::string>& any_of) {
  clear_error_text();
  std::unique_ptr<LoadedModel> loaded;
  const Status status = loader.load(changed, golden.context, &loaded);
  const std::string text = status.ok() ? "" : error_text();
  INFO("the error's text: " << text);
  if (!entry || entry->refused) {
    CHECK_FALSE(status.ok());
    CHECK(std::ranges::any_of(any_of, [&](const std::string& name) { return names(text, name); }));
    return;
  }
  CHECK(status.ok());
  if (!status.ok()) return;
  INFO("the reference: " << (entry->reason.empty() ? "other logits" : entry->reason));
  const std::vector<float>& wanted = entry->logits.empty() ? golden.logits : entry->logits;
  const std::vector<float> got = loaded->last_logits(golden.tokens);
  REQUIRE(got.size() == wanted.size());
  CHECK(nmse(got.data(), {wanted.begin(), wanted.end()}) <= kSame);
  for (const ModelFile::Value& value : changed.values)
    if (value.key.ends_with("_x")) CHECK(is_listed(loaded->model, value.key));
}

}  // namespace

TEST_CASE("file use: each key of a golden removed, renamed, twice, or with another value",
          "[models][architectures]") {
  Settings settings;
  ModelLoader loader;
  for (const std::string& name : golden_names()) {
    DYNAMIC_SECTION(name) {
      const Golden golden = read_golden(name);
      for (const ModelFile::Value& value : golden.good.values) {
        if (!value.key.starts_with(golden.prefix)) continue;
        const std::string key = value.key.substr(golden.prefix.size()), entry = name + "|" + key;
        for (const std::string& change : changes_of(value, settings, entry)) {
          INFO(key << " " << change);
          ModelFile changed = golden.good;
          change_value(&changed, value.key, change);
          const bool renamed = change == "renamed";
          check_outcome(loader, golden, changed, settings.find(entry + "|" + (renamed ? "removed" : change)),
                        {key});
        }
      }
      for (const auto& [at, entry] : settings.entries)
        if (at.starts_with(name + "|") && at.find(".weight|") == at.npos && at.find(".bias|") == at.npos) {
          INFO("an entry that no change asked for: " << at);
          CHECK(entry.used);
        }
    }
  }
}

// ---- tensors ----------------------------------------------------------------------------------

namespace {

// Of a golden's tensors, those of the last layer and those of none: in other layers they are missed in the
// same way.
std::vector<size_t> tensors_to_change(const ModelFile& model) {
  std::map<std::string, size_t> last;
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    std::string name = model.tensors[i].name;
    if (name.starts_with("blk.")) name = name.substr(name.find('.', 4));
    last[name] = i;
  }
  std::vector<size_t> all;
  for (const auto& [name, index] : last) all.push_back(index);
  return all;
}

// What is asked for where the tensor is missing: the tensor, or one of those that it stands for.
std::vector<std::string> missed(const std::string& name) {
  const size_t at = name.find("attn_qkv.");
  return at == name.npos ? std::vector{name}
                         : std::vector{name, name.substr(0, at) + "attn_q.weight", name.substr(at)};
}

std::string with_part(std::string name, const char* part) { return name.insert(name.rfind('.'), part); }

}  // namespace

TEST_CASE("file use: each tensor of a golden removed, or renamed", "[models][architectures]") {
  Settings settings;
  ModelLoader loader;
  for (const std::string& name : golden_names()) {
    DYNAMIC_SECTION(name) {
      const Golden golden = read_golden(name);
      for (const size_t index : tensors_to_change(golden.good)) {
        const std::string tensor = golden.good.tensors[index].name;
        INFO(tensor);
        ModelFile changed = golden.good;
        changed.drop_tensor(tensor);
        check_outcome(loader, golden, changed, settings.find(name + "|" + tensor + "|removed"),
                      missed(tensor));
        changed = golden.good;
        changed.tensors[index].name = with_part(tensor, "_x");
        std::vector<std::string> named = missed(tensor);
        named.push_back(changed.tensors[index].name);
        check_outcome(loader, golden, changed, nullptr, named);
      }
    }
  }
}

// Whether a tensor makes keys or values in a layer that uses the cache of an earlier one.
static bool of_shared_cache(const Golden& golden, const std::string& tensor) {
  const std::string key = golden.prefix + "attention.shared_kv_layers";
  const auto has_key = [&](const ModelFile::Value& value) { return value.key == key; };
  if (!tensor.starts_with("blk.") || std::ranges::none_of(golden.good.values, has_key)) return false;
  const uint32_t layers = golden.good.numbers<uint32_t>(golden.prefix + "block_count")[0],
                 layer = uint32_t(std::stoul(tensor.substr(4)));
  const std::string part = tensor.substr(tensor.find('.', 4));
  return layer < layers && layer + golden.good.numbers<uint32_t>(key)[0] >= layers &&
         (part.starts_with(".attn_k.") || part.starts_with(".attn_k_norm.") || part.starts_with(".attn_v."));
}

TEST_CASE("file use: a tensor more than an architecture has use for", "[models][architectures]") {
  std::map<std::string, ModelFile::Tensor> foreign;  // of all goldens
  for (const std::string& name : golden_names())
    for (const ModelFile::Tensor& tensor : read_model(name).tensors) foreign.emplace(tensor.name, tensor);
  for (const char* name :
       {"magic.weight", "blk.0.attn_magic.weight", "blk.0.attn_q.scale", "blk.99.attn_q.weight",
        "blk.0.ssm_in.weight", "cls.output.weight", "output_norm.bias", "blk.0.attn_norm.bias"})
    foreign[name] = {name, 0, {4}, std::string(16, 0)};
  // What is another model if it is there, and not a damaged one: a head or its bias, factors, experts that
  // are chosen with a bias, or whose results have factors.
  const std::set<std::string> another = {"output.weight",
                                         "output.bias",
                                         "rope_freqs.weight",
                                         "blk.1.exp_probs_b.bias",
                                         "blk.0.ffn_down_exps.scale",
                                         "blk.1.ffn_down_exps.scale"};
  ModelLoader loader;
  for (const std::string& name : golden_names()) {
    DYNAMIC_SECTION(name) {
      const Golden golden = read_golden(name);
      const std::string dense = golden.prefix + "leading_dense_block_count";
      const bool one_dense = std::ranges::any_of(golden.good.values, [&](const ModelFile::Value& value) {
        return value.key == dense && golden.good.numbers<uint32_t>(dense)[0] == 1;
      });
      for (const auto& [tensor_name, tensor] : foreign) {
        const auto is_it = [&](const ModelFile::Tensor& each) { return each.name == tensor.name; };
        if (std::ranges::any_of(golden.good.tensors, is_it) || another.contains(tensor_name)) continue;
        if (one_dense && tensor_name.starts_with("blk.0.ffn_") && tensor_name.ends_with(".bias"))
          continue;                                          // the one layer that it is for has it then
        if (of_shared_cache(golden, tensor_name)) continue;  // it is listed as needless
        INFO(tensor_name);
        ModelFile changed = golden.good;
        changed.tensors.push_back(tensor);
        check_outcome(loader, golden, changed, nullptr, missed(tensor_name));
      }
    }
  }
}

// An output matrix of its own where a model shares it with the embedding: twice as large, and so are the
// logits.
TEST_CASE("file use: a head of its own for a tied model", "[models][architectures]") {
  ModelLoader loader;
  for (const std::string& name : golden_names()) {
    const Golden golden = read_golden(name);
    const auto has = [](const auto& list, auto member, const std::string& wanted) {
      return std::ranges::any_of(list, [&](const auto& each) { return each.*member == wanted; });
    };
    if (has(golden.good.tensors, &ModelFile::Tensor::name, "output.weight")) continue;
    if (has(golden.good.values, &ModelFile::Value::key, golden.prefix + "final_logit_softcapping")) continue;
    DYNAMIC_SECTION(name) {
      ModelFile changed = golden.good;
      ModelFile::Tensor head = changed.tensor("token_embd.weight");
      for (size_t at = 0; at < head.data.size(); at += sizeof(float))
        scale(ValueType::F32, &head.data[at], 2);
      head.name = "output.weight";
      changed.tensors.push_back(head);
      Settings::Entry twice;
      for (const float logit : golden.logits) twice.logits.push_back(2 * logit);
      check_outcome(loader, golden, changed, &twice, {});
    }
  }
}

// A linear scaling of positions and frequency factors that are all the same number are two ways to say one
// thing.
TEST_CASE("file use: frequency factors do what linear scaling does", "[models][architectures]") {
  ModelLoader loader;
  for (const std::string& name : golden_names()) {
    const Golden golden = read_golden(name);
    const auto has_tensor = [&](const char* wanted) {
      return std::ranges::any_of(golden.good.tensors,
                                 [&](const auto& tensor) { return tensor.name == wanted; });
    };
    const auto scaled = [&](const auto& value) { return value.key == golden.prefix + "rope.scaling.type"; };
    if (std::ranges::any_of(golden.good.values, scaled) || has_tensor("rope_freqs.weight") ||
        has_tensor("rope_factors_long.weight"))
      continue;
    DYNAMIC_SECTION(name) {
      ModelFile linear = golden.good;
      set_text(golden.prefix + "rope.scaling.type", "linear")(linear);
      set_f32(golden.prefix + "rope.scaling.factor", 4)(linear);
      std::unique_ptr<LoadedModel> loaded;
      REQUIRE(loader.load(linear, golden.context, &loaded).ok());
      const Shape& shape = loaded->model.shape;
      const auto turns = [&](const LayerShape& layer) {
        return layer.attends() && layer.rope_table != kNoRope &&
               shape.rope[layer.rope_table].kind == RopeTable::Kind::Turns;
      };
      if (std::ranges::none_of(shape.each, turns)) continue;
      Settings::Entry slower;
      slower.logits = loaded->last_logits(golden.tokens);
      CHECK(nmse(slower.logits.data(), {golden.logits.begin(), golden.logits.end()}) > 1e-4);
      const std::vector<float> factors(shape.rope[0].width / 2, 4.0f);
      ModelFile changed = golden.good;
      changed.tensors.push_back(
          {"rope_freqs.weight",
           0,
           {factors.size()},
           {reinterpret_cast<const char*>(factors.data()), factors.size() * sizeof(float)}});
      check_outcome(loader, golden, changed, &slower, {});
    }
  }
}

TEST_CASE("file use: layers that draft tokens are passed over, and counted", "[models][architectures]") {
  const Golden golden = read_golden("deepseek2-converted-glm");
  ModelFile drafting = golden.good;
  drafting.set_u32("deepseek2.block_count", 3);
  drafting.set_u32("deepseek2.nextn_predict_layers", 1);
  for (ModelFile::Tensor tensor : golden.good.tensors)
    if (tensor.name.starts_with("blk.1.")) {
      tensor.name[4] = '2';
      drafting.tensors.push_back(tensor);
    }
  drafting.tensors.push_back({"blk.2.nextn.eh_proj.weight", 0, {64, 32}, std::string(64 * 32 * 4, 1)});
  ModelLoader loader;
  Settings::Entry same;
  check_outcome(loader, golden, drafting, &same, {});
  for (const uint32_t count : {0u, 2u, 3u, 4u}) {
    ModelFile changed = drafting;
    changed.set_u32("deepseek2.nextn_predict_layers", count);
    INFO(count << " layers");
    check_outcome(loader, golden, changed, nullptr,
                  {"nextn_predict_layers", "blk.1.attn_norm.weight", "blk.2.nextn.eh_proj.weight"});
  }
  drafting.drop_value("deepseek2.nextn_predict_layers");
  check_outcome(loader, golden, drafting, nullptr, {"blk.2.nextn.eh_proj.weight"});
}
