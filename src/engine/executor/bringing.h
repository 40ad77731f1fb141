// Steps that bring experts to their layers' devices, and from how many tokens on that is faster.
#pragma once
#include "engine/executor/step_plans.h"
#include "engine/executor/step_upload.h"

namespace greta {

class Bringing {
 public:
  // `plan` is told if it turns out that no step should.
  Bringing(Model& model, ExecutorDevices& on, StepPlans& plans, StepUpload& upload, ExecutorPlan& plan)
      : model_(model), on_(on), plans_(plans), upload_(upload), plan_(plan) {}
  Status open();

  // Whether a step of so many rows brings experts that are apart to their layers, if it has no adapters.
  bool at(size_t rows) const { return plan_.brings && rows >= from_; }
  // Begins to load what the first of these segments that brings experts needs.
  Status begin(std::span<const Segment> segments);
  Status finish(const Segment& segment);  // waits until its experts are there

 private:
  Status measure();
  Status time_experts(const Segment& segment, const Weights& weights, uint32_t tokens, uint64_t* ns);

  Model& model_;
  ExecutorDevices& on_;
  StepPlans& plans_;
  StepUpload& upload_;
  ExecutorPlan& plan_;
  uint32_t from_ = kNeverBring;  // Model::bring_from, or as measured
};

}  // namespace greta
