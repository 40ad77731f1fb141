#include "engine/shape.h"

#include <algorithm>
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
  const Arch& arch;
  std::string prefix;
  Status status{};

  bool has(const char* key) const { return gguf.find(prefix + key) != nullptr; }

  void u32(const char* key, uint32_t low, uint32_t high, uint32_t* value, bool required = false) {
    if (!status.ok()) return;
    const std::string name = prefix + key;
    if (required && !(status = gguf.require(name)).ok()) return;
    if (!gguf.find(name) || !(status = gguf.get_u32(name, value)).ok()) return;
    if (*value < low || *value > high)
      status =
          fail(Code::File, "%s: %s is %u, expected %u to %u", gguf.name(), name.c_str(), *value, low, high);
  }
  void f32(const char* key, float low, float high, float* value) {
    if (!status.ok()) return;
    const std::string name = prefix + key;
    if (!gguf.find(name) || !(status = gguf.get_f32(name, value)).ok()) return;
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
        status = fail(Code::Unsupported,
                      "%s: %s is %u in layer %u and %u in layer 0, expected one value of 1 to %u",
                      gguf.name(), name.c_str(), each[l], l, each[0], high);
        return;
      }
    *value = each[0];
  }
};

Status read_heads(Reader& r, Shape* s) {
  r.same_in_layers("attention.head_count", s->layers, kMaxHeads, &s->heads, true);
  s->kv_heads = s->heads;
  r.same_in_layers("attention.head_count_kv", s->layers, kMaxHeads, &s->kv_heads, false);
  GRETA_TRY(r.status);
  if (s->heads % s->kv_heads)
    return fail(Code::File, "%s: %u query heads cannot share %u key-value heads", r.gguf.name(), s->heads,
                s->kv_heads);
  if (!r.has("attention.key_length") && s->width % s->heads)
    return fail(Code::File,
                "%s: width %u is not a multiple of %u heads, and there is no %sattention.key_length",
                r.gguf.name(), s->width, s->heads, r.prefix.c_str());
  s->key_width = s->value_width = s->width / s->heads;
  r.u32("attention.key_length", 1, kMaxWidth, &s->key_width);
  r.u32("attention.value_length", 1, kMaxWidth, &s->value_width);
  s->rope_width = s->key_width;
  r.u32("rope.dimension_count", 1, kMaxWidth, &s->rope_width);
  r.f32("attention.layer_norm_rms_epsilon", 0.0f, 1.0f, &s->epsilon);
  GRETA_TRY(r.status);
  if (s->rope_width > s->key_width || s->rope_width % 2)
    return fail(Code::File, "%s: %srope.dimension_count is %u, expected an even number up to the head's %u",
                r.gguf.name(), r.prefix.c_str(), s->rope_width, s->key_width);
  return {};
}

// The sizes of latent attention. The cached head is [width | rope_width].
Status read_latent(Reader& r, Shape* s) {
  uint32_t head = 0;
  r.u32("attention.kv_lora_rank", 1, kMaxWidth, &s->latent.width, true);
  r.u32("attention.q_lora_rank", 0, kMaxWidth, &s->latent.query_width);
  if (!r.has("attention.key_length_mla") && r.status.ok())
    return fail(Code::Unsupported,
                "%s: no %sattention.key_length_mla: this form of the file is that of converters "
                "before April 2025; convert the model again",
                r.gguf.name(), r.prefix.c_str());
  r.u32("attention.key_length_mla", 1, kMaxWidth, &head);
  r.u32("attention.value_length_mla", 1, kMaxWidth, &s->latent.value, true);
  GRETA_TRY(r.status);
  const uint32_t cached = s->latent.width + s->rope_width;
  if (head <= s->rope_width || s->kv_heads != 1 || s->key_width != cached ||
      s->value_width != s->latent.width)
    return fail(Code::File,
                "%s: latent attention with %u key-value heads of %u keys and %u values, and heads of %u, "
                "expected 1, %u, %u and more than %u",
                r.gguf.name(), s->kv_heads, s->key_width, s->value_width, head, cached, s->latent.width,
                s->rope_width);
  s->latent.plain = head - s->rope_width;
  return {};
}

