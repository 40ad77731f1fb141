#include <algorithm>
#include <cmath>
#include <string>

#include "engine/model/shape_reader.h"

namespace greta {

const LayerShape& Shape::attending() const {
  static constexpr LayerShape kNone;
  const auto found = std::ranges::find_if(each, &LayerShape::attends);
  return found == each.end() ? kNone : *found;
}

std::string layer_name(const TensorName& name, uint32_t layer) {
  char text[kMaxTensorNameBytes + 1];
  format_text(text, sizeof text, name.text, layer);
  return text;
}

namespace {

// Sets the heads of all layers. Those without key-value heads have no attention.
Status read_head_counts(ShapeReader& r, Shape* s) {
  std::vector<uint32_t> heads, kv_heads;
  r.sizes("attention.head_count", *s, kMaxHeads, &heads, true);
  kv_heads = heads;
  r.sizes("attention.head_count_kv", *s, kMaxHeads, &kv_heads, false);
  GRETA_TRY(r.status);
  for (uint32_t l = 0; l < s->layers; ++l) {
    if (!kv_heads[l]) continue;
    if (!heads[l] || heads[l] % kv_heads[l])
      return fail(Code::File,
                  "%s: %u query heads cannot share %u key-value heads in layer %u (attention.head_count, "
                  "attention.head_count_kv)",
                  r.gguf.name(), heads[l], kv_heads[l], l);
    s->each[l].heads = heads[l];
    s->each[l].kv_heads = kv_heads[l];
  }
  GRETA_TRY(read_recurrent_layers(r, s));
  if (s->recurrent_layers || std::ranges::any_of(s->each, &LayerShape::attends)) return {};
  return fail(Code::Unsupported, "%s: no layer has attention (%sattention.head_count_kv)", r.gguf.name(),
              r.prefix.c_str());
}

Status read_heads(ShapeReader& r, Shape* s) {
  GRETA_TRY(read_head_counts(r, s));
  r.f32(r.arch.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 0.0f, 1.0f,
        &s->epsilon, true);
  s->parallel = r.arch.parallel;
  if (r.arch.layer_norm) r.flag("use_parallel_residual", &s->parallel);
  const uint32_t heads = s->attending().heads;
  if (!heads) return r.status;
  if (!r.has("attention.key_length") && s->width % heads)
    return fail(Code::File,
                "%s: width %u is not a multiple of %u heads, and there is no %sattention.key_length",
                r.gguf.name(), s->width, heads, r.prefix.c_str());
  uint32_t keys = s->width / heads, values = keys;
  r.u32("attention.key_length", 1, kMaxWidth, &keys);
  r.u32("attention.value_length", 1, kMaxWidth, &values);
  uint32_t turned = keys;
  r.u32("rope.dimension_count", 1, kMaxWidth, &turned);
  GRETA_TRY(r.status);
  GRETA_TRY(check_rotated(r, "rope.dimension_count", "attention.key_length", turned, keys));
  for (LayerShape& layer : s->each)
    if (layer.attends()) layer.key_width = keys, layer.value_width = values, layer.rope_width = turned;
  return {};
}

// Converters before April 2025 wrote the widths of a query head and as many key-value heads as query heads.
// Later ones write the widths of the one head that is cached.
Status read_joined_latent(ShapeReader& r, Shape* s, uint32_t* head) {
  r.u32("attention.key_length", 1, kMaxWidth, head, true);
  r.u32("attention.value_length", 1, kMaxWidth, &s->latent.value, true);
  GRETA_TRY(r.status);
  s->latent.joined = true;
  for (LayerShape& layer : s->each) {
    if (!layer.attends()) continue;
    if (layer.kv_heads != layer.heads)
      return fail(Code::File,
                  "%s: latent attention with %u key-value heads, expected %u, as many as query heads, where "
                  "there is no %sattention.key_length_mla (attention.head_count_kv, attention.head_count)",
                  r.gguf.name(), layer.kv_heads, layer.heads, r.prefix.c_str());
    layer.kv_heads = 1;
    layer.key_width = s->latent.width + layer.rope_width;
    layer.value_width = s->latent.width;
  }
  return {};
}

// Reads the sizes of latent attention. The cached head has `width` values, then rope_width rotated ones.
Status read_latent(ShapeReader& r, Shape* s) {
  uint32_t head = 0;
  r.u32("attention.kv_lora_rank", 1, kMaxWidth, &s->latent.width, true);
  r.u32("attention.q_lora_rank", 0, kMaxWidth, &s->latent.query_width);
  if (r.has("attention.key_length_mla") || r.has("attention.value_length_mla")) {
    r.u32("attention.key_length_mla", 1, kMaxWidth, &head, true);
    r.u32("attention.value_length_mla", 1, kMaxWidth, &s->latent.value, true);
    GRETA_TRY(r.status);
  } else {
    GRETA_TRY(read_joined_latent(r, s, &head));
  }
  for (const LayerShape& layer : s->each) {
    if (!layer.attends()) continue;
    const uint32_t cached = s->latent.width + layer.rope_width;
    if (head <= layer.rope_width || layer.kv_heads != 1 || layer.key_width != cached || cached > kMaxWidth ||
        layer.value_width != s->latent.width)
      return fail(
          Code::File,
          "%s: latent attention with %u key-value heads of %u keys and %u values, and heads of %u, "
          "expected 1, %u, %u and more than %u (attention.head_count_kv, attention.key_length, "
          "attention.value_length, attention.key_length_mla, attention.kv_lora_rank, rope.dimension_count)",
          r.gguf.name(), layer.kv_heads, layer.key_width, layer.value_width, head, cached, s->latent.width,
          layer.rope_width);
  }
  s->latent.plain = head - s->attending().rope_width;
  return {};
}

// Sets which layers see a window, by the architecture's rule or the file's pattern.
Status read_windows(ShapeReader& r, Shape* s) {
  uint32_t window = r.arch.window, period = r.arch.window_period;
  r.u32("attention.sliding_window", 0, UINT32_MAX, &window, r.arch.window_required);
  GRETA_TRY(r.status);
  std::vector<uint32_t> windowed(s->layers, 1);
  const GgufValue* value = r.gguf.find(r.prefix + "attention.sliding_window_pattern");
  if (value && value->type == ValueType::Array) {
    r.in_layers("attention.sliding_window_pattern", *s, &windowed);
    GRETA_TRY(r.status);
  } else {
    r.u32("attention.sliding_window_pattern", 0, kMaxLayers, &period);
    GRETA_TRY(r.status);
    for (uint32_t l = 0; l < s->layers; ++l)
      windowed[l] = period == 0 || (l + !r.arch.window_behind) % period != 0;
  }
  for (uint32_t l = 0; l < s->layers; ++l)
    s->each[l].window = windowed[l] && s->each[l].attends() ? std::min(window, kMaxContext) : 0;
  return {};
}

// A model uses LongRoPE if the file has its two tables. Converters do not always write rope.scaling.type.
Status find_long_factors(ShapeReader& r, std::string_view type, bool* out) {
  const TensorNames& names = r.arch.tensors;
  const bool is_long = r.gguf.find_tensor(names.long_factors.text),
             is_short = r.gguf.find_tensor(names.short_factors.text);
  const char* const missing = is_long ? names.short_factors.text : names.long_factors.text;
  if (is_long != is_short)
    return fail(Code::File, "%s: no tensor %s, but %s is there", r.gguf.name(), missing,
                is_long ? names.long_factors.text : names.short_factors.text);
  if (type == "longrope" && !is_long)
    return fail(Code::File, "%s: no tensor %s, but rope.scaling.type is \"longrope\"", r.gguf.name(),
                missing);
  if (is_long && !type.empty() && type != "longrope")
    return fail(Code::Unsupported, "%s: %srope.scaling.type is \"%.*s\", but %s says that it is \"longrope\"",
                r.gguf.name(), r.prefix.c_str(), int(type.size()), type.data(), names.long_factors.text);
  *out = is_long;
  return {};
}

Status read_rope_scaling(ShapeReader& r, const Shape& s, RopeScaling* out, float* score_scale) {
  using Kind = RopeScaling::Kind;
  RopeScaling scaling;
  std::string_view type;
  r.text("rope.scaling.type", &type);
  r.f32("rope.scale_linear", 0.0f, 1e6f, &scaling.factor);  // the name of the next key before 2024
  r.f32("rope.scaling.factor", 0.0f, 1e6f, &scaling.factor);
  GRETA_TRY(r.status);
  if (scaling.factor == 0) scaling.factor = 1;
  bool long_factors = false;
  GRETA_TRY(find_long_factors(r, type, &long_factors));
  if (long_factors)
    scaling.kind = Kind::Long;
  else if (type == "linear" || (type.empty() && scaling.factor != 1))
    scaling.kind = Kind::Linear;
  else if (type == "yarn")
    scaling.kind = Kind::Yarn;
  else if (type != "none" && type != "llama3" && !type.empty())
    return fail(Code::Unsupported,
                "%s: %srope.scaling.type is \"%.*s\", expected none, linear, llama3, yarn or longrope",
                r.gguf.name(), r.prefix.c_str(), int(type.size()), type.data());
  // The converter has computed llama3's factors and put them into a tensor.
  if (type == "llama3" && !r.gguf.find_tensor(r.arch.tensors.rope_factors.text))
    return fail(Code::File, "%s: rope.scaling.type is \"llama3\", but there is no tensor %s", r.gguf.name(),
                r.arch.tensors.rope_factors.text);
  scaling.original_context = s.context;
  scaling.whole_range = r.arch.whole_yarn_range;
  float yarn_factor = 0, log_multiplier = 0;
  r.u32("rope.scaling.original_context_length", 1, kMaxContext, &scaling.original_context);
  r.f32("rope.scaling.attn_factor", 1e-3f, 1e3f, &scaling.attention_factor);
  r.f32("rope.scaling.yarn_attn_factor", 1e-3f, 1e3f, &yarn_factor);
  r.flag("rope.scaling.yarn_truncate", &scaling.whole_range);
  r.f32("rope.scaling.yarn_ext_factor", 0.0f, 1.0f, &scaling.extrapolation);
  r.f32("rope.scaling.yarn_beta_fast", 1e-3f, 1e6f, &scaling.beta_fast);
  r.f32("rope.scaling.yarn_beta_slow", 1e-3f, 1e6f, &scaling.beta_slow);
  r.f32("rope.scaling.yarn_log_multiplier", 0.0f, 10.0f, &log_multiplier);
  GRETA_TRY(r.status);
  const float growth = scaling.factor > 1 ? 0.1f * std::log(scaling.factor) : 0;
  const bool scores = r.arch.latent && log_multiplier > 0 && scaling.kind != Kind::None;
  if (scores) {  // DeepSeek-V2, arXiv 2405.04434: the growth scales the scores, also with linear scaling
    const float magnitude = 1 + 10 * log_multiplier * growth;
    *score_scale *= magnitude * magnitude;
  }
  if (scaling.kind == Kind::Yarn) {
    const float usual = scores ? 1 : (1 + growth) / (1 + log_multiplier * growth);
    scaling.attention_factor *= yarn_factor > 0 ? yarn_factor : usual;
  }
  *out = scaling;
  return {};
}

// Gives queries a table of their own if they grow with their position.
Status read_temperature(ShapeReader& r, Shape* s, uint8_t* table) {
  float temperature = 0;
  if (r.arch.temperature) r.f32("attention.temperature_scale", 0.0f, 1e3f, &temperature);
  GRETA_TRY(r.status);
  const LayerShape& layer = s->attending();
  if (temperature == 0) return {};
  if (layer.rope_width != layer.key_width)
    return fail(Code::Unsupported,
                "%s: %sattention.temperature_scale scales whole queries, and of their %u values %u rotate "
                "(rope.dimension_count, attention.key_length)",
                r.gguf.name(), r.prefix.c_str(), layer.key_width, layer.rope_width);
  *table = uint8_t(s->rope_tables);
  s->rope[s->rope_tables++] = s->rope[0];
  s->rope[*table].temperature = temperature;
  return {};
}

Status read_rope(ShapeReader& r, Shape* s) {
  RopeTable& main = s->rope[0];
  main.width = first_layer(*s, false).rope_width;
  r.f32("rope.freq_base", 1.0f, 1e30f, &main.base);
  GRETA_TRY(r.status);
  GRETA_TRY(read_rope_scaling(r, *s, &main.scaling, &s->attention_scale));
  RopeTable window;
  window.width = first_layer(*s, true).rope_width;
  window.base = r.arch.window_rope_base > 0 ? r.arch.window_rope_base : main.base;
  window.factors = false;
  if (r.arch.window_rope) {
    r.f32("rope.freq_base_swa", 1.0f, 1e30f, &window.base);
    s->rope[s->rope_tables++] = window;
  } else {
    r.same_as("rope.freq_base_swa", "rope.freq_base", double(main.base));
  }
  uint8_t queries = 0;  // the table by which they rotate where keys rotate by the first
  GRETA_TRY(read_temperature(r, s, &queries));
  GRETA_TRY(check_sections(r, main.width));
  bool turns = true;
  if (r.arch.rope_by_finetuned) r.flag("rope.scaling.finetuned", &turns);
  const uint32_t skip = r.arch.rope_skip_period;
  const bool windows = r.arch.turn_windows && std::ranges::any_of(s->each, &LayerShape::window);
  for (uint32_t l = 0; l < s->layers; ++l) {
    LayerShape& layer = s->each[l];
    layer.rope_table = layer.window && r.arch.window_rope ? 1 : 0;
    if (!turns || (skip && (l + 1) % skip == 0) || (windows && !layer.window)) layer.rope_table = kNoRope;
    layer.query_rope_table = layer.rope_table == 0 ? queries : layer.rope_table;
  }
  return r.status;
}

// Checks the groups that experts are chosen from. A group's score is that of its best expert, or, where
// experts have a bias, the sum of its two best. DeepSeek's models use the former with a softmax and the
// latter with a sigmoid; no model with another combination is known.
Status check_groups(const ShapeReader& r, const Experts& e, const std::string& bias) {
  if (e.groups == 1) return {};
  GRETA_TRY(r.gguf.require(r.prefix + "expert_group_used_count"));
  if (e.count % e.groups || e.groups_used > e.groups || e.count / e.groups * e.groups_used < e.used)
    return fail(
        Code::File,
        "%s: %u experts out of %u of %u groups of %u experts (expert_used_count, expert_group_used_count, "
        "expert_group_count, expert_count)",
        r.gguf.name(), e.used, e.groups_used, e.groups, e.count);
  const bool biased = r.gguf.find_tensor(bias) != nullptr;
  if (biased == (e.gating == kGatingSigmoid)) return {};
  return fail(
      Code::Unsupported,
      "%s: %u groups of experts, expert_gating_func says %s, and there is %s %s (of the first layer after "
      "leading_dense_block_count)",
      r.gguf.name(), e.groups, biased ? "softmax" : "sigmoid", biased ? "a" : "no", bias.c_str());
}

Status read_experts(ShapeReader& r, Shape* s) {
  Experts& e = s->experts;
  const TensorNames& names = r.arch.tensors;
  const std::string router = layer_name(names.router, s->layers - 1);
  uint32_t dense = 0, gating = 0, shared = 0;
  r.u32("expert_count", 0, kMaxExperts, &e.count);
  const bool any = e.count != 0;
  r.u32("expert_used_count", any, any ? e.count : kMaxExperts, &e.used, any);
  r.u32("leading_dense_block_count", 0, s->layers, &dense);
  e.width = s->each[std::min(dense, s->layers - 1)].ffn_width;
  r.u32("expert_feed_forward_length", 1, kMaxWidth, &e.width);
  r.u32("expert_shared_count", 0, kMaxExperts, &shared);
  r.u32("expert_shared_feed_forward_length", 1, kMaxWidth, &e.shared_width);
  r.u32("expert_group_count", 0, kMaxExpertGroups, &e.groups);
  r.u32("expert_group_used_count", 0, kMaxExpertGroups, &e.groups_used);
  r.u32("expert_gating_func", 0, 2, &gating);
  r.f32("expert_weights_scale", 0.0f, 1e6f, &e.scale);
  e.normalise = r.arch.normalise_experts;
  r.flag("expert_weights_norm", &e.normalise);
  GRETA_TRY(r.status);
  if (!any) {
    e = {};
    if (!r.arch.needs_experts && !r.gguf.find_tensor(router)) return {};
    return fail(Code::File, "%s: %sexpert_count is 0 or absent in a model with experts, as %s says",
                r.gguf.name(), r.prefix.c_str(),
                r.arch.needs_experts ? "general.architecture" : router.c_str());
  }
  if (!e.width)
    return fail(Code::File, "%s: no %sexpert_feed_forward_length, nor feed_forward_length", r.gguf.name(),
                r.prefix.c_str());
  if (e.scale == 0) e.scale = 1;
  if (e.groups == 0) e.groups = 1;
  if (e.groups == 1) e.groups_used = 1;
  // Models with a bias of the choice gate by sigmoid. GLM 4.7 Flash has the bias without the key.
  uint32_t first = std::min(dense, s->layers - 1);  // layer with experts
  while (r.arch.lone_blocks && first + 1 < s->layers && !s->each[first].ffn_width) ++first;
  const std::string bias = layer_name(names.choice_bias, first);
  const bool sigmoid = r.gguf.find_tensor(bias) ? !r.arch.softmax_experts : r.arch.scale_inputs;
  if (!gating) gating = sigmoid ? 2 : 1;
  if (r.arch.scale_inputs) shared = 1;
  e.gating = gating == 2 ? kGatingSigmoid : kGatingSoftmax;
  if (dense < s->layers) GRETA_TRY(check_groups(r, e, bias));
  if (shared && !e.shared_width) {
    if (uint64_t(shared) * e.width > kMaxWidth)
      return fail(Code::File, "%s: %u shared experts of %u values", r.gguf.name(), shared, e.width);
    e.shared_width = shared * e.width;
  }
  for (uint32_t l = dense; any && r.arch.experts_by_router && l < s->layers; ++l) {
    const std::string router = layer_name(r.arch.tensors.router, l),
                      gate = layer_name(r.arch.tensors.expert_gate, l);
    if (!r.gguf.find_tensor(router) && r.gguf.find_tensor(gate))
      return fail(Code::File, "%s: no tensor %s, but %s is there", r.gguf.name(), router.c_str(),
                  gate.c_str());
  }
  for (uint32_t l = dense; l < s->layers; ++l)
    s->each[l].experts = r.arch.lone_blocks ? s->each[l].ffn_width != 0
                                            : !r.arch.experts_by_router ||
                                                  r.gguf.find_tensor(layer_name(r.arch.tensors.router, l));
  return {};
}

// Checks that each layer has the parts that the architecture's layers have.
Status check_layers(const ShapeReader& r, const Shape& s) {
  for (uint32_t l = 0; l < s.layers; ++l) {
    const LayerShape& layer = s.each[l];
    if (layer.has_ffn() && (layer.ffn_width || !r.arch.experts_beside)) continue;
    if (layer.recurrent && r.arch.partial_layers) {
      if (!r.arch.lone_blocks && r.arch.tensors.down.text)
        GRETA_TRY(r.gguf.require(r.prefix + "feed_forward_length"));
      continue;
    }
    if (!r.arch.partial_layers) return r.gguf.require(r.prefix + "feed_forward_length");
    if (!layer.attends())
      return fail(Code::File,
                  "%s: layer %u has neither attention nor a feed-forward block (%sattention.head_count_kv, "
                  "%sfeed_forward_length)",
                  r.gguf.name(), l, r.prefix.c_str(), r.prefix.c_str());
  }
  return {};
}

Status read_scales(ShapeReader& r, Shape* s) {
  s->attention_softcap = r.arch.attention_softcap;
  s->final_softcap = r.arch.final_softcap;
  if (r.arch.attention_softcap > 0) r.f32("attn_logit_softcapping", 0.0f, 1e6f, &s->attention_softcap);
  r.f32("final_logit_softcapping", 0.0f, 1e6f, &s->final_softcap);
  s->post_epsilon = r.arch.post_epsilon > 0 ? r.arch.post_epsilon : s->epsilon;
  s->head_epsilon = s->epsilon;
  if (r.arch.centred_head) r.f32("attention.layer_norm_epsilon", 0.0f, 1.0f, &s->head_epsilon);
  const LayerShape& layer = s->attending();
  uint32_t divisor = layer.key_width;
  if (r.arch.latent) divisor = s->latent.plain + layer.rope_width;
  if (r.arch.wide_query_layers == s->layers) divisor = s->width / layer.heads;
  s->attention_scale =
      r.arch.attention_scale > 0 ? r.arch.attention_scale : 1.0f / std::sqrt(float(std::max(divisor, 1u)));
  float given = 0;
  r.f32("attention.scale", 0.0f, 1e6f, &given);
  if (given > 0) s->attention_scale = given;
  if (r.arch.logit_factor) r.f32("logit_scale", 1e-6f, 1e6f, &s->logit_scale, true);
  if (r.arch.scale_embedding) s->embedding_scale = std::sqrt(float(s->width));
  if (r.arch.scales) {
    float divided = 0;
    r.f32("embedding_scale", 1e-6f, 1e6f, &s->embedding_scale);
    r.f32("residual_scale", 1e-6f, 1e6f, &s->residual_scale);
    const bool bamba = r.arch.rope_by_finetuned && !r.has("embedding_scale");  // it has none of the scales
    r.f32("logit_scale", 0.0f, 1e6f, &divided, !bamba);
    if (divided > 0) s->logit_scale = 1 / divided;
  }
  return r.status;
}

}  // namespace

Status read_shape(const Gguf& gguf, const Arch& arch, Shape* out, KeysRead* keys) {
  Shape s;
  std::string_view type = "model";
  if (gguf.find("general.type")) GRETA_TRY(gguf.get_string("general.type", &type));
  if (type == "adapter")
    return fail(Code::Unsupported,
                "%s: an adapter (LoRA), and no model: it is opened beside the model that it changes",
                gguf.name());
  const char* name = arch.tensors.token_embedding.text;
  const GgufTensor* embedding = gguf.find_tensor(name);
  if (!embedding)
    return fail(Code::File, "%s: no tensor %s: a vocabulary without weights, or a part of a model?",
                gguf.name(), name);
  if (embedding->ne[1] < 1 || embedding->ne[1] > kMaxVocab)
    return fail(Code::File, "%s: %s has %llu rows, expected 1 to %u", gguf.name(), name,
                (unsigned long long)embedding->ne[1], kMaxVocab);
  s.vocab = uint32_t(embedding->ne[1]);

  keys->clear();
  ShapeReader r{gguf, arch, std::string(arch.name) + ".", *keys};
  r.u32("block_count", 1, kMaxLayers, &s.layers, true);
  r.u32("embedding_length", 1, kMaxWidth, &s.width, true);
  r.u32("context_length", 1, kMaxContext, &s.context, true);
  GRETA_TRY(r.status);
  r.u32("nextn_predict_layers", 0, s.layers - 1, &s.draft_layers);
  GRETA_TRY(r.status);
  s.layers -= s.draft_layers;
  s.each.resize(s.layers);
  std::vector<uint32_t> ffn_widths(s.layers, 0);
  r.sizes("feed_forward_length", s, kMaxWidth, &ffn_widths, false);
  for (uint32_t l = 0; l < s.layers; ++l) s.each[l].ffn_width = ffn_widths[l];
  GRETA_TRY(read_heads(r, &s));
  if (arch.latent) GRETA_TRY(read_latent(r, &s));
  if (s.recurrent_layers) GRETA_TRY(read_recurrence(r, &s));
  GRETA_TRY(read_scales(r, &s));
  GRETA_TRY(read_windows(r, &s));
  GRETA_TRY(read_window_sizes(r, &s));
  GRETA_TRY(read_shared_caches(r, &s));
  if (arch.tensors.layer_embedding.text)
    r.u32("embedding_length_per_layer_input", 0, kMaxWidth / s.layers, &s.layer_embedding);
  GRETA_TRY(read_rope(r, &s));
  GRETA_TRY(read_positions(r, &s));
  GRETA_TRY(read_slopes(r, &s));
  GRETA_TRY(read_chunks(r, &s));
  GRETA_TRY(read_xielu(r, &s));
  GRETA_TRY(read_attention_gates(r, &s));
  GRETA_TRY(read_experts(r, &s));
  GRETA_TRY(check_interleaved(r, s));
  read_head_norms(arch, &s);
  GRETA_TRY(check_layers(r, s));
  *out = std::move(s);
  return {};
}

}  // namespace greta
