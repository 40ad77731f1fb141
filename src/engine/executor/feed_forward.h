// What follows attention in a layer: a dense block or experts, which may be on another device; and the copies
// of what crosses between segments.
#pragma once
#include "engine/executor/step_builder.h"

namespace greta {

struct FeedForward : StepBuilder {
  // h += what the dense block makes of it. The calls `before` make x, where that is not its norm.
  Status ffn_block(const Layer& layer, const Slice& h);
  Status ffn_block(const Layer& layer, const Calls& before, const Slice& x, const Slice& h);
  // h += what experts make of it, and the shared expert. `arrived` is what those have made that are on
  // another device, or null.
  Status expert_block(const Layer& layer, const Slice& h, const Slice* arrived);
  // Experts and a dense block beside each other, each between norms of its own, and a norm behind their sum.
  Status beside_block(const Layer& layer, const Slice& h, const Slice* arrived);
  // Writes what experts on another device read. Norms are written by themselves, since they go there, too.
  Status choose_for_others(const Layer& layer, const Slice& h);
  // The segment of a step that runs where the experts of a layer are.
  Status experts_alone(const Layer& layer);

  // Copies to the host's memory, one behind the other, or from there.
  Status send(std::initializer_list<Slice> parts);
  Status receive(std::initializer_list<Slice> parts);

 private:
  // A matrix and its bias.
  struct Linear {
    const ScaledTensor& weight;
    Tensor bias = {};
  };
  // What a layer's experts read: x, which of them each token has, and with which weights.
  struct Chosen {
    Slice x, ids, weights;
  };
  Status dense(Calls before, const Linear& to_gate, const Linear& to_up, const Linear& down, const Slice& x,
               const Slice& y, Calls* last);
  Chosen chosen_rows();
  Status choose(const Layer& layer, Calls before, const Slice& by, const Chosen& to);
  Status experts(const Layer& layer, const Calls& before, const Chosen& chosen, const Slice& y, Calls* last);
  Status add_shared(const Layer& layer, const Calls& before, const Calls& routed, const Slice& x,
                    const Slice& y, const Slice& h);
};

}  // namespace greta
