// Adds the calls of a graph of greta_compute.h to its plan, with those in one launch that a kernel covers
// together.
#pragma once
#include <functional>
#include <vector>

#include "graph/graph.h"
#include "graph/hazards.h"

namespace greta {

// A call, or a copy if `call` has no operands.
struct GraphCall {
  Call call;
  uint32_t bucket = 0;  // 0: a copy
  Slice to = {}, from = {};
};

// Calls are joined that follow each other directly, where what lies between them is a temporary that no later
// call reads. A norm that only products read goes before each of them.
class Fusing {
 public:
  using IsTemporary = std::function<bool(const Slice&)>;
  Fusing(std::span<const GraphCall> calls, IsTemporary is_temporary)
      : calls_(calls), is_temporary_(std::move(is_temporary)), held_(calls.size()) {}
  Status add_to(GretaGraph& plan);

 private:
  bool is_norm_of_products(size_t i) const;
  bool is_lost_by(size_t maker, size_t last) const;
  const Call* held_norm_of(size_t i) const;
  size_t longest_run(size_t first, const GretaGraph& plan, std::vector<Call>* out) const;

  std::span<const GraphCall> calls_;
  IsTemporary is_temporary_;
  std::vector<bool> held_;  // norms that go before their readers
};

}  // namespace greta
