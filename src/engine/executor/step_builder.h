// What the blocks of a layer are written with: sequences of calls, and the operands that all calls of a step
// share.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "engine/adapter/adapter.h"
#include "engine/executor/transformer.h"
#include "engine/model/weight_parts.h"

namespace greta {

// A sequence of calls that may be fused with their neighbours.
class Calls {
 public:
  Calls() = default;
  Calls(std::initializer_list<Call> calls) : calls_(calls) {}
  Calls& operator+=(const Call& call) {
    calls_.push_back(call);
    return *this;
  }
  Calls& operator+=(const Calls& calls) {
    calls_.insert(calls_.end(), calls.calls_.begin(), calls.calls_.end());
    return *this;
  }
  std::span<const Call> all() const { return calls_; }

 private:
  std::vector<Call> calls_;
};

// Makes calls with the operands that all of a step's calls share.
struct StepBuilder {
  const Arch& arch;
  const Shape& s;
  const StepBuffers& b;
  const StepKey& key;
  GretaGraph& graph;
  CallMaker make{b.step_of(0), b.counters};  // by it calls find the rows, and pages of a group
  Xielu xielu = {};                          // of the layer that is made
  Calls behind = {};                         // what follows the next block's residual

  Slice rows(uint64_t width, uint32_t count) const { return graph.temporary(count * width * sizeof(float)); }
  Slice rows(uint64_t width) const { return rows(width, key.tokens); }

  Call norm(const Tensor& gain, const Slice& x, const Slice& y, uint32_t heads = 1) const {
    return make.norm(gain, x, y, s.epsilon, heads);
  }
  // The norm of what a block adds.
  Call post_norm(const Tensor& gain, const Slice& x) const {
    return make.norm(gain, x, x, s.post_epsilon, 1);
  }
  // The norm of whole rows of the residual stream.
  Call row_norm(const Tensor& gain, const Tensor& bias, const Slice& x, const Slice& y) const {
    return arch.layer_norm ? make.layer_norm(gain, bias.slice, x, y, {1, s.width}, s.epsilon)
                           : norm(gain, x, y);
  }
  Call head_norm(const Tensor& gain, const Slice& x, uint32_t heads, uint32_t width) const {
    if (arch.layer_norm) return make.layer_norm(gain, {}, x, x, {heads, width}, s.epsilon);
    return norm(gain, x, x, arch.norm_all_heads ? 1 : heads);
  }
  // A norm without a gain.
  Call norm_alone(const Slice& x, const Slice& y, uint32_t width, uint32_t heads) const {
    Call c = norm({QuantType::f32, Layout::Gguf, 1, width, 1, b.ones}, x, y, heads);
    c.norm.alone = true;
    return c;
  }
  // A product, and what follows it where the file has a factor for it.
  Calls product(const ScaledTensor& weight, const Slice& x, const Slice& y, const Tensor& bias = {}) const {
    if (!there(weight.scale)) return {make.matmul(weight, x, y, bias.slice)};
    return {make.matmul(weight, x, y), make.scale(y, weight.scale.slice, bias.slice, weight.n)};
  }
  // The same with what adapters add to it.
  Calls matmul(const ScaledTensor& weight, const Slice& x, const Slice& y, const Tensor& bias = {}) const {
    return product(weight, x, y, bias) += low_rank(weight, x, y);
  }
  // The same with the matrices of experts. x has a slot for each of a token's experts, or one for all.
  // Adapters are found by the tensor's address.
  Calls matmul_each(const ScaledTensor& weight, const Slice& x, const Slice& ids, const Slice& y,
                    uint32_t x_slots, const Tensor& bias, bool scales = true) const {
    const uint32_t used = s.experts.used;
    Call product = make.matmul_each(weight, x, ids, y, used, x_slots);
    const Calls more = low_rank_each(weight, x, ids, y, x_slots);
    if (scales && there(weight.scale)) {
      const Call scaled =
          make.scale_each(y, weight.scale.slice, bias.slice, used * weight.n, ids, {weight.count, used});
      // The factor belongs to the numbers that a file has for its weights, and not to those of adapters.
      return Calls{product, scaled} += more;
    }
    product.slot[kBias] = bias.slice;
    return Calls{product} += more;
  }
  // What adapters do (low_rank.cpp). They add to y, the product of a weight and x; to the embeddings; to the
  // residual behind a layer; and to logits, which are made from h.
  std::span<const std::shared_ptr<const Adapter>> adapters() const { return b.adapters; }
  Calls low_rank(const Tensor& weight, const Slice& x, const Slice& y) const;
  Calls low_rank_each(const Tensor& weight, const Slice& x, const Slice& ids, const Slice& y,
                      uint32_t x_slots) const;
  Calls onto_residual(const Calls& product, const Slice& x, const Slice& h) const;
  Status add_to_embeddings(const Slice& h);
  Status add_directions(uint32_t layer, const Slice& h);
  Status add_to_logits(const Weights& weights, const Slice& h, const Slice& logits);
  Call gate(const Slice& gate, const Slice& up, uint32_t width) const {
    return make.gate(gate, up, gate, width, uint32_t(arch.activation));
  }
  // The activation of a block without a gate, in place.
  Call activate(const Slice& x, uint32_t width) const {
    Call c = make.multiply(x, x, x, {1, width}, uint32_t(arch.ungated));
    c.multiply.xielu = xielu;
    return c;
  }
  Call add(const Slice& to, const Slice& x, float scale) const { return make.add(to, x, to, s.width, scale); }
  Status emit(const Calls& calls) { return emit(calls.all(), key.tokens); }
  Status emit(std::span<const Call> calls, uint32_t bucket) {
    const auto cut =
        std::ranges::find_if(calls, [](const Call& call) { return call.weight.parts != nullptr; });
    const size_t before = size_t(cut - calls.begin());
    GRETA_TRY(graph.add(calls.first(before), bucket));
    if (before == calls.size()) return {};
    GRETA_TRY(add_parts(*cut, bucket, &graph));
    return emit(calls.subspan(before + 1), bucket);
  }
  // Emits sequences that do not need each other's results. *last gets those calls that may be fused with the
  // call `next`, which reads them.
  Status emit_beside(std::initializer_list<Calls> each, const Call& next, Calls* last) {
    std::vector<std::span<const Call>> sequences;
    for (const Calls& calls : each) sequences.push_back(calls.all());
    const auto in_parts = [](const Calls& calls) {
      return std::ranges::any_of(calls.all(), [](const Call& call) { return call.weight.parts != nullptr; });
    };
    if (std::ranges::any_of(each, in_parts)) {
      for (const Calls& calls : each) GRETA_TRY(emit(calls));
      return {};
    }
    GRETA_TRY(graph.add_beside(sequences, next, key.tokens));
    for (const std::span<const Call> calls : sequences)
      for (const Call& call : calls) *last += call;
    return {};
  }

