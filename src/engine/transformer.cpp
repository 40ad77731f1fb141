#include "engine/transformer.h"

#include <algorithm>
#include <cmath>

namespace greta {

uint32_t token_bucket(uint32_t tokens) {
  for (uint32_t bucket : kTokenBuckets)
    if (tokens <= bucket) return bucket;
  return kMaxStepTokens;
}

uint32_t output_bucket(uint32_t outputs, uint32_t tokens) {
  if (outputs == 0) return 0;
  const uint32_t bucket = outputs == 1 ? 1 : outputs <= 8 ? 8 : tokens;
  return std::min(bucket, tokens);
}

namespace {

// Makes calls with the operands that all of a step's calls share.
struct Builder {
  const Arch& arch;
  const Shape& s;
  const StepBuffers& b;
  const StepKey& key;
  GretaGraph& graph;

  Slice rows(uint64_t width, uint32_t count) { return graph.temporary(count * width * sizeof(float)); }
  Slice rows(uint64_t width) { return rows(width, key.tokens); }

  Call call(Op op, const Slice& x, const Slice& y) const {
    Call c;
    c.op = op;
    c.slot[kX] = x;
    c.slot[kY] = y;
    c.slot[kStep] = b.step;
    return c;
  }
  Call norm(const Tensor& gain, const Slice& x, const Slice& y) const {
    Call c = call(Op::Norm, x, y);
    c.weight = gain;
    c.width = s.width;
    c.heads = 1;
    c.epsilon = s.epsilon;
    return c;
  }
  Call matmul(const Tensor& weight, const Slice& x, const Slice& y) const {
    Call c = call(Op::Matmul, x, y);
    c.weight = weight;
    return c;
  }
  Call rope(const Slice& x, uint32_t heads) const {
    Call c = call(Op::Rope, x, x);
    c.slot[kTable] = b.rope;
    c.heads = heads;
    c.width = s.key_width;
    c.rope_width = s.rope_width;
    c.rope_halves = arch.rope == Rope::Halves;
    return c;
  }
  Call kv_write(const Slice& x, const Slice& pool, uint32_t width, uint32_t page_bytes, uint32_t type) const {
    Call c = call(Op::KvWrite, x, {});
    c.slot[kPool] = pool;
    c.heads = s.kv_heads;
    c.width = width;
    c.page_bytes = page_bytes;
    c.cache_type = type;
    return c;
  }
  Call attention(const Slice& q, const Slice& y, const StepBuffers::Cache& cache) const {
    Call c = call(Op::Attention, q, y);
    c.slot[kPool] = cache.keys;
    c.slot[kPool2] = cache.values;
    c.heads = s.heads;
    c.kv_heads = s.kv_heads;
    c.width = s.key_width;
    c.value_width = s.value_width;
    c.page_bytes = b.key_page_bytes;
    c.value_page_bytes = b.value_page_bytes;
    c.cache_type = b.key_type;
    c.value_cache_type = b.value_type;
    c.scale = 1.0f / std::sqrt(float(s.key_width));
    return c;
  }
  Call gate(const Slice& gate, const Slice& up) const {
    Call c = call(Op::Gate, gate, gate);
    c.slot[kX2] = up;
    c.width = s.ffn_width;
    c.activation = uint32_t(arch.activation);
    return c;
  }
  Call add(const Slice& residual, const Slice& x) const {
    Call c = call(Op::Add, residual, residual);
    c.slot[kX2] = x;
    c.width = s.width;
    return c;
  }
  Status emit(std::initializer_list<Call> calls) {
    return graph.add({calls.begin(), calls.size()}, key.tokens);
  }

  // h += attention(norm(h)): two barriers and one for the residual in decode.
  Status attention_block(const Layer& layer, const StepBuffers::Cache& cache, const Slice& h) {
    const Slice normed = rows(s.width);
    const Slice q = rows(uint64_t(s.heads) * s.key_width), k = rows(uint64_t(s.kv_heads) * s.key_width);
    const Slice v = rows(uint64_t(s.kv_heads) * s.value_width);
    const Slice attended = rows(uint64_t(s.heads) * s.value_width), projected = rows(s.width);
    const Call n = norm(layer.attention_norm, h, normed);
    GRETA_TRY(emit({n, matmul(layer.query, normed, q), rope(q, s.heads)}));
    GRETA_TRY(emit({n, matmul(layer.key, normed, k), rope(k, s.kv_heads),
                    kv_write(k, cache.keys, s.key_width, b.key_page_bytes, b.key_type)}));
    GRETA_TRY(emit({n, matmul(layer.value, normed, v),
                    kv_write(v, cache.values, s.value_width, b.value_page_bytes, b.value_type)}));
    GRETA_TRY(emit({attention(q, attended, cache)}));
    return emit({matmul(layer.attention_output, attended, projected), add(h, projected)});
  }

  // h += down(activation(gate(norm(h))) * up(norm(h)))
  Status ffn_block(const Layer& layer, const Slice& h) {
    const Slice normed = rows(s.width), g = rows(s.ffn_width), u = rows(s.ffn_width), d = rows(s.width);
    GRETA_TRY(emit({norm(layer.ffn_norm, h, normed), matmul(layer.gate, normed, g), matmul(layer.up, normed, u),
                    gate(g, u)}));
    return emit({matmul(layer.down, g, d), add(h, d)});
  }

  // Logits of the output rows only: nobody asked for the others.
  Status head(const Weights& weights, const Slice& h) {
    const Slice normed = rows(s.width, key.outputs), logits = rows(s.vocab, key.outputs);
    Call n = norm(weights.output_norm, h, normed);
    n.rows_of = kRowsGather;
    Call m = matmul(weights.tied ? weights.token_embedding : weights.output, normed, logits);
    m.rows_of = kRowsOutputs;
    const Call both[] = {n, m};
    GRETA_TRY(graph.add(both, key.outputs));
    if (key.sample) {
      Call c = call(Op::Sample, logits, {});
      c.slot[kLog] = b.token_log;
      c.slot[kScratch] = graph.temporary(uint64_t(key.outputs) * s.vocab * 8);
      c.vocab = s.vocab;
      return graph.add({&c, 1}, key.outputs);
    }
    return graph.copy({b.readback.buffer, b.readback.offset, logits.bytes}, logits);
  }
};

}  // namespace

Status build_step(const Arch& arch, const Shape& shape, const Weights& weights, const StepBuffers& buffers,
                  const StepKey& key, GretaGraph* graph) {
  Builder builder{arch, shape, buffers, key, *graph};
  const Slice h = builder.rows(shape.width);  // the residual stream
  Call embed = builder.call(Op::Embed, {}, h);
  embed.weight = weights.token_embedding;
  embed.slot[kLog] = buffers.token_log;
  embed.width = shape.width;
  embed.vocab = shape.vocab;
  GRETA_TRY(builder.emit({embed}));
  for (uint32_t l = 0; l < shape.layers; ++l) {
    GRETA_TRY(builder.attention_block(weights.layers[l], buffers.cache[l], h));
    GRETA_TRY(builder.ffn_block(weights.layers[l], h));
  }
  if (key.outputs) GRETA_TRY(builder.head(weights, h));
  return graph->finish();
}

}  // namespace greta
