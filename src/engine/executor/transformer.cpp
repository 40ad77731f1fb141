#include "engine/executor/transformer.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "engine/executor/feed_forward.h"

namespace greta {

namespace {

// The blocks of a transformer's layers.
struct Builder : FeedForward {
  uint32_t first_layer, layers_end;  // of the segment
  LoneRows lone = LoneRows::None;

  Call rope(const LayerShape& layer, uint8_t table, const Slice& x, uint32_t heads) const {
    return make.rope(x, {heads, layer.own_keys()},
                     {b.rope[table], layer.rope_width, arch.rope == Rope::Halves});
  }
  // The same to heads that end with marks, which those of x lack.
  Call rope(const LayerShape& layer, uint8_t table, const Slice& x, const Slice& y, uint32_t heads) const {
    Call c = rope(layer, table, x, heads);
    if (layer.marks) c.slot[kY] = y, c.x_stride = layer.own_keys(), c.y_stride = layer.key_width;
    return c;
  }
  // Writes the marks of heads by the position of each row.
  Calls mark_heads(const LayerShape& layer, uint8_t table, const Slice& to, uint32_t heads) const {
    const uint32_t width = layer.marks, all = heads * width;
    Calls calls;
    Slice from = b.ones;
    uint8_t last = table;
    if (s.rope[table].kind == RopeTable::Kind::Slopes) {  // each head has its own
      from = rows(all);
      Call made = make.rope(b.ones, {1, all}, {b.rope[table], all, 0});
      made.slot[kY] = from;
      calls += made;
      last = layer.rope_table;  // which turns nothing
    }
    Call moved = make.rope(from, {heads, width}, {b.rope[last], width, 0});
    moved.slot[kY] = from_value(to, layer.own_keys());
    moved.x_stride = width;
    moved.y_stride = layer.key_width;
    return calls += moved;
  }
  Call write_keys(const LayerShape& layer, const Slice& x, const StepBuffers::Cache& cache) const {
    return make.kv_write(x, {layer.kv_heads, layer.key_width},
                         {cache.keys, cache.key_page_bytes, b.key_type});
  }
  Call write_values(const LayerShape& layer, const Slice& x, const StepBuffers::Cache& cache) const {
    return make.kv_write(x, {layer.kv_heads, layer.value_width},
                         {cache.values, cache.value_page_bytes, b.value_type});
  }
  Call attention(const LayerShape& shape, const Layer& layer, const Slice& q, const Slice& y,
                 const StepBuffers::Cache& cache, const Slice& scratch) const {
    Call c =
        make.attention(q, y,
                       {shape.heads, shape.kv_heads, shape.key_width, shape.value_width, s.attention_scale,
                        s.attention_softcap, shape.window, arch.latent ? shape.key_width : 0},
                       {cache.keys, cache.key_page_bytes, b.key_type},
                       {cache.values, cache.value_page_bytes, b.value_type}, scratch);
    c.slot[kTable] = layer.sinks.slice;
    return c;
  }
  uint64_t lone_scratch_bytes(const Call& call) const {
    const Call::Attention& a = call.attention;
    return attention_lone_scratch_bytes(uint64_t(key.tokens), a.heads, a.kv_heads, a.value_width);
  }
  uint64_t prefix_scratch_bytes(const Call& call) const {
    const Call::Attention& a = call.attention;
    return attention_prefix_scratch_bytes(uint64_t(key.tokens), a.heads, a.kv_heads, a.value_width);
  }
  Call attention(const LayerShape& shape, const Layer& layer, const Slice& q, const Slice& y,
                 const StepBuffers::Cache& cache) {
    const bool shares = key.prefixes && takes_prefixes(shape, layer, cache);
    const LoneRows rows = shares ? key.lone : lone;
    const Call sizes = attention(shape, layer, q, y, cache, {});
    Slice scratch;
    if (rows != LoneRows::None)
      scratch = graph.temporary(lone_scratch_bytes(sizes) + (shares ? prefix_scratch_bytes(sizes) : 0));
    else if (key.tokens <= kMaxSplitTokens)
      scratch =
          graph.temporary(attention_scratch_bytes(uint64_t(key.tokens), shape.heads, shape.value_width));
    Call c = attention(shape, layer, q, y, cache, scratch);
    if (shares) c.attention.prefix = Prefix::Behind;
    if (rows == LoneRows::All) c.attention.rows = AttentionRows::Lone;
    if (rows == LoneRows::First) c.attention.rows = AttentionRows::FirstLone;
    return c;
  }
  // The attention over shared pages whose results `behind` adds.
  Call prefix_sums(const Call& behind) const {
    Call c = behind;
    c.attention.prefix = Prefix::Sums;
    c.slot[kY] = {};
    const Slice& scratch = behind.slot[kScratch];
    c.slot[kScratch] = {scratch.buffer, scratch.offset + lone_scratch_bytes(c), prefix_scratch_bytes(c)};
    return c;
  }
  // Whether the device has kernels for the pages that rows share in this layer.
  bool takes_prefixes(const LayerShape& shape, const Layer& layer, const StepBuffers::Cache& cache) const {
    Call c = attention(shape, layer, b.step, b.step, cache, b.step);
    c.attention.rows = AttentionRows::FirstLone;
    for (const Prefix prefix : {Prefix::Sums, Prefix::Behind}) {
      c.attention.prefix = prefix;
      if (!graph.covers({&c, 1}, key.tokens)) return false;
    }
    return true;
  }
  // Whether the device has an attention for rows that are each the only one of their sequence, in all layers
  // of the segment.
  bool takes_lone_rows(const Weights& weights) const {
    for (uint32_t l = first_layer; l < layers_end; ++l) {
      if (!s.each[l].attends()) continue;
      Call c = attention(s.each[l], weights.layers[l], b.step, b.step, b.cache[s.cache_layer(l)], b.step);
      c.attention.rows = AttentionRows::FirstLone;  // no other kernel takes these
      if (!graph.covers({&c, 1}, key.tokens)) return false;
    }
    return true;
  }
  Call attention_gate(const LayerShape& shape, const Slice& gate, const Slice& attended) const {
    Call c =
        make.multiply(gate, attended, attended, {shape.heads, shape.value_width}, uint32_t(arch.gate_factor));
    c.multiply.each_head = shape.head_gates;
    return c;
  }
  // Emits the calls that make queries, keys and values, which do not need each other's results, then the
  // attention that reads them.
  Status emit_attention(std::initializer_list<Calls> each, const Call& attention) {
    const bool shares = attention.attention.prefix == Prefix::Behind;
    const Call next = shares ? prefix_sums(attention) : attention;
    Calls last;
    GRETA_TRY(emit_beside(each, next, &last));
    graph.name_part("q k v");
    if (shares) {
      GRETA_TRY(emit(last += next));
      last = {};
    }
    GRETA_TRY(emit(last += attention));
    if (attention.attention.rows == AttentionRows::FirstLone) {
      Call others = attention;
      others.attention.rows = AttentionRows::Others;
      others.attention.prefix = Prefix::None;
      GRETA_TRY(emit({others}));
    }
    graph.name_part("attention");
    return {};
  }

