// The feed-forward blocks of a layer: dense, and of experts.
#include "engine/executor/feed_forward.h"

namespace greta {

// Computes y = down(activation(gate(x)) * up(x)). It emits all calls but those of down, which `*last` gets.
Status FeedForward::dense(Calls before, const Linear& to_gate, const Linear& to_up, const Linear& down,
                          const Slice& x, const Slice& y, Calls* last) {
  if (!there(to_gate.weight)) {
    const Slice u = rows(to_up.weight.n);
    before += matmul(to_up.weight, x, u, to_up.bias);
    GRETA_TRY(emit(before += activate(u, to_up.weight.n)));
    *last = matmul(down.weight, u, y, down.bias);
    return {};
  }
  const uint32_t hidden = to_gate.weight.n;
  const Slice g = rows(hidden), u = rows(hidden);
  if (!adapters().empty()) {  // what they add to both is made side by side
    GRETA_TRY(emit(std::exchange(before, {})));
    const Call both = gate(g, u, hidden);
    const Calls gates = matmul(to_gate.weight, x, g, to_gate.bias),
                ups = matmul(to_up.weight, x, u, to_up.bias);
    GRETA_TRY(emit_beside({gates, ups}, both, &before));
    GRETA_TRY(emit(before += both));
    *last = matmul(down.weight, g, y, down.bias);
    return {};
  }
  before += matmul(to_gate.weight, x, g, to_gate.bias);
  before += matmul(to_up.weight, x, u, to_up.bias);
  GRETA_TRY(emit(before += gate(g, u, hidden)));
  *last = matmul(down.weight, g, y, down.bias);
  return {};
}

Status FeedForward::ffn_block(const Layer& layer, const Slice& h) {
  Slice x;
  const Calls before = enter(layer.ffn_norm, h, &x, layer.ffn_norm_bias);
  return ffn_block(layer, before, x, h);
}
Status FeedForward::ffn_block(const Layer& layer, const Calls& before, const Slice& x, const Slice& h) {
  const Slice y = rows(s.width);
  Calls last;
  GRETA_TRY(dense(before, {layer.gate, layer.gate_bias}, {layer.up, layer.up_bias},
                  {layer.down, layer.down_bias}, x, y, &last));
  graph.name_part("gate up");
  return leave(last, layer.post_ffn_norm, y, h);
}

FeedForward::Chosen FeedForward::chosen_rows() {
  const Experts& e = s.experts;
  return {rows(s.width), rows(e.used), rows(e.used)};
}

// Chooses the experts of each token by `by`, which the calls `before` make.
Status FeedForward::choose(const Layer& layer, Calls before, const Slice& by, const Chosen& to) {
  const Experts& e = s.experts;
  const Slice logits = rows(e.count);
  before += matmul(layer.router, by, logits, layer.router_bias);
  before += make.route(logits, to.ids, to.weights, {e.count, e.used},
                       {e.normalise, e.gating, e.groups, e.groups_used, e.scale}, layer.choice_bias.slice);
  GRETA_TRY(emit(before));
  graph.name_part("router");
  return {};
}

// Computes y of the chosen experts: the sum of their results by their weights. The calls `before` make x.
// It emits all calls but those that *last gets.
Status FeedForward::experts(const Layer& layer, const Calls& before, const Chosen& chosen, const Slice& y,
                            Calls* last) {
  const Experts& e = s.experts;
  const uint64_t slots = uint64_t(e.used) * e.width;
  const auto& [x, ids, weights] = chosen;
  const Slice u = rows(slots);
  const bool gates = there(layer.expert_gate);
  const Slice g = gates ? rows(slots) : u;
  const Slice d = rows(uint64_t(e.used) * s.width);
  Calls gated = before;
  Slice input = x;
  if (arch.scale_inputs) {
    input = rows(s.width);
    Call scaled = make.multiply(weights, x, input, {1, s.width}, kFactorItself);
    scaled.multiply.each_head = true;
    GRETA_TRY(emit(std::exchange(gated, {}) += scaled));
  }
  if (gates) gated += matmul_each(layer.expert_gate, input, ids, g, 1, layer.expert_gate_bias);
  gated += matmul_each(layer.expert_up, input, ids, u, 1, layer.expert_up_bias);
  GRETA_TRY(emit(gated += gates ? gate(g, u, uint32_t(slots)) : activate(u, uint32_t(slots))));
  graph.name_part("experts gate up");
  // Some architectures have factors of the experts' results, which adapters are a part of. Here they become
  // factors of the experts' weights, of which there are fewer.
  const bool scales_results = arch.tensors.router_gain.text && there(layer.expert_down.scale);
  if (scales_results) {
    const Slice factors = layer.expert_down.scale.slice;
    GRETA_TRY(emit({make.scale_each(weights, factors, {}, e.used, ids, {e.count, e.used})}));
  }
  *last = matmul_each(layer.expert_down, g, ids, d, e.used, layer.expert_down_bias, !scales_results);
  *last += make.combine(d, arch.scale_inputs ? b.ones : weights, y, s.width, e.used);
  return {};
}

// Writes what experts on another device read. Norms are written by themselves, since they go there, too.
Status FeedForward::choose_for_others(const Layer& layer, const Slice& h) {
  Chosen chosen = chosen_rows();
  Slice by;
  if (arch.experts_beside) {
    const Calls before = enter(layer.router_gain, h, &by);
    GRETA_TRY(choose(layer, before, by, chosen));
    GRETA_TRY(emit(enter(layer.expert_norm, h, &chosen.x)));
  } else {
    GRETA_TRY(emit(enter(layer.ffn_norm, h, &chosen.x, layer.ffn_norm_bias)));
    GRETA_TRY(choose(layer, {}, chosen.x, chosen));
  }
  return send({chosen.x, chosen.ids, chosen.weights});
}
// The part of a step that runs where the experts of a layer are.
Status FeedForward::experts_alone(const Layer& layer) {
  const Chosen chosen = chosen_rows();
  const Slice y = rows(s.width);
  Calls last;
  GRETA_TRY(receive({chosen.x, chosen.ids, chosen.weights}));
  GRETA_TRY(experts(layer, {}, chosen, y, &last));
  GRETA_TRY(emit(last));
  graph.name_part("experts down");
  return send({y});
}
Status FeedForward::send(std::initializer_list<Slice> parts) {
  uint64_t at = 0;
  for (const Slice& part : parts) {
    GRETA_TRY(graph.copy({b.leaves.buffer, b.leaves.offset + at, part.bytes}, part));
    at += part.bytes;
  }
  graph.name_part("crossing");
  return {};
}
Status FeedForward::receive(std::initializer_list<Slice> parts) {
  uint64_t at = 0;
  for (const Slice& part : parts) {
    GRETA_TRY(graph.copy(part, {b.arrives.buffer, b.arrives.offset + at, part.bytes}));
    at += part.bytes;
  }
  graph.name_part("crossing");
  return {};
}

// Experts and a dense block beside each other, each between norms of its own, and a norm behind their sum.
// `arrived` is what experts on another device have made, or null.
Status FeedForward::beside_block(const Layer& layer, const Slice& h, const Slice* arrived) {
  const Slice y = rows(s.width);
  Slice x, by;
  Calls down, last;
  const Calls before = enter(layer.ffn_norm, h, &x);
  GRETA_TRY(dense(before, {layer.gate, layer.gate_bias}, {layer.up, layer.up_bias},
                  {layer.down, layer.down_bias}, x, y, &down));
  graph.name_part("gate up");
  const Slice made = arrived ? *arrived : rows(s.width);
  if (!arrived) {
    Chosen chosen = {{}, rows(s.experts.used), rows(s.experts.used)};
    const Calls route_before = enter(layer.router_gain, h, &by);
    GRETA_TRY(choose(layer, route_before, by, chosen));
    const Calls norm_before = enter(layer.expert_norm, h, &chosen.x);
    GRETA_TRY(experts(layer, norm_before, chosen, made, &last));
  }
  GRETA_TRY(emit(down));  // beside the experts' products
  graph.name_part("down");
  GRETA_TRY(emit(last));
  last = {norm(layer.post_dense_norm, y, y), norm(layer.post_expert_norm, made, made), add(y, made, 1)};
  return leave(last, layer.post_ffn_norm, y, h);
}

Status FeedForward::expert_block(const Layer& layer, const Slice& h, const Slice* arrived) {
  Slice x;
  const Calls before = enter(layer.ffn_norm, h, &x, layer.ffn_norm_bias);
  const Slice y = arrived ? *arrived : rows(s.width);
  Calls routed;
  if (!arrived) {
    const Chosen chosen = {x, rows(s.experts.used), rows(s.experts.used)};
    GRETA_TRY(choose(layer, before, x, chosen));
    GRETA_TRY(experts(layer, before, chosen, y, &routed));
  }
  if (!there(layer.shared_down)) return leave(routed, layer.post_ffn_norm, y, h);
  return add_shared(layer, before, routed, x, y, h);
}

// Adds to the residual what experts have made, which the calls `routed` make in y, and the shared expert.
Status FeedForward::add_shared(const Layer& layer, const Calls& before, const Calls& routed, const Slice& x,
                               const Slice& y, const Slice& h) {
  const Slice shared = rows(s.width);
  Calls last;
  GRETA_TRY(dense(before, {layer.shared_gate}, {layer.shared_up}, {layer.shared_down}, x, shared, &last));
  graph.name_part("shared gate up");
  if (there(layer.shared_router)) {  // the shared expert has a weight of its own, from 0 to 1
    const Slice logit = rows(1), id = rows(1), weight = rows(1), weighted = rows(s.width);
    Calls weigh = before;
    weigh += matmul(layer.shared_router, x, logit);
    weigh += make.route(logit, id, weight, {1, 1}, {.gating = kGatingSigmoid});
    GRETA_TRY(emit(weigh));  // before h, of which `before` makes x, changes
    GRETA_TRY(leave(routed, {}, y, h));
    graph.name_part("experts down");
    GRETA_TRY(emit(last));
    GRETA_TRY(leave({make.combine(shared, weight, weighted, s.width, 1)}, {}, weighted, h));
    graph.name_part("shared down");
    return {};
  }
  const bool norms = there(layer.post_ffn_norm);
  GRETA_TRY(norms ? emit(routed) : leave(routed, {}, y, h));
  graph.name_part("experts down");
  GRETA_TRY(norms ? leave(last += add(y, shared, 1), layer.post_ffn_norm, y, h) : leave(last, {}, shared, h));
  graph.name_part("shared down");
  return {};
}

}  // namespace greta
