// How single ops run: which kernels, in which order, with how much scratch. That is planned once for each
// kind of call, by GretaGraph, and launched with the operands of each call.
#pragma once
#include <array>
#include <mutex>
#include <unordered_map>

#include "api/handles.h"
#include "graph/graph.h"
#include "graph/hazards.h"

namespace greta {

class Memories;
struct BufferObject;
struct StreamObject;

// The memory of a call's operands, by Slot; behind them that of its weight.
constexpr uint32_t kWeightOperand = kSlotCount, kOperands = kSlotCount + 1;
using Operands = std::array<Slice, kOperands>;

// Whether some kernels of an op share results by counters.
bool takes_counters(Op op);
// Gives a call that wants working memory a temporary of the graph.
void give_scratch(Call& call, uint32_t bucket, GretaGraph& graph);

// The plan of a kind of call. It does not change.
struct Recipe {
  Call call;  // whose operands stand for any memory
  uint32_t bucket;
  std::unique_ptr<GretaGraph> graph;
  uint64_t scratch_bytes() const { return graph->arena_bytes(); }
};

// The recipes of a compute. It is thread-safe; kernels are compiled when a kind of call comes first. Of more
// than kMost kinds the one that was used longest ago is forgotten, and planned again when it comes again; its
// kernels stay compiled.
class Recipes {
 public:
  static constexpr size_t kMost = 1024;
  Recipes(greta_runtime& runtime, RuntimeDevice& on, Memories& memories);
  ~Recipes();

  const RowFilter& filter() const { return filter_; }
  // Finds the recipe for such calls over `bucket` rows, or plans it. Of the call's slices only counts whether
  // they are there. Fails with Code::Unsupported, and a sentence, where no kernel does it.
  Status find(const Call& call, uint32_t bucket, std::shared_ptr<const Recipe>* out);
  size_t count();  // that are kept
  // Gives a plan its memory, and compiles its kernels.
  Status bind(GretaGraph& graph, const Slice& arena);
  // What kernels know of their rows. Products ask how many of them live; other ops run over the rows of their
  // grid, where row t has token t and position t.
  Status live_rows(uint32_t count, Slice* out);
  Status numbered_rows(Slice* out);
  // Records the launches, and what order they need. The scratch has recipe.scratch_bytes().
  Status record(const Recipe& recipe, const Operands& operands, const Slice& scratch, uint32_t rows,
                StreamObject& stream) const;

 private:
  struct Kept {
    std::shared_ptr<const Recipe> recipe;
    uint64_t used = 0;  // when it was used last, as uses_ counts
  };
  Status plan(const Call& call, uint32_t bucket, std::shared_ptr<const Recipe>* out);
  void forget_one();
  Status make_rows();
  Slice actual(const Slice& planned, const Operands& operands, const Slice& scratch) const;

  RuntimeDevice& on_;
  const RowFilter filter_;
  const Log log_;
  const Spans& spans_;
  Memories& memories_;
  Buffer operands_, arena_;  // stand for the memory of a call
  std::mutex mutex_;         // of what follows
  KernelSet kernels_;
  std::unordered_multimap<uint64_t, Kept> recipes_;
  uint64_t uses_ = 0;
  std::unique_ptr<BufferObject> rows_;
};

}  // namespace greta