  // Makes the rows of a step known to the other groups of the cache, whose page tables lie in states of their
  // own.
  Status share_rows() {
    const uint64_t bytes = offsetof(StepState, row) + key.tokens * sizeof(StepRow);
    for (uint32_t g = 1; g < b.groups; ++g) {
      Slice from = b.step_of(0), to = b.step_of(g);
      from.bytes = to.bytes = bytes;
      GRETA_TRY(graph.copy(to, from));
    }
    return {};
  }

  // Gives the calls that make a layer's keys, before their norm, and its values.
  Status make_keys_and_values(const LayerShape& shape, const Layer& layer, const Calls& before,
                              const Slice& x, const Slice& k, const Slice& v, Calls* keys, Calls* values) {
    *keys = before;
    *keys += matmul(layer.key, x, k, layer.key_bias);
    if (shape.keys_as_values) {
      GRETA_TRY(emit(std::exchange(*keys, {})));
      *values = {arch.norm_values ? norm_alone(k, v, shape.value_width, shape.kv_heads)
                                  : make.softcap(k, v, shape.kv_heads * shape.value_width, 0, 1)};
      return {};
    }
    *values = before;
    *values += matmul(layer.value, x, v, layer.value_bias);
    if (arch.norm_values) *values += norm_alone(v, v, shape.value_width, shape.kv_heads);
    return {};
  }

