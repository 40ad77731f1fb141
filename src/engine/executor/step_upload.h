// What the devices are told of a step: rows, page tables and sampling parameters, as the host's StepState has
// them. Only what the devices do not have is copied.
#pragma once
#include <optional>

#include "engine/executor/flights.h"
#include "engine/executor/sequences.h"

namespace greta {

class StepUpload {
 public:
  StepUpload(const Model& model, ExecutorDevices& on, const Sequences& sequences, const Flights& flights,
             const ExecutorOptions& options, const ExecutorPlan& plan);
  Status open();  // uploads the whole StepState

  StepState& host(uint32_t group = 0) {
    return *reinterpret_cast<StepState*>(reinterpret_cast<uint8_t*>(host_.data()) + group * state_bytes());
  }
  void set_sampling(uint32_t sequence, const DeviceSampling& sampling);
  DeviceSampling sampling(uint32_t sequence) {
    return {host().sample[sequence], penalties()[sequence]};
  }
  void set_prefixes(const SharedPrefixes& found);

  // Writes the host's StepState for these rows. Outputs whose logits the host gets come before those that are
  // drawn.
  void write_rows(std::span<const TokenRow> rows);
  // The rest records copies, to be followed by a barrier.
  // The rows that were written. `lone` rows are alone in their sequences, where a device has kernels for
  // such.
  Status rows(const std::vector<bool>& takes_lone, uint32_t lone);
  // Which rows belong to which sequence, where layers are recurrent.
  Status runs(std::span<const TokenRow> rows);
  Status runs(const StepRuns& runs);
  Status prefixes();
  Status sequences();  // page tables and sampling parameters of the step's sequences
  Status log_tokens(std::span<const TokenRow> rows);
  // The beginning of the host's StepState, or what is at `from` in it, to one device.
  Status copy(uint32_t device, const void* from, uint64_t bytes);

  // Repeats on the host's copy what drawing does to the device's rows.
  void follow_draws();
  void forget_rows() { rows_there_.clear(); }  // the devices have others
  void forget_outputs() { output_rows_there_.clear(); }
  void forget();  // what the devices have, so that the next step uploads all that it needs

 private:
  Status copy(const void* from, uint64_t bytes);  // to all devices
  Status table(uint32_t group, uint32_t sequence);
  // Each group has a StepState. Only that of group 0 is whole; of others the host writes the page tables.
  uint64_t state_bytes() const { return on_[0].step.buffer().bytes / plan_.groups.count; }
  uint32_t* tables(uint32_t group = 0) { return reinterpret_cast<uint32_t*>(&host(group) + 1); }
  SamplePenalties* penalties() {
    return reinterpret_cast<SamplePenalties*>(tables() +
                                              uint64_t(options_.sequences) * plan_.pages_per_sequence);
  }
  SharedPrefixes* shared_prefixes() {
    return reinterpret_cast<SharedPrefixes*>(penalties() + options_.sequences);
  }

  const Model& model_;
  ExecutorDevices& on_;
  const Sequences& sequences_;
  const Flights& flights_;
  const ExecutorOptions& options_;
  const ExecutorPlan& plan_;
  std::vector<uint64_t> host_;        // the StepState as the devices will have it
  std::vector<StepRow> rows_there_;   // its rows as the devices have them; empty if that is not known
  std::vector<uint32_t> lone_there_;  // by device: StepState.lone_count as it has it
  uint32_t first_drawn_there_ = 0;
  std::optional<StepRuns> runs_there_;       // as the devices have them
  bool prefixes_there_ = false;              // the devices have the host's SharedPrefixes
  std::vector<uint32_t> output_rows_there_;  // the beginning of its output_row as the devices have it
  std::vector<bool> sampling_changed_;       // by sequence
};

}  // namespace greta