// Which layers see a window, from the architecture's rule or the file's pattern.
Status read_windows(Reader& r, Shape* s) {
  uint32_t window = r.arch.window, period = r.arch.window_period;
  r.u32("attention.sliding_window", 0, UINT32_MAX, &window);
  GRETA_TRY(r.status);
  std::vector<uint32_t> windowed(s->layers, 1);
  const std::string pattern = r.prefix + "attention.sliding_window_pattern";
  const GgufValue* value = r.gguf.find(pattern);
  if (value && value->type == ValueType::Array) {
    GRETA_TRY(r.gguf.get_layers_u32(pattern, s->layers, windowed.data()));
  } else {
    r.u32("attention.sliding_window_pattern", 0, kMaxLayers, &period);
    GRETA_TRY(r.status);
    for (uint32_t l = 0; l < s->layers; ++l) windowed[l] = period == 0 || (l + 1) % period != 0;
  }
  for (uint32_t l = 0; l < s->layers; ++l)
    s->each[l].window = windowed[l] && window < s->context ? window : 0;
  return {};
}

Status read_rope_scaling(Reader& r, const Shape& s, RopeScaling* out, float* score_scale) {
  using Kind = RopeScaling::Kind;
  RopeScaling scaling;
  std::string_view type;
  GRETA_TRY(r.gguf.get_string(r.prefix + "rope.scaling.type", &type));
  r.f32("rope.scale_linear", 0.0f, 1e6f, &scaling.factor);  // the key's name before 2024
  r.f32("rope.scaling.factor", 0.0f, 1e6f, &scaling.factor);
  GRETA_TRY(r.status);
  if (scaling.factor == 0) scaling.factor = 1;
  if (type == "linear" || (type.empty() && scaling.factor != 1))
    scaling.kind = Kind::Linear;
  else if (type == "yarn")
    scaling.kind = Kind::Yarn;
  else if (type == "longrope")
    scaling.kind = Kind::Long;
  else if (type != "none" && type != "llama3" && !type.empty())
    return fail(Code::Unsupported,
                "%s: %srope.scaling.type is \"%.*s\", expected none, linear, llama3, yarn or longrope",
                r.gguf.name(), r.prefix.c_str(), int(type.size()), type.data());
  // llama3's factors were worked out by the converter and lie in a tensor.
  if (type == "llama3" && !r.gguf.find_tensor(r.arch.tensors.rope_factors.text))
    return fail(Code::File, "%s: rope.scaling.type is \"llama3\", but there is no tensor %s", r.gguf.name(),
                r.arch.tensors.rope_factors.text);
  scaling.original_context = s.context;
  scaling.whole_range = r.arch.whole_yarn_range;
  float yarn_factor = 1, log_multiplier = 0;
  r.u32("rope.scaling.original_context_length", 1, kMaxContext, &scaling.original_context);
  r.f32("rope.scaling.attn_factor", 1e-3f, 1e3f, &scaling.attention_factor);
  r.f32("rope.scaling.yarn_attn_factor", 1e-3f, 1e3f, &yarn_factor);
  r.f32("rope.scaling.yarn_ext_factor", 0.0f, 1.0f, &scaling.extrapolation);
  r.f32("rope.scaling.yarn_beta_fast", 1e-3f, 1e6f, &scaling.beta_fast);
  r.f32("rope.scaling.yarn_beta_slow", 1e-3f, 1e6f, &scaling.beta_slow);
  r.f32("rope.scaling.yarn_log_multiplier", 0.0f, 10.0f, &log_multiplier);
  GRETA_TRY(r.status);
  if (scaling.kind == Kind::Yarn) {
    const float growth = std::log(scaling.factor);
    if (log_multiplier > 0) {  // DeepSeek-V2, arXiv 2405.04434: the growth goes to the scores
      const float magnitude = 1 + log_multiplier * growth;
      *score_scale *= magnitude * magnitude;
    } else {
      scaling.attention_factor *= yarn_factor * (1 + 0.1f * growth);
    }
  }
  *out = scaling;
  return {};
}