  // The calls `before` make x.
  Status attention_block(const LayerShape& shape, const Layer& layer, const StepBuffers::Cache& cache,
                         const Calls& before, const Slice& x, const Slice& h) {
    const Slice q = rows(uint64_t(shape.heads) * shape.key_width),
                k = rows(uint64_t(shape.kv_heads) * shape.key_width);
    const Slice v = rows(uint64_t(shape.kv_heads) * shape.value_width);
    const Slice attended = rows(uint64_t(shape.heads) * shape.value_width), projected = rows(s.width);
    const uint32_t own = shape.own_keys();
    const Slice own_q = shape.marks ? rows(uint64_t(shape.heads) * own) : q,
                own_k = shape.marks ? rows(uint64_t(shape.kv_heads) * own) : k;

    Calls queries = before, keys, values, gates;
    queries += matmul(layer.query, x, own_q, layer.query_bias);
    const auto add_norms = [&] {
      if (there(layer.query_norm)) queries += head_norm(layer.query_norm, own_q, shape.heads, own);
      if (there(layer.key_norm)) keys += head_norm(layer.key_norm, own_k, shape.kv_heads, own);
    };
    if (shape.keeps_cache())
      GRETA_TRY(make_keys_and_values(shape, layer, before, x, own_k, v, &keys, &values));
    if (!arch.norm_turned) add_norms();
    if (shape.norm_heads) {  // a rotation does not change the norm
      queries += norm_alone(own_q, own_q, own, shape.heads);
      keys += norm_alone(own_k, own_k, own, shape.kv_heads);
    }
    if (shape.query_rope_table != kNoRope)
      queries += rope(shape, shape.query_rope_table, own_q, q, shape.heads);
    if (shape.rope_table != kNoRope && shape.keeps_cache())
      keys += rope(shape, shape.rope_table, own_k, k, shape.kv_heads);
    if (shape.marks) {
      queries += mark_heads(shape, shape.query_marks, q, shape.heads);
      keys += mark_heads(shape, shape.key_marks, k, shape.kv_heads);
    }
    if (arch.norm_turned) add_norms();
    if (shape.keeps_cache()) {
      keys += write_keys(shape, k, cache);
      values += write_values(shape, v, cache);
    }
    Slice g;
    if (there(layer.attention_gate)) {
      g = rows(layer.attention_gate.n);
      gates = before;
      gates += matmul(layer.attention_gate, x, g);
    }
    if (shape.keys_as_values) std::swap(keys, values);  // the norm of keys overwrites what values are made of
    GRETA_TRY(emit_attention({queries, keys, values, gates}, attention(shape, layer, q, attended, cache)));
    if (there(layer.attention_gate)) GRETA_TRY(emit({attention_gate(shape, g, attended)}));
    return leave(matmul(layer.attention_output, attended, projected, layer.attention_output_bias),
                 layer.post_attention_norm, projected, h);
  }

