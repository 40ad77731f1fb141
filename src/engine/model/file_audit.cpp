#include "engine/model/file_audit.h"

#include <algorithm>
#include <map>

#include "text/text.h"

namespace greta {

namespace {

using Verdict = UnusedPart::Verdict;

struct KnownKey {
  enum class Kind : uint8_t { Read, Needless, Changes } kind;
  const char* pattern;
  double neutral[2];
  const char* reason;
};

constexpr KnownKey kKeys[] = {
#define KEY_READ(name) {KnownKey::Kind::Read, name, {}, ""},
#define KEY_NEEDLESS(name, why) {KnownKey::Kind::Needless, name, {}, why},
#define KEY_CHANGES(name, a, b, what) {KnownKey::Kind::Changes, name, {a, b}, what},
#include "engine/model/gguf_keys.def"
#undef KEY_READ
#undef KEY_NEEDLESS
#undef KEY_CHANGES
};

struct KnownTensor {
  const char* pattern;
  const char* reason;
};

constexpr KnownTensor kNeedlessTensors[] = {
    {"blk.*.attn_rot_embd.weight", "the frequencies follow from rope.freq_base"},
    {"rope_freqs.weight", "rope_factors_long.weight and rope_factors_short.weight are there"},
    {"*.input_scale", "it is for activations in 4 bits, and here they have at least 8"},
    {"mtp.*", "it drafts tokens ahead and does not change logits"},
    {"v.*", "it belongs to the part that reads pictures"},
    {"mm.*", "it belongs to the part that reads pictures"},
    {"a.*", "it belongs to the part that hears"},
};

// Tensors that the model would use if other keys were set. The reason names those keys.
constexpr KnownTensor kUncalledTensors[] = {
    {"blk.*.ffn_*_shexp.weight",
     "neither expert_shared_count nor expert_shared_feed_forward_length calls for it"},
    {"blk.*.ffn_*_exps.*", "expert_count and leading_dense_block_count do not call for it"},
    {"blk.*.ffn_gate_inp.*", "expert_count and leading_dense_block_count do not call for it"},
    {"blk.*.exp_probs_b.bias", "expert_count and leading_dense_block_count do not call for it"},
    {"blk.*.ffn_norm.*", "use_parallel_residual does not call for it"},
    {"per_layer_*", "embedding_length_per_layer_input does not call for it"},
    {"blk.*.inp_gate.*", "embedding_length_per_layer_input does not call for it"},
    {"blk.*.proj.*", "embedding_length_per_layer_input does not call for it"},
    {"blk.*.post_norm.*", "embedding_length_per_layer_input does not call for it"},
    {"blk.*.attn_q.*", "attn_qkv.weight is there, or attention is latent"},
    {"blk.*.attn_k.*", "attn_qkv.weight is there, or attention is latent"},
    {"blk.*.attn_v.*", "attn_qkv.weight is there, or attention is latent"},
    {"*", "the architecture has no use for it"},
};

// "*" in the pattern stands for any text, also for an empty one.
bool fits(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  for (size_t at = star; at <= text.size(); ++at)
    if (fits(pattern.substr(star + 1), text.substr(at))) return true;
  return false;
}

// Finds the row of a key. If `prefixed`, the key has the architecture's prefix, and `name` is without it.
const KnownKey* find_key(std::string_view name, bool prefixed) {
  for (const KnownKey& key : kKeys) {
    std::string_view pattern = key.pattern;
    if (pattern.starts_with("*.") != prefixed) continue;
    if (prefixed) pattern.remove_prefix(2);
    if (fits(pattern, name)) return &key;
  }
  return nullptr;
}

// Returns true if a value, or each value of an array, is one of two that change nothing.
bool is_neutral(const GgufValue& value, const double (&neutral)[2]) {
  std::vector<double> numbers;
  return gguf_numbers(value, &numbers) &&
         std::ranges::all_of(numbers, [&](double n) { return n == neutral[0] || n == neutral[1]; });
}

void add_key(const GgufValue& value, std::string_view prefix, std::vector<UnusedPart>* out) {
  const bool prefixed = value.key.starts_with(prefix);
  const KnownKey* known = find_key(prefixed ? value.key.substr(prefix.size()) : value.key, prefixed);
  if (!known) {
    if (prefixed) out->push_back({Verdict::Unknown, false, value.key, "this version does not know the key"});
    return;
  }
  if (known->kind == KnownKey::Kind::Changes && !is_neutral(value, known->neutral))
    out->push_back({Verdict::Refused, false, value.key, known->reason});
  else if (prefixed)
    out->push_back(
        {Verdict::Needless, false, value.key,
         known->kind == KnownKey::Kind::Needless ? known->reason : "it changes nothing in this model"});
}

// The number after "blk.", or -1.
int64_t layer_of(std::string_view name) {
  if (!name.starts_with("blk.")) return -1;
  int64_t layer = 0;
  size_t at = 4;
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9' && layer < kMaxLayers; ++at)
    layer = layer * 10 + (name[at] - '0');
  return at > 4 && at < name.size() && name[at] == '.' ? layer : -1;
}

// Returns true if the layer has tensors that predict a token further ahead.
bool drafts_tokens(const Gguf& gguf, int64_t layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".nextn.";
  return std::ranges::any_of(gguf.tensors(),
                             [&](const GgufTensor& tensor) { return tensor.name.starts_with(prefix); });
}

void add_tensor(const Gguf& gguf, const Shape& shape, std::string_view name, std::vector<UnusedPart>* out) {
  const int64_t layer = layer_of(name);
  if (layer >= shape.layers && layer < int64_t(shape.layers) + shape.draft_layers) {
    if (drafts_tokens(gguf, layer))
      out->push_back(
          {Verdict::Needless, true, name, "the layer drafts tokens ahead and does not change logits"});
    else
      out->push_back({Verdict::Refused, true, name,
                      "nextn_predict_layers says that the layer drafts tokens, but it has no nextn tensor"});
    return;
  }
  if (layer >= shape.layers) {
    out->push_back({Verdict::Refused, true, name, "block_count says that there are fewer layers"});
    return;
  }
  // Published files have these of all layers.
  if (layer >= 0 && shape.each[size_t(layer)].cache_of != LayerShape::kOwn &&
      (fits("blk.*.attn_k.*", name) || fits("blk.*.attn_k_norm.*", name) || fits("blk.*.attn_v.*", name))) {
    out->push_back({Verdict::Needless, true, name, "the layer uses the keys and values of an earlier one"});
    return;
  }
  const auto fitting = [&](const KnownTensor& row) { return fits(row.pattern, name); };
  const auto known = std::ranges::find_if(kNeedlessTensors, fitting);
  const bool needless = known != std::end(kNeedlessTensors);
  const char* reason = needless ? known->reason : std::ranges::find_if(kUncalledTensors, fitting)->reason;
  out->push_back({needless ? Verdict::Needless : Verdict::Refused, true, name, reason});
}

}  // namespace

std::vector<UnusedPart> unused_parts(const Gguf& gguf, const Arch& arch, const Shape& shape,
                                     const KeysRead& keys_read) {
  std::vector<UnusedPart> parts;
  const std::string prefix = std::string(arch.name) + ".";
  for (const GgufValue& value : gguf.values())
    if (!keys_read.contains(value.key)) add_key(value, prefix, &parts);

  std::set<std::string, std::less<>> used;
  Weights weights;
  for (const NamedTensor& each : model_tensors(gguf, arch, shape, &weights)) used.insert(each.name);
  for (const std::string_view name : factor_tensors(arch, shape)) used.emplace(name);
  for (const GgufTensor& tensor : gguf.tensors())
    if (!used.contains(tensor.name)) add_tensor(gguf, shape, tensor.name, &parts);
  return parts;
}

Status refuse_gaps(const Gguf& gguf, const Arch& arch, const Shape& shape) {
  // The last such tensor's name, by its name with %u for the layer.
  std::map<std::string_view, std::string> there, missing;
  Weights weights;
  for (const NamedTensor& each : model_tensors(gguf, arch, shape, &weights))
    if (!each.wanted.scale)
      (gguf.find_tensor(each.name) ? there : missing)[each.wanted.name.text] = each.name;
  for (const auto& [pattern, name] : missing)
    if (const auto other = there.find(pattern); other != there.end())
      return fail(Code::File, "%s: no tensor %s, but %s is there", gguf.name(), name.c_str(),
                  other->second.c_str());
  return {};
}

Status audit_file(const Gguf& gguf, std::vector<UnusedPart>* out) {
  const Arch* arch = nullptr;
  GRETA_TRY(file_arch(gguf, &arch));
  Shape shape;
  KeysRead keys;
  GRETA_TRY(read_shape(gguf, *arch, &shape, &keys));
  *out = unused_parts(gguf, *arch, shape, keys);
  return {};
}

Status refuse_unused(const Gguf& gguf, const Arch& arch, std::span<const UnusedPart> parts) {
  const auto refused = std::ranges::find(parts, Verdict::Refused, &UnusedPart::verdict);
  if (refused == parts.end()) return {};
  const std::string name = Quoted(refused->name).c_str();
  if (refused->tensor)
    return fail(Code::Unsupported, "%s: tensor %s would not be used: %s (%s)", gguf.name(), name.c_str(),
                refused->reason, arch.name);
  const std::string value = gguf_text(*gguf.find(refused->name), 80);
  return fail(Code::Unsupported, "%s: %s is %s, which this version cannot run in %s: %s", gguf.name(),
              name.c_str(), value.c_str(), arch.name, refused->reason);
}

}  // namespace greta
