#include "engine/executor/memory.h"

#include <algorithm>

namespace greta {

constexpr uint64_t kMaxPageBytes = uint64_t(1) << 30;
// The bytes of `heads` heads of `width` values.
static Status page_bytes(uint32_t cache_type, uint64_t heads, uint32_t width, uint64_t* out) {
  QuantType type = QuantType::f32;
  cache_quant(cache_type, &type);
  if (width % quant_info(type).block)
    return fail(Code::Unsupported,
                "a %s cache holds heads of whole blocks of %u values; this model's have %u",
                quant_info(type).name, quant_info(type).block, width);
  *out = quant_bytes(type, heads * width);
  return {};
}

uint64_t step_state_bytes(uint32_t sequences, uint32_t pages_per_sequence) {
  const uint64_t of_sequence = pages_per_sequence * sizeof(uint32_t) + sizeof(SamplePenalties);
  return round_up(sizeof(StepState) + sequences * of_sequence + sizeof(SharedPrefixes), 256);
}

uint64_t ones_bytes(const Model& model, uint32_t step_tokens) {
  return round_up(ones_values(*model.arch, model.shape, step_tokens) * sizeof(float), 256);
}

// Sets the sizes of a layer's pages.
static Status describe_pages(const LayerShape& layer, bool latent, const ExecutorOptions& o,
                             StepBuffers::Cache* out) {
  const uint64_t heads = uint64_t(layer.kv_heads) * kPageTokens;
  uint64_t keys = 0, values = 0;
  GRETA_TRY(page_bytes(o.key_type, heads, layer.key_width, &keys));
  values = keys;
  if (!latent) GRETA_TRY(page_bytes(o.value_type, heads, layer.value_width, &values));
  if (std::max(keys, values) > kMaxPageBytes)
    return fail(Code::Unsupported, "a page of the cache would have %llu bytes, at most %llu",
                (unsigned long long)std::max(keys, values), (unsigned long long)kMaxPageBytes);
  out->key_page_bytes = uint32_t(keys);
  out->value_page_bytes = uint32_t(values);
  out->joined = latent;
  return {};
}

Status describe_cache(const Model& model, const ExecutorOptions& o, StepBuffers* b) {
  const bool latent = model.arch->latent;
  QuantType keys = QuantType::f32;
  cache_quant(o.key_type, &keys);
  if (model.shape.slopes() && quant_info(keys).block != 1)
    return fail(Code::Unsupported,
                "keys of %s hold their positions, for which a %s cache has too few bits; take f16 or f32",
                model.arch->name, quant_info(keys).name);
  b->key_type = o.key_type;
  b->value_type = latent ? o.key_type : o.value_type;
  b->cache.assign(model.shape.cached_layers(), {});
  for (uint32_t l = 0; l < model.shape.cached_layers(); ++l)
    if (model.shape.each[l].keeps_cache())
      GRETA_TRY(describe_pages(model.shape.each[l], latent, o, &b->cache[l]));
  return {};
}

void set_groups(const Shape& shape, const CacheGroups& groups, StepBuffers* b) {
  for (uint32_t l = 0; l < shape.cached_layers(); ++l) b->cache[l].group = groups.of(shape.each[l].window);
}

uint64_t readback_bytes(const Shape& s, const ExecutorOptions& o, uint32_t step_tokens) {
  const uint64_t logits = uint64_t(std::min(o.output_rows, step_tokens)) * s.vocab;
  return std::max<uint64_t>(logits, s.width) * sizeof(float);
}

uint64_t head_states_bytes(const Shape& s, const ExecutorOptions& o, uint32_t step_tokens) {
  const uint64_t rows = 3 * uint64_t(step_tokens) + uint64_t(o.sequences) * kKeptStates;
  return s.heads ? round_up(rows * s.width * sizeof(float), 256) : 0;
}

void set_head_states(const Shape& s, const Slice& all, uint32_t step_tokens, StepBuffers* b) {
  const uint64_t bytes = uint64_t(step_tokens) * s.width * sizeof(float);
  b->step_states = {all.buffer, all.offset, bytes};
  b->head_states = {all.buffer, all.offset + bytes, bytes};
  b->head_inputs = {all.buffer, all.offset + 2 * bytes, bytes};
  b->kept_states = {all.buffer, all.offset + 3 * bytes, all.bytes - 3 * bytes};
}

uint64_t layer_state_bytes(const Shape& s, uint32_t layer) {
  return s.each[layer].recurrent ? s.recurrence.stride() * sizeof(float) : 0;
}

uint64_t residual_bytes(const Shape& s, uint32_t step_tokens) {
  return uint64_t(step_tokens) * s.width * sizeof(float);
}

uint64_t pass_bytes(const Shape& s, uint32_t step_tokens) {
  return kPassPieces * (residual_bytes(s, step_tokens) + kFlights * kRowsBytes);
}

bool can_pass(const Model& model) {
  const Shape& s = model.shape;
  if (s.recurrent_layers || s.heads || common_window(s)) return false;
  const std::vector<Segment> segments = segments_of(model.placement, brought_layers(model));
  return std::ranges::all_of(
      segments, [](const Segment& each) { return each.ends() || each.leaves == Crossing::Stays; });
}

uint32_t crossing_values(const Shape& s, Crossing crossing) {
  const uint32_t ids_and_weights = crossing == Crossing::Chosen ? 2 * s.experts.used : 0;
  return crossing == Crossing::None || crossing == Crossing::Stays ? 0 : s.width + ids_and_weights;
}

std::vector<Needs> needs_of(const Model& model) {
  std::vector<Needs> needs(model.devices.size());
  for (const Segment& segment : segments_of(model.placement)) {
    Needs& n = needs[segment.device];
    n.embeds |= segment.embeds();
    n.layers |= segment.first_layer < segment.layers_end && !segment.has_experts_alone();
    n.layers |= segment.ends() && model.shape.heads;
    n.outputs |= segment.ends();
    n.residual |= segment.keeps_residual();
    for (const Crossing crossing : {segment.arrives, segment.leaves}) {
      const uint32_t values = crossing_values(model.shape, crossing);
      n.crosses |= values > 0;
      n.residual_crosses |= crossing == Crossing::Residual;
      if (crossing != Crossing::Residual) n.crossing_values = std::max(n.crossing_values, values);
    }
  }
  return needs;
}

uint64_t residuals_crossing_bytes(const DeviceInfo& device, const Shape& s, uint32_t step_tokens) {
  return (device.shares_host ? 1 : 2) * kFlights * residual_bytes(s, step_tokens);
}

uint64_t log_bytes(uint32_t pages) { return round_up(uint64_t(pages) * kPageTokens * sizeof(uint32_t), 256); }

uint64_t crossing_bytes(const Model& model, const StepBuffers& b, uint32_t device, uint32_t step_tokens) {
  uint64_t page = 0;
  for (uint32_t l = 0; l < model.shape.cached_layers(); ++l)
    if (model.placement.layer(l) == device) page += b.cache[l].page_bytes();
  page += kPageTokens * sizeof(uint32_t);
  const uint64_t values = needs_of(model)[device].crossing_values;
  return std::max(page, step_tokens * values * sizeof(float));
}

}  // namespace greta