  // Latent attention of DeepSeek-V2 (arXiv 2405.04434) in its absorbed form. The matrices that would make a
  // head's key and value from the latent are applied to the query and the result instead. So all heads share
  // one cached head [latent | rotated].
  Status latent_block(const LayerShape& shape, const Layer& layer, const StepBuffers::Cache& cache,
                      const Calls& before, const Slice& x, const Slice& h) {
    const uint32_t head = s.latent.plain + shape.rope_width;
    Calls queries = before, keys = before;
    const Slice q = rows(uint64_t(shape.heads) * head), query = rows(uint64_t(shape.heads) * shape.key_width);
    const Slice k = rows(shape.key_width), attended = rows(uint64_t(shape.heads) * shape.value_width);
    const Slice y = rows(uint64_t(shape.heads) * s.latent.value), projected = rows(s.width);
    if (there(layer.query_down)) {
      const Slice low = rows(s.latent.query_width);
      queries += matmul(layer.query_down, x, low);
      queries += norm(layer.query_down_norm, low, low);
      queries += matmul(layer.query_up, low, q);
    } else {
      queries += matmul(layer.query, x, q);
    }
    Call absorbed = make.matmul_each(layer.key_up, q, {}, query, shape.heads, shape.heads);
    absorbed.x_stride = head;
    absorbed.y_stride = shape.key_width;
    Call turned = rope(shape, shape.rope_table, from_value(q, s.latent.plain), shape.heads);
    turned.slot[kY] = from_value(query, s.latent.width);
    turned.x_stride = head;
    turned.y_stride = shape.key_width;
    Call normed = norm(layer.latent_norm, k, k);
    normed.x_stride = normed.y_stride = shape.key_width;
    queries += absorbed;
    queries += turned;
    keys += matmul(layer.latent, x, k);
    keys += normed;
    keys += rope(shape, shape.rope_table, from_value(k, s.latent.width), 1);
    keys += write_keys(shape, k, cache);
    GRETA_TRY(emit_attention({queries, keys}, attention(shape, layer, query, attended, cache)));
    GRETA_TRY(emit({make.matmul_each(layer.value_up, attended, {}, y, shape.heads, shape.heads)}));
    return leave(matmul(layer.attention_output, y, projected), layer.post_attention_norm, projected, h);
  }

  // What mixes the tokens of a sequence: attention, a block with a state, or both beside each other.
  Status mix(const LayerShape& shape, const Layer& layer, const StepBuffers::Cache& cache, const Slice& h) {
    Slice x;
    Calls before;
    if (shape.attends() || shape.recurrent)
      before = enter(layer.attention_norm, h, &x, layer.attention_norm_bias);
    if (shape.attends() && shape.recurrent) GRETA_TRY(emit(std::exchange(before, {})));
    if (shape.attends())
      GRETA_TRY(arch.latent ? latent_block(shape, layer, cache, before, x, h)
                            : attention_block(shape, layer, cache, before, x, h));
    return shape.recurrent ? add_recurrence(*this, layer, cache, before, x, h) : Status{};
  }

  // Attention and the feed-forward block of the same residual, whose results it gets one after the other.
  Status parallel_blocks(const LayerShape& shape, const Layer& layer, const StepBuffers::Cache& cache,
                         const Slice& h) {
    Slice x, z;
    GRETA_TRY(emit(enter(layer.attention_norm, h, &x, layer.attention_norm_bias)));
    z = x;
    if (!arch.one_norm) GRETA_TRY(emit(enter(layer.ffn_norm, h, &z, layer.ffn_norm_bias)));
    GRETA_TRY(attention_block(shape, layer, cache, {}, x, h));
    graph.name_part("o");
    return ffn_block(layer, {}, z, h);
  }

  // The norm behind the last layer of a step.
  Call last_norm(const Tensor& gain, const Tensor& bias, const Slice& x, const Slice& y) const {
    return key.head && arch.centred_head ? make.layer_norm(gain, {}, x, y, {1, s.width}, s.head_epsilon)
                                         : row_norm(gain, bias, x, y);
  }

  // Leaves the hidden states of all rows where the layer that drafts tokens finds them.
  Status leave_states(const Tensor& gain, const Tensor& bias, const Slice& h, const Slice& to) {
    const Slice normed = rows(s.width);
    GRETA_TRY(emit({last_norm(gain, bias, h, normed)}));
    graph.name_part("states");
    return graph.copy({to.buffer, to.offset, normed.bytes}, normed);
  }

