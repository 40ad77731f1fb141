// What is added to the embeddings of tokens, and embeddings for each layer, as Gemma 3n introduced them: a
// layer adds what a gate lets through of an embedding that it alone has of the token. Half of that is a row
// of a table, half is made of the token's first embedding.
#include <cmath>

#include "engine/executor/step_builder.h"

namespace greta {

uint64_t ones_values(const Arch& arch, const Shape& shape, uint32_t tokens) {
  uint64_t values = uint64_t(shape.layer_embedding) * tokens;
  if (shape.positions) values = std::max(values, uint64_t(shape.width) * tokens);
  if (arch.norm_embedding) values = std::max<uint64_t>(values, shape.width);
  if (arch.scale_inputs) values = std::max<uint64_t>(values, tokens);
  for (const LayerShape& layer : shape.each) {
    if (arch.norm_values) values = std::max<uint64_t>(values, layer.value_width);
    if (layer.norm_heads) values = std::max<uint64_t>(values, layer.own_keys());
    values = std::max<uint64_t>(values, uint64_t(tokens) * layer.heads * layer.marks);
  }
  return values;
}

Status norm_embeddings(StepBuilder& builder, const Weights& weights, const Slice& h) {
  if (builder.arch.norm_embedding) return builder.emit({builder.norm_alone(h, h, builder.s.width, 1)});
  if (!there(weights.embedding_norm)) return {};
  return builder.emit({builder.row_norm(weights.embedding_norm, weights.embedding_norm_bias, h, h)});
}

Status add_positions(StepBuilder& builder, const Slice& h) {
  const Shape& s = builder.s;
  const Slice embedding = builder.rows(s.width);
  Call turn = builder.make.rope(builder.b.ones, {1, s.width}, {builder.b.rope[0], s.width, 0});
  turn.slot[kY] = embedding;
  return builder.emit({turn, builder.add(h, embedding, 1)});
}

// The halves add up to (row * sqrt(values of a layer) + norm(projection / sqrt(width))) / sqrt(2). The norm
// takes the divisor out again, but for its epsilon.
Status make_layer_inputs(StepBuilder& builder, const Weights& weights, const Slice& h, Slice* out) {
  const Shape& s = builder.s;
  const uint32_t each = s.layer_embedding, all = s.layers * each;
  const Slice projected = builder.rows(all);
  *out = builder.rows(all);
  const float half = std::sqrt(0.5f);
  GRETA_TRY(builder.emit(
      {builder.make.embed(weights.layer_embedding, *out, {}, half * std::sqrt(float(each)), s.vocab)}));
  Calls calls = builder.matmul(weights.layer_projection, h, projected);
  calls += builder.make.norm(weights.layer_projection_norm, projected, projected, s.epsilon * float(s.width),
                             s.layers);
  return builder.emit(calls += builder.make.add(*out, projected, *out, all, half));
}

Status add_layer_input(StepBuilder& builder, const Layer& layer, uint32_t index, const Slice& inputs,
                       const Slice& h) {
  const Shape& s = builder.s;
  const uint32_t each = s.layer_embedding;
  const Slice gate = builder.rows(each), gated = builder.rows(each), y = builder.rows(s.width);
  Calls calls = builder.matmul(layer.layer_gate, h, gate);
  GRETA_TRY(builder.emit(calls += builder.gate(gate, builder.b.ones, each)));
  Call multiplied = builder.make.multiply(gate, from_value(inputs, uint64_t(index) * each), gated, {1, each},
                                          kFactorItself);
  multiplied.multiply.by_stride = s.layers * each;
  GRETA_TRY(builder.emit({multiplied}));
  return builder.leave(builder.matmul(layer.layer_up, gated, y), layer.layer_norm, y, h);
}

}  // namespace greta
