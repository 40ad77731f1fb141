// What an executor has on each device of its model: a stream, kernels, working memory, and the pages and
// states of the layers there.
#pragma once
#include <memory>
#include <vector>

#include "engine/executor/brought_experts.h"
#include "engine/executor/executor_plan.h"
#include "engine/executor/transformer.h"

namespace greta {

struct StagedStep {         // host memory for a step under way
  DeviceMemory step;    // from which the device's StepState is updated
  DeviceMemory runs;    // and its StepRuns
  DeviceMemory tokens;  // and its token log, if another device embeds
  DeviceMemory scales;  // of rows for adapters
  DeviceMemory pieces;  // the beginnings of the StepStates of a pass's pieces
};

// Some is there only where a segment needs it.
struct ExecutorOnDevice {
  DeviceMemory arena, step, runs, rope, token_log, counters, drawn, readback, residual;
  DeviceMemory head_states;
  DeviceMemory residuals;              // of the pieces of a pass
  DeviceMemory adapter_arena, scales;  // of steps with adapters
  // Host memory through which saved pages, and what experts elsewhere read and make, cross.
  DeviceMemory arrives, leaves;
  std::unique_ptr<BroughtExperts> brought;
  StagedStep staged[kFlights];
  std::unique_ptr<Pool> cache;
  StepBuffers buffers;
  std::unique_ptr<KernelSet> kernels;
  std::unique_ptr<Stream> stream;  // destroyed before the memory that it uses
};

class ExecutorDevices {
 public:
  ExecutorDevices(Model& model, const ExecutorOptions& options, const ExecutorPlan& plan);
  ~ExecutorDevices();  // what was submitted ends before
  Status open();       // allocates all, and fills what steps only read
  void drain_all();

  ExecutorOnDevice& operator[](size_t device) { return on_[device]; }
  const ExecutorOnDevice& operator[](size_t device) const { return on_[device]; }
  uint32_t size() const { return uint32_t(on_.size()); }
  auto begin() { return on_.begin(); }
  auto end() { return on_.end(); }
  Device& device(uint32_t index) const { return *model_.devices[index].device; }
  const DeviceInfo& info(uint32_t index) const { return device(index).info(); }
  bool has_processor() const;
  ExecutorOnDevice& ends() { return on_[model_.placement.output()]; }  // that of the output
  const ExecutorOnDevice& ends() const { return on_[model_.placement.output()]; }
  bool apart() const { return model_.placement.embedding() != model_.placement.output(); }
  const StepBuffers::Cache& cache_of(uint32_t layer) const {
    return on_[model_.placement.layer(layer)].buffers.cache[layer];
  }
  Slice state_of(uint32_t layer, uint32_t state) const;

  Status barrier();   // on all streams
  Status wait_all();  // for everything that was submitted
  // Abandons at its end what was recorded on all streams, unless that is kept.
  struct Recordings {
    ExecutorDevices& on;
    bool kept = false;
    ~Recordings() {
      for (ExecutorOnDevice& each : on)
        if (!kept) each.stream->abandon();
    }
  };

 private:
  Status allocate(uint32_t device);
  Status allocate_crossing(uint32_t device);
  Status allocate_cache(uint32_t device);
  Status upload_tables(uint32_t device);

  Model& model_;
  const ExecutorOptions& options_;
  const ExecutorPlan& plan_;
  std::vector<ExecutorOnDevice> on_;
};

}  // namespace greta