  // Gives the norm before a block, and sets *x to its result. Without a norm *x is h.
  Calls enter(const Tensor& gain, const Slice& h, Slice* x, const Tensor& bias = {}) {
    *x = h;
    if (!there(gain) && !arch.layer_norm) return {};
    *x = rows(s.width);
    return {row_norm(gain, bias, h, *x)};
  }
  // Adds a block's result to the residual: h += scale * norm(x). The calls `last` make x. The norm is left
  // out if the layer has none.
  Status leave(Calls last, const Tensor& gain, const Slice& x, const Slice& h) {
    if (there(gain)) last += post_norm(gain, x);
    const bool alone = !there(gain) && !adapters().empty() && last.all().front().op == Op::Matmul;
    last = alone ? onto_residual(last, x, h) : last += add(h, x, s.residual_scale);
    return emit(last += std::exchange(behind, {}));
  }
};

// The values of a slice from one of them on.
inline Slice from_value(const Slice& slice, uint64_t first) {
  return {slice.buffer, slice.offset + first * sizeof(float), slice.bytes - first * sizeof(float)};
}

// Normalises h, the embeddings of the tokens, where the architecture does.
Status norm_embeddings(StepBuilder& builder, const Weights& weights, const Slice& h);
// Adds the embeddings of positions (Shape::positions) to h, the embeddings of the tokens.
Status add_positions(StepBuilder& builder, const Slice& h);

// Makes what layers read of their own embeddings (Shape::layer_embedding), from h, the embeddings of the
// tokens: *out gets [tokens][layers][layer_embedding] values.
Status make_layer_inputs(StepBuilder& builder, const Weights& weights, const Slice& h, Slice* out);
// The last block of a layer: h += what it makes of h and its own embedding.
Status add_layer_input(StepBuilder& builder, const Layer& layer, uint32_t index, const Slice& inputs,
                       const Slice& h);

// A block that keeps a state of each sequence (Arch::recurrence): h += what it makes of x, which the calls
// `before` make.
Status add_recurrence(StepBuilder& builder, const Layer& layer, const StepBuffers::Cache& cache,
                      const Calls& before, const Slice& x, const Slice& h);
// Makes the states of layers anew of what the step before has kept. What the layers make beside is dropped.
Status add_replay(StepBuilder& builder, const Weights& weights, std::span<const uint32_t> layers);

}  // namespace greta