Status read_rope(Reader& r, Shape* s) {
  RopeTable& main = s->rope[0];
  r.f32("rope.freq_base", 1.0f, 1e30f, &main.base);
  GRETA_TRY(r.status);
  GRETA_TRY(read_rope_scaling(r, *s, &main.scaling, &s->attention_scale));
  RopeTable window;
  window.base = r.arch.window_rope_base > 0 ? r.arch.window_rope_base : main.base;
  window.factors = false;
  if (r.arch.window_rope) {
    r.f32("rope.freq_base_swa", 1.0f, 1e30f, &window.base);
    s->rope[s->rope_tables++] = window;
  }
  const uint32_t skip = r.arch.rope_skip_period;
  for (uint32_t l = 0; l < s->layers; ++l) {
    s->each[l].rope_table = s->each[l].window && s->rope_tables > 1 ? 1 : 0;
    if (skip && (l + 1) % skip == 0) s->each[l].rope_table = kNoRope;
  }
  return r.status;
}

Status read_experts(Reader& r, Shape* s) {
  Experts& e = s->experts;
  const TensorName& router = r.arch.tensors.router;
  uint32_t dense = 0, gating = 1, shared = 0;
  r.u32("expert_count", 0, kMaxExperts, &e.count);
  GRETA_TRY(r.status);
  if (e.count == 0) {
    char first[kMaxTensorNameBytes + 1];
    format_text(first, sizeof first, router.text, s->layers - 1);
    if (!r.arch.needs_experts && !r.gguf.find_tensor(first)) return {};
    return fail(Code::File, "%s: %sexpert_count is 0 or absent in a model with experts", r.gguf.name(),
                r.prefix.c_str());
  }
  r.u32("expert_used_count", 1, e.count, &e.used, true);
  e.width = s->ffn_width;
  r.u32("expert_feed_forward_length", 1, kMaxWidth, &e.width);
  r.u32("leading_dense_block_count", 0, s->layers, &dense);
  r.u32("expert_shared_count", 0, kMaxExperts, &shared);
  r.u32("expert_shared_feed_forward_length", 1, kMaxWidth, &e.shared_width);
  r.u32("expert_group_count", 0, kMaxExpertGroups, &e.groups);
  r.u32("expert_group_used_count", 0, kMaxExpertGroups, &e.groups_used);
  r.u32("expert_gating_func", 0, 2, &gating);
  r.f32("expert_weights_scale", 0.0f, 1e6f, &e.scale);
  e.normalise = r.arch.normalise_experts;
  if (r.status.ok()) r.status = r.gguf.get_bool(r.prefix + "expert_weights_norm", &e.normalise);
  GRETA_TRY(r.status);
  if (!e.width)
    return fail(Code::File, "%s: no %sexpert_feed_forward_length", r.gguf.name(), r.prefix.c_str());
  if (e.scale == 0) e.scale = 1;
  if (e.groups == 0) e.groups = 1;
  if (e.groups == 1 || e.groups_used == 0) e.groups_used = e.groups;
  if (e.count % e.groups || e.groups_used > e.groups || e.count / e.groups * e.groups_used < e.used)
    return fail(Code::File, "%s: %u experts out of %u of %u groups of %u experts", r.gguf.name(), e.used,
                e.groups_used, e.groups, e.count);
  e.gating = gating == 2 ? kGatingSigmoid : kGatingSoftmax;
  if (shared && !e.shared_width) {
    if (uint64_t(shared) * e.width > kMaxWidth)
      return fail(Code::File, "%s: %u shared experts of %u values", r.gguf.name(), shared, e.width);
    e.shared_width = shared * e.width;
  }
  for (uint32_t l = dense; l < s->layers; ++l) s->each[l].experts = true;
  return {};
}

