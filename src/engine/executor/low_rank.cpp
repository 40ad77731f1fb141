// What adapters add to a step: products of low rank beside those of the weights, and the directions of
// control vectors. Every row is computed with each adapter of the step, and what it gets is multiplied by the
// row's scale, which is 0 for an adapter that the row does not have. Where all rows have the same scales,
// these may be constants of the plan (StepBuffers::same_scales).
#include "engine/executor/step_builder.h"

namespace greta {

// The scales of the rows for the index-th adapter of the step.
static Slice scales_of(const StepBuilder& builder, size_t index) {
  const uint64_t bytes = builder.key.tokens * sizeof(float);
  return {builder.b.scales.buffer, builder.b.scales.offset + index * bytes, bytes};
}

// Appends what makes *x of `low`, where each row is multiplied by its scale. Returns the factor by which the
// results have still to be multiplied.
static float scale_rows(const StepBuilder& builder, size_t index, float factor, const Slice& low,
                        uint32_t width, Calls* calls, Slice* x) {
  if (!builder.b.same_scales.empty()) {
    *x = low;
    return builder.b.same_scales[index] * factor;
  }
  if (factor != 1) *calls += builder.make.softcap(low, low, width, 0, factor);
  *x = builder.rows(width);
  *calls += builder.make.combine(low, scales_of(builder, index), *x, width, 1);
  return 1;
}

Calls StepBuilder::low_rank(const Tensor& weight, const Slice& x, const Slice& y) const {
  Calls calls;
  for (size_t i = 0; i < adapters().size(); ++i) {
    const LowRank* part = adapters()[i]->find(weight);
    if (!part) continue;
    const Slice low = rows(part->a.n), more = rows(weight.n);
    Slice scaled;
    calls += make.matmul(part->a, x, low);
    const float factor = scale_rows(*this, i, part->factor, low, part->a.n, &calls, &scaled);
    calls += make.matmul(part->b, scaled, more);
    calls += make.add(y, more, y, weight.n, factor);
  }
  return calls;
}

Calls StepBuilder::low_rank_each(const Tensor& weight, const Slice& x, const Slice& ids, const Slice& y,
                                 uint32_t x_slots) const {
  Calls calls;
  const uint32_t used = s.experts.used;
  for (size_t i = 0; i < adapters().size(); ++i) {
    const LowRank* part = adapters()[i]->find(weight);
    if (!part) continue;
    const Slice low = rows(used * uint64_t(part->a.n)), more = rows(used * uint64_t(weight.n));
    Slice scaled;
    calls += make.matmul_each(part->a, x, ids, low, used, x_slots);
    const float factor = scale_rows(*this, i, part->factor, low, used * part->a.n, &calls, &scaled);
    calls += make.matmul_each(part->b, scaled, ids, more, used, used);
    calls += make.add(y, more, y, used * weight.n, factor);
  }
  return calls;
}

// The residual takes the product and what adapters add to it one after the other: h += W x, and h += B A x.
Calls StepBuilder::onto_residual(const Calls& product, const Slice& x, const Slice& h) const {
  Calls calls;
  bool own = true;  // of the weight, before what adapters add
  for (Call call : product.all()) {
    const bool first_of_adapter = own && calls.all().size() && call.op == Op::Matmul;
    if (first_of_adapter) calls += add(h, x, s.residual_scale);
    own = own && !first_of_adapter;
    if (!own && call.op == Op::Add) call = add(h, call.slot[kX2], s.residual_scale * call.add.scale);
    calls += call;
  }
  return own ? calls += add(h, x, s.residual_scale) : calls;
}

Status StepBuilder::add_to_embeddings(const Slice& h) {
  for (size_t i = 0; i < adapters().size(); ++i) {
    const LowRank* part = adapters()[i]->embedding();
    if (!part) continue;
    const Slice low = rows(part->a.depth), more = rows(s.width);
    Slice scaled;
    Calls calls = {make.embed(part->a, low, {}, s.embedding_scale, s.vocab)};
    const float factor = scale_rows(*this, i, part->factor, low, part->a.depth, &calls, &scaled);
    calls += make.matmul(part->b, scaled, more);
    GRETA_TRY(emit(calls += make.add(h, more, h, s.width, factor)));
  }
  return {};
}

Status StepBuilder::add_directions(uint32_t layer, const Slice& h) {
  for (size_t i = 0; i < adapters().size(); ++i) {
    const Tensor* direction = adapters()[i]->direction(layer);
    if (!direction) continue;
    const Slice more = rows(s.width);
    GRETA_TRY(emit({make.matmul(*direction, scales_of(*this, i), more), make.add(h, more, h, s.width)}));
  }
  return {};
}

// The products of low rank are made for all rows, as scales are known for these. Only output rows go on.
Status StepBuilder::add_to_logits(const Weights& weights, const Slice& h, const Slice& logits) {
  const Tensor& weight = weights.tied ? weights.token_embedding : weights.output;
  Slice normed;
  for (size_t i = 0; i < adapters().size(); ++i) {
    const LowRank* part = adapters()[i]->find(weight);
    if (!part) continue;
    if (!normed.buffer) {
      normed = rows(s.width);
      GRETA_TRY(emit({row_norm(weights.output_norm, weights.output_norm_bias, h, normed)}));
    }
    const Slice low = rows(part->a.n), more = rows(s.vocab, key.outputs);
    Slice scaled;
    Calls calls = {make.matmul(part->a, normed, low)};
    const float factor = scale_rows(*this, i, part->factor, low, part->a.n, &calls, &scaled);
    GRETA_TRY(emit(calls));
    Call sum[] = {make.matmul(part->b, scaled, more), make.add(logits, more, logits, s.vocab, factor)};
    sum[0].rows_of = kRowsGather;
    sum[1].slot[kStep] = b.output_step;
    GRETA_TRY(graph.add(sum, key.outputs));
  }
  return {};
}

}  // namespace greta
