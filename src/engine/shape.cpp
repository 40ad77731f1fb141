#include "engine/shape.h"

#include <cmath>
#include <string>

namespace greta {

#define ARCH(name) extern const Arch arch_##name;
#include "arch_list.inc"
#undef ARCH

static const Arch* const kArchs[] = {
#define ARCH(name) &arch_##name,
#include "arch_list.inc"
#undef ARCH
};

Status find_arch(std::string_view name, const Arch** out) {
  std::string known;
  for (const Arch* arch : kArchs) {
    if (name == arch->name) return *out = arch, Status{};
    known += known.empty() ? "" : ", ";
    known += arch->name;
  }
  return fail(Code::Unsupported, "architecture \"%.*s\" is not one of those this build runs: %s",
              int(name.size()), name.data(), known.c_str());
}

namespace {

// Reads keys under "<arch>." and keeps the first failure.
struct Reader {
  const Gguf& gguf;
  std::string prefix;
  Status status{};

  void u32(const char* key, uint32_t low, uint32_t high, uint32_t* value, bool required) {
    if (!status.ok()) return;
    const std::string name = prefix + key;
    if (required && !(status = gguf.require(name)).ok()) return;
    if (!(status = gguf.get_u32(name, value)).ok()) return;
    if (*value < low || *value > high)
      status = fail(Code::File, "%s: %s is %u, expected %u to %u", gguf.name(), name.c_str(), *value, low, high);
  }
  void f32(const char* key, float low, float high, float* value) {
    if (!status.ok()) return;
    const std::string name = prefix + key;
    if (!(status = gguf.get_f32(name, value)).ok()) return;
    if (!(*value >= low && *value <= high))
      status = fail(Code::File, "%s: %s is %g, expected %g to %g", gguf.name(), name.c_str(), double(*value),
                    double(low), double(high));
  }
  // A count that may be given for each layer; only one that is the same everywhere can be run.
  void same_in_layers(const char* key, uint32_t layers, uint32_t high, uint32_t* value, bool required) {
    if (!status.ok()) return;
    const std::string name = prefix + key;
    if (required && !(status = gguf.require(name)).ok()) return;
    if (!gguf.find(name)) return;
    std::vector<uint32_t> each(layers);
    if (!(status = gguf.get_layers_u32(name, layers, each.data())).ok()) return;
    for (uint32_t l = 0; l < layers; ++l)
      if (each[l] != each[0] || each[l] < 1 || each[l] > high) {
        status = fail(Code::Unsupported, "%s: %s is %u in layer %u and %u in layer 0, expected one value of 1 to %u",
                      gguf.name(), name.c_str(), each[l], l, each[0], high);
        return;
      }
    *value = each[0];
  }
};

Status read_rope_scaling(const Gguf& gguf, const Arch& arch, Reader& reader, Shape* shape) {
  std::string_view type = "none";
  GRETA_TRY(gguf.get_string(reader.prefix + "rope.scaling.type", &type));
  if (type == "linear") {
    reader.f32("rope.scale_linear", 1e-3f, 1e6f, &shape->rope_scale);  // the key's name before 2024
    reader.f32("rope.scaling.factor", 1e-3f, 1e6f, &shape->rope_scale);
  } else if (type == "llama3") {
    // The factors were worked out by the converter and lie in a tensor.
    if (!gguf.find_tensor(arch.tensors.rope_factors))
      return fail(Code::File, "%s: rope.scaling.type is \"llama3\", but there is no tensor %s", gguf.name(),
                  arch.tensors.rope_factors);
  } else if (type != "none") {
    return fail(Code::Unsupported, "%s: %srope.scaling.type \"%.*s\", expected none, linear or llama3", gguf.name(),
                reader.prefix.c_str(), int(type.size()), type.data());
  }
  return reader.status;
}

// Metadata whose meaning no field of Shape carries: running without it would give wrong text.
Status refuse_unknown_features(const Gguf& gguf, const std::string& prefix) {
  static constexpr const char* kMustBeZero[] = {"expert_count", "attention.sliding_window", "logit_scale",
                                                "attention.clamp_kqv"};
  for (const char* key : kMustBeZero) {
    float value = 0;
    GRETA_TRY(gguf.get_f32(prefix + key, &value));
    if (value != 0)
      return fail(Code::Unsupported, "%s: %s%s is %g, which this build cannot run", gguf.name(), prefix.c_str(), key,
                  double(value));
  }
  return {};
}

}  // namespace

Status read_shape(const Gguf& gguf, const Arch& arch, Shape* out) {
  Shape s;
  const GgufTensor* embedding = gguf.find_tensor(arch.tensors.token_embedding);
  if (!embedding)
    return fail(Code::File, "%s: no tensor %s: a vocabulary without weights, or a part of a model?", gguf.name(),
                arch.tensors.token_embedding);
  if (embedding->ne[1] < 1 || embedding->ne[1] > kMaxVocab)
    return fail(Code::File, "%s: %s has %llu rows, expected 1 to %u", gguf.name(), arch.tensors.token_embedding,
                (unsigned long long)embedding->ne[1], kMaxVocab);
  s.vocab = uint32_t(embedding->ne[1]);

  Reader r{gguf, std::string(arch.name) + "."};
  r.u32("block_count", 1, kMaxLayers, &s.layers, true);
  r.u32("embedding_length", 1, kMaxWidth, &s.width, true);
  r.u32("context_length", 1, kMaxContext, &s.context, true);
  r.same_in_layers("feed_forward_length", s.layers, kMaxWidth, &s.ffn_width, true);
  r.same_in_layers("attention.head_count", s.layers, kMaxHeads, &s.heads, true);
  s.kv_heads = s.heads;
  r.same_in_layers("attention.head_count_kv", s.layers, kMaxHeads, &s.kv_heads, false);
  GRETA_TRY(r.status);
  if (s.heads % s.kv_heads)
    return fail(Code::File, "%s: %u query heads cannot share %u key-value heads", gguf.name(), s.heads, s.kv_heads);
  const bool widths_given = gguf.find(r.prefix + "attention.key_length") != nullptr;
  if (!widths_given && s.width % s.heads)
    return fail(Code::File, "%s: width %u is not a multiple of %u heads, and there is no %sattention.key_length",
                gguf.name(), s.width, s.heads, r.prefix.c_str());
  s.key_width = s.value_width = s.width / s.heads;
  r.u32("attention.key_length", 1, kMaxWidth, &s.key_width, false);
  r.u32("attention.value_length", 1, kMaxWidth, &s.value_width, false);
  s.rope_width = s.key_width;
  r.u32("rope.dimension_count", 1, kMaxWidth, &s.rope_width, false);
  r.f32("attention.layer_norm_rms_epsilon", 0.0f, 1.0f, &s.epsilon);
  r.f32("rope.freq_base", 1.0f, 1e30f, &s.rope_base);
  GRETA_TRY(r.status);
  if (s.rope_width > s.key_width || s.rope_width % 2)
    return fail(Code::File, "%s: %srope.dimension_count is %u, expected an even number up to the head's %u",
                gguf.name(), r.prefix.c_str(), s.rope_width, s.key_width);
  GRETA_TRY(read_rope_scaling(gguf, arch, r, &s));
  GRETA_TRY(refuse_unknown_features(gguf, r.prefix));

  *out = s;
  return {};
}

}  // namespace greta