  // A step of the layer that drafts tokens. Its rows are tokens with the hidden states of those before.
  Status draft(const Weights& weights) {
    const Slice pair = rows(2 * uint64_t(s.width)), embedding = rows(s.width), state = rows(s.width),
                h = rows(s.width);
    const Tensor& tokens = there(weights.head.embedding) ? weights.head.embedding : weights.token_embedding;
    GRETA_TRY(emit({make.embed(tokens, embedding, {}, s.embedding_scale, s.vocab)}));
    GRETA_TRY(graph.copy(state, {b.head_inputs.buffer, b.head_inputs.offset, state.bytes}));
    Call first = norm(weights.head.embedding_norm, embedding, pair);
    Call second = norm(weights.head.hidden_norm, state, from_value(pair, s.width));
    for (Call* each : {&first, &second}) each->x_stride = s.width, each->y_stride = 2 * s.width;
    for (const Calls& calls : {Calls{first}, Calls{second}, matmul(weights.head.join, pair, h)})
      GRETA_TRY(emit(calls));
    graph.name_part("embed");
    GRETA_TRY(layer_block(weights, s.layers, {}, {}, h));
    make.step = b.step_of(0);
    const bool own = there(weights.head.output_norm);
    const Tensor& gain = own ? weights.head.output_norm : weights.output_norm;
    GRETA_TRY(leave_states(gain, {}, h, b.head_states));
    return key.outputs ? head(weights, gain, {}, h) : Status{};
  }

  Status hidden(const Weights& weights, const Slice& h) {  // the host gets those of the output rows
    const Slice normed = rows(s.width, key.outputs);
    Call c = row_norm(weights.output_norm, weights.output_norm_bias, h, normed);
    c.rows_of = kRowsGather;
    GRETA_TRY(emit({&c, 1}, key.outputs));
    graph.name_part("head");
    return graph.copy({b.readback.buffer, b.readback.offset, normed.bytes}, normed);
  }

  // Only output rows get logits, since nobody reads the others.
  Status head(const Weights& weights, const Tensor& gain, const Tensor& bias, const Slice& h) {
    const Slice normed = rows(s.width, key.outputs), logits = rows(s.vocab, key.outputs);
    Calls calls = {last_norm(gain, bias, h, normed)};
    calls += weights.tied
                 ? Calls{make.matmul(weights.token_embedding, normed, logits, weights.output_bias.slice)}
                 : product(weights.output, normed, logits, weights.output_bias);
    Calls gathered;
    for (Call c : calls.all()) {
      c.rows_of = c.op == Op::Norm || c.op == Op::LayerNorm ? kRowsGather : kRowsOutputs;
      gathered += c;
    }
    GRETA_TRY(emit(gathered.all(), key.outputs));
    GRETA_TRY(add_to_logits(weights, h, logits));
    if (s.final_softcap > 0 || s.logit_scale != 1) {
      Call c = make.softcap(logits, logits, s.vocab, s.final_softcap, s.logit_scale);
      c.rows_of = kRowsOutputs;
      GRETA_TRY(graph.add({&c, 1}, key.outputs));
    }
    graph.name_part("head");
    if (key.sample) {
      const Slice scratch = graph.temporary(key.outputs * sample_scratch_bytes(uint64_t(s.vocab)));
      Call c = make.sample(logits, b.drawn, s.vocab, {b.token_log, scratch});
      c.rows_of = kRowsOutputs;
      GRETA_TRY(graph.add({&c, 1}, key.outputs));
    }
    if (!key.logits) return {};
    const uint64_t bytes = key.logits * s.vocab * sizeof(float);
    return graph.copy({b.readback.buffer, b.readback.offset, bytes}, {logits.buffer, logits.offset, bytes});
  }

