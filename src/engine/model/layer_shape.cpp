// What differs between the layers of a model in which some have a window.
#include <algorithm>
#include <cmath>

#include "engine/model/shape_reader.h"

namespace greta {

const LayerShape& first_layer(const Shape& s, bool windowed) {
  for (const LayerShape& layer : s.each)
    if (layer.attends() && (layer.window != 0) == windowed) return layer;
  return s.attending();
}

Status check_rotated(const ShapeReader& r, const char* key, const char* width_key, uint32_t turned,
                     uint32_t width) {
  if (turned <= width && turned % 2 == 0) return {};
  return fail(
      Code::File,
      "%s: %s%s is %u, expected an even number up to the head's %u, which is %s, or embedding_length / "
      "attention.head_count without it",
      r.gguf.name(), r.prefix.c_str(), key, turned, width, width_key);
}

Status check_sections(ShapeReader& r, uint32_t turned) {
  const bool there = r.arch.rope_sections && r.has("rope.dimension_sections");
  if (!there || !turned) return {};  // without attention nothing turns
  const std::string key = r.prefix + "rope.dimension_sections";
  PackedArray<int32_t> sections;
  GRETA_TRY(r.gguf.get_i32_array(key, &sections));
  uint64_t sum = 0;
  for (uint64_t i = 0; i < sections.count; ++i) {
    if (sections[i] < 0)
      return fail(Code::File, "%s: %s holds %d, expected numbers of pairs", r.gguf.name(), key.c_str(),
                  sections[i]);
    sum += uint64_t(sections[i]);
  }
  if (sum <= turned / 2) return {};
  return fail(Code::File, "%s: %s adds up to %llu pairs, but of a head %u rotate (rope.dimension_count)",
              r.gguf.name(), key.c_str(), (unsigned long long)sum, turned / 2);
}

Status read_window_sizes(ShapeReader& r, Shape* s) {
  const LayerShape& other = s->attending();  // no window has changed it yet
  uint32_t keys = other.key_width, values = other.value_width, turned = other.rope_width;
  if (!r.arch.window_sizes) {
    r.same_as("attention.key_length_swa", "attention.key_length", keys);
    r.same_as("attention.value_length_swa", "attention.value_length", values);
    r.same_as("rope.dimension_count_swa", "rope.dimension_count", turned);
    return r.status;
  }
  const bool given = r.has("attention.key_length_swa");
  r.u32("attention.key_length_swa", 1, kMaxWidth, &keys);
  r.u32("attention.value_length_swa", 1, kMaxWidth, &values);
  if (given) turned = keys;
  r.u32("rope.dimension_count_swa", 1, kMaxWidth, &turned);
  GRETA_TRY(r.status);
  GRETA_TRY(check_rotated(r, "rope.dimension_count_swa", "attention.key_length_swa", turned, keys));
  for (LayerShape& layer : s->each)
    if (layer.window) layer.key_width = keys, layer.value_width = values, layer.rope_width = turned;
  return {};
}

// A layer that shares takes the cache of the last one before all that do which has a window, too, or has
// none.
static Status share_caches(ShapeReader& r, Shape* s, uint32_t shared) {
  const uint32_t first = s->layers - shared;
  for (uint32_t l = first; l < s->layers; ++l) {
    LayerShape& layer = s->each[l];
    const auto same = [&](uint32_t other) {
      const LayerShape& from = s->each[other];
      return from.window == layer.window && from.kv_heads == layer.kv_heads &&
             from.key_width == layer.key_width && from.value_width == layer.value_width;
    };
    uint32_t from = first;
    while (from > 0 && s->each[from - 1].window != layer.window) --from;
    if (!from)
      return fail(
          Code::File,
          "%s: layer %u shares the cache of an earlier one, but none of the first %u has a window like "
          "its own (%sattention.shared_kv_layers, attention.sliding_window_pattern)",
          r.gguf.name(), l, first, r.prefix.c_str());
    if (!same(from - 1))
      return fail(Code::File,
                  "%s: layer %u shares the cache of layer %u, whose heads have other sizes "
                  "(%sattention.shared_kv_layers, attention.head_count_kv)",
                  r.gguf.name(), l, from - 1, r.prefix.c_str());
    layer.cache_of = from - 1;
  }
  return {};
}

Status read_shared_caches(ShapeReader& r, Shape* s) {
  uint32_t shared = 0;
  if (r.arch.shared_caches) r.u32("attention.shared_kv_layers", 0, s->layers - 1, &shared);
  GRETA_TRY(r.status);
  GRETA_TRY(share_caches(r, s, shared));
  if (!r.arch.keys_as_values) return {};
  // Either all of these layers have matrices for values, or none of them has.
  const LayerShape* first = nullptr;
  for (uint32_t l = 0; l < s->layers; ++l) {
    LayerShape& layer = s->each[l];
    if (layer.window || !layer.keeps_cache()) continue;
    layer.keys_as_values =
        first ? first->keys_as_values : !r.gguf.find_tensor(layer_name(r.arch.tensors.value, l));
    if (!first) first = &layer;
    if (layer.keys_as_values && layer.key_width != layer.value_width)
      return fail(Code::File,
                  "%s: no tensor %s, and values of %u cannot be keys of %u (attention.key_length, "
                  "attention.value_length)",
                  r.gguf.name(), layer_name(r.arch.tensors.value, l).c_str(), layer.value_width,
                  layer.key_width);
  }
  return {};
}

// The table takes the place of that of rotations, which no layer has.
Status read_positions(ShapeReader& r, Shape* s) {
  const char* name = r.arch.tensors.position_embedding.text;
  if (!name) return {};
  const GgufTensor* rows = r.gguf.find_tensor(name);
  if (!rows) return fail(Code::File, "%s: no tensor %s", r.gguf.name(), name);
  if (rows->ne[1] < 1 || rows->ne[1] > kMaxContext)
    return fail(Code::File, "%s: %s has %llu rows, expected 1 to %u", r.gguf.name(), name,
                (unsigned long long)rows->ne[1], kMaxContext);
  if (s->width % 2)
    return fail(Code::Unsupported, "%s: %sembedding_length is %u, expected an even number, since %s is there",
                r.gguf.name(), r.prefix.c_str(), s->width, name);
  s->positions = uint32_t(rows->ne[1]);
  s->rope[0] = {};
  s->rope[0].width = s->width;
  s->rope[0].kind = RopeTable::Kind::Positions;
  for (LayerShape& layer : s->each) layer.rope_table = layer.query_rope_table = kNoRope;
  return {};
}

// Of a key without the architecture's prefix: one number for each layer.
static Status read_each(ShapeReader& r, const char* key, const Shape& s, std::vector<float>* out) {
  PackedArray<float> values;
  r.keys.insert(key);
  GRETA_TRY(r.gguf.require(key));
  GRETA_TRY(r.gguf.get_f32_array(key, &values));
  if (values.count != s.layers)
    return fail(Code::File, "%s: %s has %llu numbers, expected one for each of %u layers (%sblock_count)",
                r.gguf.name(), key, (unsigned long long)values.count, s.layers, r.prefix.c_str());
  for (uint64_t i = 0; i < values.count; ++i) {
    if (!(values[i] >= -1e4f && values[i] <= 1e4f))
      return fail(Code::File, "%s: %s holds %g, expected -10000 to 10000", r.gguf.name(), key,
                  double(values[i]));
    out->push_back(values[i]);
  }
  return {};
}

// Keys get a head's slope times their position, which for the scores of a query is the same as minus the
// slope times the distance.
Status read_slopes(ShapeReader& r, Shape* s) {
  if (!r.arch.slopes) return {};
  const LayerShape first = s->attending();
  if (first.heads != first.kv_heads)
    return fail(Code::Unsupported,
                "%s: %sattention.head_count_kv is %u, expected %u (attention.head_count), for each head has "
                "its slope",
                r.gguf.name(), r.prefix.c_str(), first.kv_heads, first.heads);
  if (first.key_width % 2)
    return fail(
        Code::Unsupported,
        "%s: heads of %u values (%sembedding_length, %sattention.head_count), expected an even number",
        r.gguf.name(), first.key_width, r.prefix.c_str(), r.prefix.c_str());
  constexpr uint32_t kMarks = 16;  // 3 are needed; kernels want multiples of this
  s->rope_tables = 3;
  s->rope[0] = s->rope[1] = s->rope[2] = {};
  s->rope[0].kind = RopeTable::Kind::Still;
  s->rope[0].width = std::max(first.key_width, kMarks);
  s->rope[1].kind = RopeTable::Kind::Slopes;
  s->rope[1].width = first.kv_heads * kMarks;
  s->rope[2].kind = RopeTable::Kind::Level;
  s->rope[2].width = kMarks;
  for (LayerShape& layer : s->each) {
    layer.rope_table = layer.query_rope_table = 0;
    layer.rope_width = layer.key_width;
    layer.key_width += kMarks;
    layer.marks = kMarks;
    layer.key_marks = 1;
    layer.query_marks = 2;
  }
  return {};
}

// Layers with a window see chunks: a window of that length, less what lies in the chunk before. The others do
// not rotate, and their queries may grow with their position.
Status read_chunks(ShapeReader& r, Shape* s) {
  if (!r.arch.chunks) return {};
  const uint32_t window = first_layer(*s, true).window;
  float temperature = window ? r.arch.still_temperature : 0;
  uint32_t length = r.arch.window;
  r.f32("attention.temperature_scale", 0.0f, 1e3f, &temperature);
  r.u32("attention.temperature_length", 1, kMaxContext, &length);
  GRETA_TRY(r.status);
  if (!window) return {};
  constexpr uint32_t kMarks = 32;  // a block of q8_0 of their own, so that all keys have the same ones
  const uint32_t own = s->attending().key_width, turned = s->attending().rope_width;
  if (own != turned)
    return fail(
        Code::Unsupported,
        "%s: of a head's %u values %u rotate, expected all (%sattention.key_length, %srope.dimension_count)",
        r.gguf.name(), own, turned, r.prefix.c_str(), r.prefix.c_str());
  RopeTable still, chunks;
  still.kind = RopeTable::Kind::Still;
  still.width = own;
  still.temperature = temperature;
  still.offset = 1;
  still.scaling.original_context = length;
  chunks.kind = RopeTable::Kind::Chunks;
  chunks.width = kMarks;
  chunks.chunk = window;
  const uint8_t grown = uint8_t(s->rope_tables++), marks = uint8_t(s->rope_tables++);
  s->rope[grown] = still;
  s->rope[marks] = chunks;
  for (LayerShape& layer : s->each) {
    if (!layer.window && temperature > 0) layer.query_rope_table = grown;
    if (!layer.window) continue;
    layer.key_width += kMarks;
    layer.marks = kMarks;
    layer.key_marks = layer.query_marks = marks;
  }
  return {};
}

// Of so many layers the last one has experts.
Status check_interleaved(ShapeReader& r, const Shape& s) {
  if (!r.arch.scale_inputs) return {};
  uint32_t step = 1;
  r.u32("interleave_moe_layer_step", s.experts.count != 0, kMaxLayers, &step);
  GRETA_TRY(r.status);
  for (uint32_t l = 0; l < s.layers && s.experts.count; ++l) {
    const bool wanted = (l + 1) % step == 0;
    if (s.each[l].experts != wanted)
      return fail(
          Code::File,
          "%s: %s %s, but of %u layers the last one has experts (%sinterleave_moe_layer_step, %sblock_count)",
          r.gguf.name(), wanted ? "no tensor" : "there is", layer_name(r.arch.tensors.router, l).c_str(),
          step, r.prefix.c_str(), r.prefix.c_str());
  }
  if (s.experts.count && s.experts.used != 1)
    return fail(Code::Unsupported, "%s: %sexpert_used_count is %u, expected 1, whose input has its weight",
                r.gguf.name(), r.prefix.c_str(), s.experts.used);
  return {};
}

void read_head_norms(const Arch& arch, Shape* s) {
  if (!arch.norm_heads || (arch.plain_heads && s->experts.count == arch.plain_heads)) return;
  for (LayerShape& layer : s->each) layer.norm_heads = layer.attends() && layer.rope_table != kNoRope;
}

Status read_xielu(ShapeReader& r, Shape* s) {
  if (r.arch.ungated != Factor::Xielu) return {};
  std::vector<float> positive, negative, linear, least;
  GRETA_TRY(read_each(r, "xielu.alpha_p", *s, &positive));
  GRETA_TRY(read_each(r, "xielu.alpha_n", *s, &negative));
  GRETA_TRY(read_each(r, "xielu.beta", *s, &linear));
  GRETA_TRY(read_each(r, "xielu.eps", *s, &least));
  // Training holds what is trained above zero by a softplus.
  const auto above_zero = [](float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x))); };
  for (uint32_t l = 0; l < s->layers; ++l) {
    if (!(least[l] <= 0 &&
          least[l] >= -1e-5f))  // then it does not matter that exp(x) - 1 is taken of it at most
      return fail(Code::Unsupported, "%s: xielu.eps is %g in layer %u, expected -1e-5 to 0", r.gguf.name(),
                  double(least[l]), l);
    s->each[l].xielu = {above_zero(positive[l]), linear[l] + above_zero(negative[l]), linear[l]};
  }
  return {};
}

Status read_attention_gates(ShapeReader& r, Shape* s) {
  if (!r.arch.tensors.attention_gate.text) return {};
  for (uint32_t l = 0; l < s->layers; ++l) {
    const GgufTensor* gate = r.gguf.find_tensor(layer_name(r.arch.tensors.attention_gate, l));
    s->each[l].head_gates = gate && gate->ne[1] == s->each[l].heads;
  }
  return {};
}

bool Shape::stays_whole() const {
  const auto reads_another = [](const LayerShape& layer) { return layer.attends() && !layer.keeps_cache(); };
  return layer_embedding != 0 || positions != 0 || std::ranges::any_of(each, reads_another);
}

}  // namespace greta
