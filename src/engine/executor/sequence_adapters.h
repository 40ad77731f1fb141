// The adapters of an executor's sequences: which of them a step has, with which scale for each row.
#pragma once
#include <memory>

#include "engine/executor/step_plans.h"

namespace greta {

class SequenceAdapters {
 public:
  SequenceAdapters(const Model& model, ExecutorDevices& on, StepPlans& plans, const Flights& flights,
                   const ExecutorOptions& options, const ExecutorPlan& plan);

  // The adapters of a sequence's next rows; null: none. The memory for the largest step with them is there
  // when this returns.
  Status set(uint32_t sequence, std::shared_ptr<const AdapterList> adapters);
  const std::shared_ptr<const AdapterList>& of(uint32_t sequence) const { return adapters_[sequence]; }
  void release(uint32_t sequence) { adapters_[sequence] = nullptr; }
  uint64_t bytes(uint32_t device) const;  // what adapters have made the executor allocate there

  // Finds out which adapters the rows have.
  Status find(std::span<const TokenRow> rows, StepKey* key);
  // Uploads the scales of these rows and the number of output rows, unless the devices have them.
  Status upload(const StepKey& key, uint32_t outputs);
  void forget_uploads() { scales_there_.clear(); }

 private:
  Status allocate_scales(uint32_t device);

  const Model& model_;
  ExecutorDevices& on_;
  StepPlans& plans_;
  const Flights& flights_;
  const ExecutorOptions& options_;
  const ExecutorPlan& plan_;
  std::vector<std::shared_ptr<const AdapterList>> adapters_;  // by sequence
  std::vector<float> scales_, scales_there_;  // of the step's rows for its adapters; as the devices have them
  uint32_t outputs_there_ = 0;
};

}  // namespace greta