  // Layer `index` of the segment, from which a part may be left out.
  Status layer_block(const Weights& weights, uint32_t index, const Segment& segment, const Slice& inputs,
                     const Slice& h) {
    const LayerShape& each = s.each[index];
    const Layer& layer = weights.layers[index];
    const StepBuffers::Cache& cache = b.cache[s.cache_layer(index)];
    make.step = b.step_of(cache.group);
    xielu = each.xielu;
    if (s.parallel) {
      GRETA_TRY(parallel_blocks(each, layer, cache, h));
      GRETA_TRY(add_directions(index, h));
      graph.name_part("down");
      return {};
    }
    Slice results;
    const bool resumes = segment.arrives == Crossing::Results && index == first_layer;
    if (resumes) {
      results = rows(s.width);
      GRETA_TRY(receive({results}));
    } else {
      GRETA_TRY(mix(each, layer, cache, h));
      graph.name_part("o");
    }
    if (segment.leaves == Crossing::Chosen && index + 1 == layers_end) return choose_for_others(layer, h);
    const Slice* arrived = resumes ? &results : nullptr;
    Calls scale;
    if (there(layer.layer_scale)) scale += make.scale(h, layer.layer_scale.slice, {}, s.width);
    const bool adds_once = each.has_ffn() && (!each.experts || arch.experts_beside);
    if (adds_once && !s.layer_embedding) behind = std::exchange(scale, {});
    if (each.has_ffn())
      GRETA_TRY(!each.experts         ? ffn_block(layer, h)
                : arch.experts_beside ? beside_block(layer, h, arrived)
                                      : expert_block(layer, h, arrived));
    graph.name_part(each.experts ? "experts down" : "down");
    if (s.layer_embedding) {
      behind = std::exchange(scale, {});
      GRETA_TRY(add_layer_input(*this, layer, index, inputs, h));
    }
    GRETA_TRY(emit(scale));
    GRETA_TRY(add_directions(index, h));
    graph.name_part("layer input");
    return {};
  }
};

}  // namespace

Status build_step(const Arch& arch, const Shape& shape, const Weights& weights, const StepBuffers& buffers,
                  const StepKey& key, GretaGraph* graph, const Segment& segment) {
  const uint32_t layers_end = std::min(segment.layers_end, shape.layers);
  const bool reads = segment.embeds() || shape.heads,
             empty = !reads && segment.first_layer == layers_end && !key.outputs;
  if (empty || (key.head && !segment.ends())) return graph->finish();
  const uint32_t first = key.head ? shape.layers : segment.first_layer;
  Builder builder{
      {{arch, shape, buffers, key, *graph}}, first, key.head ? shape.cached_layers() : layers_end};
  if (key.replay) {
    std::vector<uint32_t> layers;
    for (uint32_t l = first; l < layers_end; ++l) {
      const bool before = segment.arrives == Crossing::Results && l == first;  // its state lies in that one
      if (shape.each[l].recurrent && !before && !segment.has_experts_alone()) layers.push_back(l);
    }
    GRETA_TRY(add_replay(builder, weights, layers));
    return graph->finish();
  }
  if (key.head) {
    GRETA_TRY(builder.share_rows());
    GRETA_TRY(builder.draft(weights));
    return graph->finish();
  }
  if (segment.has_experts_alone()) {
    builder.xielu = shape.each[segment.first_layer].xielu;
    GRETA_TRY(builder.experts_alone(weights.layers[segment.first_layer]));
    return graph->finish();
  }
  if (key.lone != LoneRows::None && builder.takes_lone_rows(weights)) builder.lone = key.lone;
  Slice h;  // the residual stream
  if (segment.keeps_residual())
    h = {buffers.residual.buffer, buffers.residual.offset,
         key.tokens * uint64_t(shape.width) * sizeof(float)};
  else
    h = builder.rows(shape.width);
  GRETA_TRY(builder.share_rows());
  Slice inputs;
  if (segment.embeds()) {
    GRETA_TRY(builder.emit({builder.make.embed(weights.token_embedding, h, buffers.token_log,
                                               shape.embedding_scale, shape.vocab)}));
    GRETA_TRY(builder.add_to_embeddings(h));
    GRETA_TRY(norm_embeddings(builder, weights, h));
    if (shape.positions) GRETA_TRY(add_positions(builder, h));
    if (shape.layer_embedding) GRETA_TRY(make_layer_inputs(builder, weights, h, &inputs));
    graph->name_part("embed");
  }
  for (uint32_t l = segment.first_layer; l < layers_end; ++l)
    GRETA_TRY(builder.layer_block(weights, l, segment, inputs, h));
  builder.make.step = buffers.step_of(0);
  if (!segment.ends()) return graph->finish();
  if (shape.heads)
    GRETA_TRY(builder.leave_states(weights.output_norm, weights.output_norm_bias, h, buffers.step_states));
  if (key.outputs)
    GRETA_TRY(key.hidden ? builder.hidden(weights, h)
                         : builder.head(weights, weights.output_norm, weights.output_norm_bias, h));
  graph->name_part(key.sample ? "sample" : "logits");
  return graph->finish();
}

}  // namespace greta