Status read_scales(Reader& r, Shape* s) {
  s->attention_softcap = r.arch.attention_softcap;
  s->final_softcap = r.arch.final_softcap;
  if (r.arch.attention_softcap > 0) r.f32("attn_logit_softcapping", 0.0f, 1e6f, &s->attention_softcap);
  r.f32("final_logit_softcapping", 0.0f, 1e6f, &s->final_softcap);
  uint32_t divisor = s->key_width;
  if (r.arch.latent) divisor = s->latent.plain + s->rope_width;
  if (r.arch.wide_query_layers == s->layers) divisor = s->width / s->heads;
  s->attention_scale = 1.0f / std::sqrt(float(divisor));
  float given = 0;
  r.f32("attention.scale", 0.0f, 1e6f, &given);
  if (given > 0) s->attention_scale = given;
  if (r.arch.scale_embedding) s->embedding_scale = std::sqrt(float(s->width));
  if (r.arch.scales) {
    float divided = 0;
    r.f32("embedding_scale", 1e-6f, 1e6f, &s->embedding_scale);
    r.f32("residual_scale", 1e-6f, 1e6f, &s->residual_scale);
    r.f32("logit_scale", 0.0f, 1e6f, &divided);
    if (divided > 0) s->logit_scale = 1 / divided;
  }
  return r.status;
}

// Metadata whose meaning no field of Shape carries: running without it would give wrong text.
Status refuse_unknown_features(const Reader& r) {
  static constexpr const char* kMustBeZero[] = {"attention.clamp_kqv", "attention.temperature_scale",
                                                "attention.max_alibi_bias", "nextn_predict_layers"};
  static constexpr const char* kScales[] = {"logit_scale", "residual_scale", "embedding_scale"};
  const auto refuse = [&](const char* key) -> Status {
    float value = 0;
    GRETA_TRY(r.gguf.get_f32(r.prefix + key, &value));
    if (value == 0) return {};
    return fail(Code::Unsupported, "%s: %s%s is %g, which this build cannot run", r.gguf.name(),
                r.prefix.c_str(), key, double(value));
  };
  for (const char* key : kMustBeZero) GRETA_TRY(refuse(key));
  if (!r.arch.scales)
    for (const char* key : kScales) GRETA_TRY(refuse(key));
  return {};
}

}  // namespace

Status read_shape(const Gguf& gguf, const Arch& arch, Shape* out) {
  Shape s;
  const char* name = arch.tensors.token_embedding.text;
  const GgufTensor* embedding = gguf.find_tensor(name);
  if (!embedding)
    return fail(Code::File, "%s: no tensor %s: a vocabulary without weights, or a part of a model?",
                gguf.name(), name);
  if (embedding->ne[1] < 1 || embedding->ne[1] > kMaxVocab)
    return fail(Code::File, "%s: %s has %llu rows, expected 1 to %u", gguf.name(), name,
                (unsigned long long)embedding->ne[1], kMaxVocab);
  s.vocab = uint32_t(embedding->ne[1]);

  Reader r{gguf, arch, std::string(arch.name) + "."};
  r.u32("block_count", 1, kMaxLayers, &s.layers, true);
  r.u32("embedding_length", 1, kMaxWidth, &s.width, true);
  r.u32("context_length", 1, kMaxContext, &s.context, true);
  GRETA_TRY(r.status);
  s.each.resize(s.layers);
  r.same_in_layers("feed_forward_length", s.layers, kMaxWidth, &s.ffn_width, !arch.needs_experts);
  GRETA_TRY(read_heads(r, &s));
  if (arch.latent) GRETA_TRY(read_latent(r, &s));
  GRETA_TRY(read_scales(r, &s));
  GRETA_TRY(read_windows(r, &s));
  GRETA_TRY(read_rope(r, &s));
  GRETA_TRY(read_experts(r, &s));
  GRETA_TRY(refuse_unknown_features(r));
  *out = std::move(s);
  return {};
}

}  // namespace greta
