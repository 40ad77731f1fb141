// The plans of an executor's steps: one graph for each segment, made when the first step needs it.
#pragma once
#include <functional>
#include <memory>

#include "engine/executor/flights.h"
#include "engine/executor/sequences.h"

namespace greta {

struct PlannedStep {
  StepKey key;
  std::vector<std::unique_ptr<GretaGraph>> graphs;  // of each segment
  std::vector<bool> lone;  // by device: attention takes the step's first lone rows by themselves
};

class StepPlans {
 public:
  StepPlans(const Model& model, ExecutorDevices& on, const Sequences& sequences, Flights& flights,
            const ExecutorOptions& options, const ExecutorPlan& plan);

  std::span<const Segment> segments(const StepKey& key) const {
    return key.brings ? brought_segments_ : segments_;
  }
  std::span<const Segment> segments() const { return segments_; }  // of steps that bring no experts
  std::span<const Segment> brought_segments() const { return brought_segments_; }
  const Weights& weights(bool brings) const { return brings ? with_brought_ : model_.weights(); }
  void open_brought();  // there is room for experts that are brought

  Status find(const StepKey& key, const PlannedStep** out);
  Status make(const StepKey& key);
  bool empty() const { return plans_.empty(); }
  // Compiles the kernels of all steps. Their plans are made when a step needs them, which takes milliseconds.
  Status compile_ahead();
  // Compiles the kernels that `want` has asked for. Where the driver refuses some, it is asked again for
  // others.
  Status compile(const std::function<Status()>& want);

  using Adapters = std::vector<std::shared_ptr<const Adapter>>;
  // Gives the number of the set of these adapters. A new one takes the place of that which was not used for
  // longest, or of those with an adapter that was closed.
  //
  // scales  those that all rows have, as constants of the plans; empty: they are read of each row
  Status find_set(Adapters adapters, std::vector<float> scales, uint32_t* number);
  // Makes the arenas of steps with adapters large enough for a plan, which drops those that were made with
  // smaller ones.
  Status reserve_arena(const StepKey& key);

 private:
  struct AdapterSet {  // of the steps that have these adapters and no others
    uint32_t number;
    Adapters adapters;
    std::vector<float> same_scales;  // where these are constants of its plans: of all rows for each adapter
  };
  Status build(const StepKey& key, size_t segment, GretaGraph* graph);
  Progress compile_progress();
  void drop_plans(uint32_t set);
  void give_adapters(const StepKey& key, StepBuffers* to) const;

  const Model& model_;
  ExecutorDevices& on_;
  const Sequences& sequences_;
  Flights& flights_;
  const ExecutorOptions& options_;
  const ExecutorPlan& plan_;
  const std::vector<Segment> segments_;
  std::vector<Segment> brought_segments_;  // of steps that bring experts
  Weights with_brought_;                   // what these steps read
  std::vector<AdapterSet> sets_;           // the one that was used last comes last
  uint32_t last_set_ = 0;
  std::vector<PlannedStep> plans_;
};

}  // namespace greta
