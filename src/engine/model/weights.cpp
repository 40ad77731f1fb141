#include "engine/model/weights.h"

#include <cmath>

namespace greta {

namespace {

using List = std::vector<WantedTensor>;

constexpr const char* kAttentionKeys =
    "block_count, embedding_length, attention.head_count, attention.head_count_kv, attention.key_length and "
    "attention.value_length";
constexpr const char* kLatentKeys =
    "block_count, embedding_length, attention.head_count, attention.q_lora_rank, attention.kv_lora_rank, "
    "attention.key_length_mla, attention.value_length_mla, rope.dimension_count, and without the two of them "
    "attention.key_length and attention.value_length";
// Where other keys than the counts of heads say which layers attend.
constexpr const char* kPeriodKeys =
    "block_count, embedding_length, full_attention_interval, attention.recurrent_layers, "
    "attention.head_count, attention.head_count_kv, attention.key_length and attention.value_length";
// Where layers with a window have sizes of their own.
constexpr const char* kWindowKeys =
    "block_count, embedding_length, attention.head_count, attention.head_count_kv, attention.key_length, "
    "attention.value_length, attention.key_length_swa, attention.value_length_swa, attention.sliding_window, "
    "attention.sliding_window_pattern and attention.shared_kv_layers";
constexpr const char* kShortConvKeys =
    "block_count, embedding_length, attention.head_count_kv and shortconv.l_cache";
constexpr const char* kStateKeys =
    "block_count, embedding_length, full_attention_interval, attention.recurrent_layers, "
    "attention.head_count_kv, feed_forward_length, ssm.conv_kernel, ssm.inner_size, ssm.state_size, "
    "ssm.time_step_rank and ssm.group_count";
constexpr const char* kFfnKeys =
    "block_count, expert_count, leading_dense_block_count, embedding_length and feed_forward_length";
constexpr const char* kExpertKeys =
    "block_count, leading_dense_block_count, embedding_length, expert_count, expert_feed_forward_length, "
    "feed_forward_length, expert_shared_count and expert_shared_feed_forward_length";

constexpr const char* kNormKeys = "block_count, embedding_length and use_parallel_residual";
constexpr const char* kLayerInputKeys =
    "block_count, embedding_length, embedding_length_per_layer_input and the rows of token_embd.weight";

// Notes that these keys determine the sizes of the tensors from index `from` on.
void set_keys(const char* keys, size_t from, List* list) {
  for (size_t i = from; i < list->size(); ++i) (*list)[i].keys = keys;
}

void add_vector(List* list, TensorName name, Tensor* tensor, uint64_t width, uint64_t rows = 1) {
  list->push_back({name, tensor, Use::Vector, width, rows});
}
void add_norm(List* list, TensorName gain_name, TensorName bias_name, Tensor* gain, Tensor* bias,
              uint64_t width) {
  add_vector(list, gain_name, gain, width);
  add_vector(list, bias_name, bias, width);
}
// What decides how a state decays: of a value that is not finite nothing would recover.
void add_rates(List* list, TensorName name, Tensor* tensor, uint64_t width, uint64_t rows = 1) {
  add_vector(list, name, tensor, width, rows);
  list->back().finite = true;
}
void add_scale(List* list, TensorName name, ScaledTensor* of, uint64_t count = 1) {
  list->push_back({maybe(name.text), &of->scale, Use::Vector, count, 1});
  list->back().scale = true;
}
void add_matrix(List* list, TensorName name, ScaledTensor* tensor, uint64_t depth, uint64_t n) {
  list->push_back({name, tensor, Use::Matrix, depth, n});
  add_scale(list, name, tensor);
}
// Rows first .. first + n - 1 of a matrix of `rows`.
void add_rows(List* list, TensorName name, ScaledTensor* tensor, uint64_t depth, uint64_t n, uint64_t first,
              uint64_t rows) {
  list->push_back({name, tensor, Use::Matrix, depth, n, 1, first, rows});
  add_scale(list, name, tensor);
}
// One of several matrices whose rows stand in turn: of each `all` / `pieces` rows, n / pieces from `first`
// on.
void add_woven(List* list, TensorName name, ScaledTensor* tensor, uint64_t depth, uint64_t n, uint64_t first,
               uint64_t all, uint64_t pieces) {
  list->push_back({name, tensor, Use::Matrix, depth, n, 1, first, all, Held::Woven});
  list->back().pieces = pieces;
  add_scale(list, name, tensor);
}
void add_heads(List* list, TensorName name, Tensor* tensor, uint64_t depth, uint64_t n, uint64_t count) {
  list->push_back({name, tensor, Use::Heads, depth, n, count});
}
// Of each expert's `rows` rows, n from `first` on.
void add_cut_experts(List* list, TensorName name, ScaledTensor* tensor, uint64_t depth, uint64_t n,
                     uint64_t count, uint64_t first, uint64_t rows) {
  list->push_back({name, tensor, Use::Experts, depth, n, count, first, rows, Held::Cut});
  add_scale(list, name, tensor, count);
}
void add_experts(List* list, TensorName name, ScaledTensor* tensor, uint64_t depth, uint64_t n,
                 uint64_t count) {
  list->push_back({name, tensor, Use::Experts, depth, n, count});
  add_scale(list, name, tensor, count);
}

void add_attention(const Arch& arch, const Shape& s, const LayerShape& each, bool fused, Layer* l,
                   List* list) {
  const TensorNames& names = arch.tensors;
  const uint64_t q = uint64_t(each.heads) * each.own_keys(), k = uint64_t(each.kv_heads) * each.own_keys();
  const uint64_t v = uint64_t(each.kv_heads) * each.value_width;
  if (fused) {
    add_rows(list, names.query_key_value.text, &l->query, s.width, q, 0, q + k + v);
    add_rows(list, names.query_key_value.text, &l->key, s.width, k, q, q + k + v);
    add_rows(list, names.query_key_value.text, &l->value, s.width, v, q + k, q + k + v);
  } else {
    if (arch.gated_attention) {
      add_woven(list, names.query, &l->query, s.width, q, 0, 2 * q, each.heads);
      add_woven(list, names.query, &l->attention_gate, s.width, q, each.key_width, 2 * q, each.heads);
    } else {
      add_matrix(list, names.query, &l->query, s.width, q);
    }
    if (each.keeps_cache()) add_matrix(list, names.key, &l->key, s.width, k);
    if (each.keeps_cache() && !each.keys_as_values) add_matrix(list, names.value, &l->value, s.width, v);
  }
  if (fused) {
    list->push_back({names.query_key_value_bias, &l->query_bias, Use::Vector, 1, q, 1, 0, q + k + v});
    list->push_back({names.query_key_value_bias, &l->key_bias, Use::Vector, 1, k, 1, q, q + k + v});
    list->push_back({names.query_key_value_bias, &l->value_bias, Use::Vector, 1, v, 1, q + k, q + k + v});
  } else {
    add_vector(list, names.query_bias, &l->query_bias, q);
    if (each.keeps_cache()) add_vector(list, names.key_bias, &l->key_bias, k);
    if (each.keeps_cache() && !each.keys_as_values) add_vector(list, names.value_bias, &l->value_bias, v);
  }
  const uint64_t gates = uint64_t(each.heads) * (each.head_gates ? 1 : each.value_width);
  if (names.attention_gate.text) add_matrix(list, names.attention_gate, &l->attention_gate, s.width, gates);
  const uint64_t normed = arch.layer_norm ? each.heads : 1, normed_keys = arch.layer_norm ? each.kv_heads : 1;
  add_vector(list, names.query_norm, &l->query_norm, arch.norm_all_heads ? q : each.key_width, normed);
  if (each.keeps_cache())
    add_vector(list, names.key_norm, &l->key_norm, arch.norm_all_heads ? k : each.key_width, normed_keys);
  add_vector(list, names.sinks, &l->sinks, each.heads);
  add_matrix(list, names.attention_output, &l->attention_output, uint64_t(each.heads) * each.value_width,
             s.width);
}

void add_latent(const Arch& arch, const Shape& s, const LayerShape& each, Layer* l, List* list) {
  const TensorNames& names = arch.tensors;
  const Latent& latent = s.latent;
  const uint64_t q = uint64_t(each.heads) * (latent.plain + each.rope_width);
  if (latent.query_width) {
    add_matrix(list, names.query_down.text, &l->query_down, s.width, latent.query_width);
    add_vector(list, names.query_down_norm, &l->query_down_norm, latent.query_width);
    add_matrix(list, names.query_up, &l->query_up, latent.query_width, q);
  } else {
    add_matrix(list, names.query, &l->query, s.width, q);
  }
  add_matrix(list, names.latent, &l->latent, s.width, each.key_width);
  add_vector(list, names.latent_norm, &l->latent_norm, latent.width);
  if (latent.joined) {  // for each head the rows that make its key are followed by those that make its value
    const uint64_t w = latent.width, k = latent.plain, v = latent.value;
    list->push_back(
        {names.key_value_up, &l->key_up, Use::Heads, k, w, each.heads, 0, k + v, Held::Transposed});
    list->push_back(
        {names.key_value_up, &l->value_up, Use::Heads, w, v, each.heads, k, k + v, Held::Stacked});
  } else {
    add_heads(list, names.key_up, &l->key_up, latent.plain, latent.width, each.heads);
    add_heads(list, names.value_up, &l->value_up, latent.width, latent.value, each.heads);
  }
  add_matrix(list, names.attention_output, &l->attention_output, uint64_t(each.heads) * latent.value,
             s.width);
}

void add_delta(const TensorNames& names, const Shape& s, Layer* l, List* list) {
  const RecurrentShape& r = s.recurrence;
  add_matrix(list, names.state_in, &l->state_in, s.width, r.channels);
  add_matrix(list, names.state_gate, &l->state_gate, s.width, r.values());
  if (names.strength_rate.text) {
    const uint64_t each = r.heads / r.groups, both = 2ull * r.heads;
    add_woven(list, names.strength_rate, &l->strength, s.width, r.heads, 0, both, r.groups);
    add_woven(list, names.strength_rate, &l->rate, s.width, r.heads, each, both, r.groups);
  } else {
    add_matrix(list, names.strength, &l->strength, s.width, r.heads);
    add_matrix(list, names.rate, &l->rate, s.width, r.heads);
  }
  add_rates(list, names.decay, &l->decay, r.heads);
  add_rates(list, names.rate_bias, &l->rate_bias, r.heads);
  add_vector(list, names.state_norm, &l->state_norm, r.value_width);
}

void add_groups(const TensorNames& names, const Shape& s, Layer* l, List* list) {
  const RecurrentShape& r = s.recurrence;
  const uint64_t gate = r.values(), all = gate + r.channels + r.heads;
  add_rows(list, names.state_all, &l->state_gate, s.width, gate, 0, all);
  add_rows(list, names.state_all, &l->state_in, s.width, r.channels, gate, all);
  add_rows(list, names.state_all, &l->rate, s.width, r.heads, gate + r.channels, all);
  add_rates(list, names.decay, &l->decay, 1, r.heads);
  add_vector(list, names.skip, &l->skip, 1, r.heads);
  add_rates(list, names.rate_bias, &l->rate_bias, r.heads);
  add_vector(list, names.state_norm, &l->state_norm, gate / r.groups, r.groups);
}

void add_selective(const TensorNames& names, const Shape& s, Layer* l, List* list) {
  const RecurrentShape& r = s.recurrence;
  const uint64_t inner = r.values(), n = r.key_width, all = r.rank + 2 * n;
  add_rows(list, names.state_all, &l->state_in, s.width, inner, 0, 2 * inner);
  add_rows(list, names.state_all, &l->state_gate, s.width, inner, inner, 2 * inner);
  add_rows(list, names.rate_key_query, &l->rate_down, inner, r.rank, 0, all);
  add_rows(list, names.rate_key_query, &l->state_key, inner, n, r.rank, all);
  add_rows(list, names.rate_key_query, &l->state_query, inner, n, r.rank + n, all);
  add_matrix(list, names.rate, &l->rate, r.rank, inner);
  add_vector(list, names.rate_norm, &l->rate_norm, r.rank);
  add_vector(list, names.state_key_norm, &l->state_key_norm, n);
  add_vector(list, names.state_query_norm, &l->state_query_norm, n);
  add_rates(list, names.decay, &l->decay, n, inner);
  add_vector(list, names.skip, &l->skip, inner);
  add_rates(list, names.rate_bias, &l->rate_bias, inner);
}

void add_recurrence(const Arch& arch, const Shape& s, Layer* l, List* list) {
  const TensorNames& names = arch.tensors;
  const RecurrentShape& r = s.recurrence;
  if (arch.recurrence == Recurrence::ShortConv)
    add_matrix(list, names.state_in, &l->state_in, s.width, 3ull * r.channels);
  if (arch.recurrence == Recurrence::Delta) add_delta(names, s, l, list);
  if (arch.recurrence == Recurrence::Groups) add_groups(names, s, l, list);
  if (arch.recurrence == Recurrence::Selective) add_selective(names, s, l, list);
  add_vector(list, names.conv, &l->conv, r.conv_width, r.channels);
  add_vector(list, names.conv_bias, &l->conv_bias, r.channels);
  add_matrix(list, names.state_out, &l->state_out, r.heads ? r.values() : r.channels, s.width);
}

void add_ffn(const Arch& arch, const Shape& s, uint64_t hidden, Layer* l, List* list) {
  const TensorNames& names = arch.tensors;
  if (names.gate_up.text) {
    const uint64_t both = 2 * hidden;
    add_rows(list, names.gate_up, &l->gate, s.width, hidden, 0, both);
    add_rows(list, names.gate_up, &l->up, s.width, hidden, hidden, both);
  } else {
    add_matrix(list, names.gate, &l->gate, s.width, hidden);
    add_matrix(list, names.up, &l->up, s.width, hidden);
  }
  add_matrix(list, names.down, &l->down, hidden, s.width);
  add_vector(list, names.gate_bias, &l->gate_bias, hidden);
  add_vector(list, names.up_bias, &l->up_bias, hidden);
  add_vector(list, names.down_bias, &l->down_bias, s.width);
}

void add_expert_layer(const Arch& arch, const Shape& s, Layer* l, List* list) {
  const TensorNames& names = arch.tensors;
  const Experts& e = s.experts;
  if (names.router_gain.text) {  // it has the name of a factor of the router's products
    list->push_back({names.router, &l->router, Use::Matrix, s.width, e.count});
    add_vector(list, names.router_gain, &l->router_gain, s.width);
    list->back().factor = 1 / std::sqrt(float(s.width));
  } else {
    add_matrix(list, names.router, &l->router, s.width, e.count);
  }
  add_vector(list, names.expert_norm, &l->expert_norm, s.width);
  add_vector(list, names.post_expert_norm, &l->post_expert_norm, s.width);
  add_vector(list, names.post_dense_norm, &l->post_dense_norm, s.width);
  add_vector(list, names.router_bias, &l->router_bias, e.count);
  add_vector(list, names.choice_bias, &l->choice_bias, e.count);
  const size_t first = list->size();
  if (names.expert_gate_up.text) {
    const uint64_t both = 2 * uint64_t(e.width);
    add_cut_experts(list, names.expert_gate_up, &l->expert_gate, s.width, e.width, e.count, 0, both);
    add_cut_experts(list, names.expert_gate_up, &l->expert_up, s.width, e.width, e.count, e.width, both);
  } else {
    add_experts(list, names.expert_gate, &l->expert_gate, s.width, e.width, e.count);
    add_experts(list, names.expert_up, &l->expert_up, s.width, e.width, e.count);
  }
  add_experts(list, names.expert_down, &l->expert_down, e.width, s.width, e.count);
  if (names.router_gain.text) list->back().name.optional = false;  // the factors of the experts' results
  add_vector(list, names.expert_gate_bias, &l->expert_gate_bias, e.width, e.count);
  add_vector(list, names.expert_up_bias, &l->expert_up_bias, e.width, e.count);
  add_vector(list, names.expert_down_bias, &l->expert_down_bias, s.width, e.count);
  for (size_t i = first; i < list->size(); ++i) (*list)[i].of_experts = true;
  if (!e.shared_width) return;
  add_matrix(list, names.shared_router, &l->shared_router, s.width, 1);
  add_matrix(list, names.shared_gate.text, &l->shared_gate, s.width, e.shared_width);
  add_matrix(list, names.shared_up.text, &l->shared_up, s.width, e.shared_width);
  add_matrix(list, names.shared_down.text, &l->shared_down, e.shared_width, s.width);
}

// What a layer makes of its own embedding.
void add_layer_input(const TensorNames& names, const Shape& s, Layer* l, List* list) {
  if (s.layer_embedding) {
    add_matrix(list, names.layer_gate, &l->layer_gate, s.width, s.layer_embedding);
    add_matrix(list, names.layer_up, &l->layer_up, s.layer_embedding, s.width);
    add_vector(list, names.layer_norm, &l->layer_norm, s.width);
  }
  add_vector(list, names.layer_scale, &l->layer_scale, 1);
}

List head_tensors(const Arch& arch, const Shape& s, Head* head) {
  List list;
  add_vector(&list, "blk.%u.nextn.enorm.weight", &head->embedding_norm, s.width);
  add_vector(&list, "blk.%u.nextn.hnorm.weight", &head->hidden_norm, s.width);
  add_vector(&list, {"blk.%u.nextn.shared_head_norm.weight", !arch.centred_head}, &head->output_norm,
             s.width);
  add_matrix(&list, "blk.%u.nextn.eh_proj.weight", &head->join, 2 * uint64_t(s.width), s.width);
  return list;
}

}  // namespace

std::vector<WantedTensor> layer_tensors(const Arch& arch, const Shape& shape, uint32_t index,
                                        bool fused_query, Layer* layer) {
  const TensorNames& names = arch.tensors;
  List list;
  const LayerShape& each = shape.each[index];
  if (each.attends() || each.recurrent)
    add_norm(&list, names.attention_norm, names.attention_norm_bias, &layer->attention_norm,
             &layer->attention_norm_bias, shape.width);
  if (each.attends()) {
    const size_t attention = list.size();
    arch.latent ? add_latent(arch, shape, each, layer, &list)
                : add_attention(arch, shape, each, fused_query, layer, &list);
    set_keys(arch.latent             ? kLatentKeys
             : arch.attention_period ? kPeriodKeys
             : arch.window_sizes     ? kWindowKeys
                                     : kAttentionKeys,
             attention, &list);
  }
  if (each.recurrent) {
    const size_t state = list.size();
    add_recurrence(arch, shape, layer, &list);
    set_keys(arch.recurrence == Recurrence::ShortConv ? kShortConvKeys : kStateKeys, state, &list);
  }
  const size_t ffn = list.size();
  if (each.experts) add_expert_layer(arch, shape, layer, &list);
  if (each.has_ffn() && (!each.experts || arch.experts_beside))
    add_ffn(arch, shape, each.ffn_width, layer, &list);
  set_keys(each.experts ? kExpertKeys : kFfnKeys, ffn, &list);
  if (each.attends())
    add_vector(&list, names.attention_output_bias, &layer->attention_output_bias, shape.width);
  if (each.attends() || each.recurrent) {
    add_vector(&list, names.post_attention_norm, &layer->post_attention_norm, shape.width);
  }
  if (each.has_ffn()) {
    const size_t norm = list.size();
    const bool own_norm = index == shape.layers && names.head_ffn_norm.text;
    if (!shape.parallel || !arch.one_norm)
      add_norm(&list, own_norm ? names.head_ffn_norm : names.ffn_norm, names.ffn_norm_bias, &layer->ffn_norm,
               &layer->ffn_norm_bias, shape.width);
    if (arch.layer_norm) set_keys(kNormKeys, norm, &list);
    add_vector(&list, names.post_ffn_norm, &layer->post_ffn_norm, shape.width);
  }
  const size_t input = list.size();
  add_layer_input(names, shape, layer, &list);
  set_keys(kLayerInputKeys, input, &list);
  return list;
}

std::vector<NamedTensor> model_tensors(const Gguf& gguf, const Arch& arch, const Shape& shape,
                                       Weights* weights, bool apart) {
  const TensorNames& names = arch.tensors;
  weights->layers.resize(shape.cached_layers());
  const bool one_matrix = names.output.optional && !gguf.find_tensor(names.output.text);
  weights->tied = one_matrix && !apart;
  List input, output, draft;
  input.push_back({names.token_embedding, &weights->token_embedding,
                   weights->tied ? Use::Matrix : Use::Embedding, shape.width, shape.vocab});
  if (shape.layer_embedding) {
    const uint64_t all = uint64_t(shape.layers) * shape.layer_embedding;
    const size_t first = input.size();
    input.push_back({names.layer_embedding, &weights->layer_embedding, Use::Embedding, all, shape.vocab});
    input.back().on_host = true;
    add_matrix(&input, names.layer_projection, &weights->layer_projection, shape.width, all);
    add_vector(&input, names.layer_projection_norm, &weights->layer_projection_norm, shape.layer_embedding);
    set_keys(kLayerInputKeys, first, &input);
  }
  add_norm(&input, names.embedding_norm, names.embedding_norm_bias, &weights->embedding_norm,
           &weights->embedding_norm_bias, shape.width);
  add_norm(&output, names.output_norm, names.output_norm_bias, &weights->output_norm,
           &weights->output_norm_bias, shape.width);
  if (!one_matrix)
    add_matrix(&output, names.output, &weights->output, shape.width, shape.vocab);
  else if (apart)
    output.push_back({names.token_embedding, &weights->output, Use::Matrix, shape.width, shape.vocab});
  if (shape.heads && apart)
    draft.push_back(
        {names.token_embedding, &weights->head.embedding, Use::Embedding, shape.width, shape.vocab});
  add_vector(&output, names.output_bias, &weights->output_bias, shape.vocab);
  std::vector<NamedTensor> all;
  uint32_t piece = 0;
  bool head = false;
  const auto add = [&](std::string name, const WantedTensor& wanted) {
    if (wanted.scale) name.replace(name.rfind('.'), std::string::npos, ".scale");
    all.push_back({std::move(name), wanted, piece, wanted.of_experts && !head, head});
  };
  for (const WantedTensor& wanted : input)
    if (wanted.name.text) add(wanted.name.text, wanted);
  piece = shape.layers + 1;
  for (const WantedTensor& wanted : output)
    if (wanted.name.text) add(wanted.name.text, wanted);
  for (uint32_t l = 0; l < shape.cached_layers(); ++l) {
    piece = l + 1;  // what drafts lies with the output
    head = l == shape.layers;
    const bool fused =
        names.query_key_value.text && gguf.find_tensor(layer_name(names.query_key_value, l)) != nullptr;
    for (const WantedTensor& wanted : layer_tensors(arch, shape, l, fused, &weights->layers[l]))
      if (wanted.name.text) add(layer_name(wanted.name, l), wanted);
  }
  for (const WantedTensor& wanted : draft) add(wanted.name.text, wanted);
  if (shape.heads)
    for (const WantedTensor& wanted : head_tensors(arch, shape, &weights->head))
      add(layer_name(wanted.name, shape.layers), wanted);
  return all;
}

std::vector<std::string_view> factor_tensors(const Arch& arch, const Shape& shape) {
  const TensorNames& names = arch.tensors;
  std::vector<std::string_view> used;
  const auto add = [&](const TensorName& name) {
    if (name.text) used.push_back(name.text);
  };
  add(names.position_embedding);
  if (shape.rope[0].scaling.kind == RopeScaling::Kind::Long) {
    add(names.long_factors);
    add(names.short_factors);
  } else {
    add(names.rope_factors);
  }
  return used;
}

}  // namespace greta
