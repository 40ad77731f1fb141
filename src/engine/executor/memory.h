// The sizes of what an executor has on its devices.
#pragma once
#include <cstddef>

#include "engine/executor/executor.h"

namespace greta {

// What a device needs for the segments that it runs.
struct Needs {
  bool embeds = false, layers = false, outputs = false;
  bool residual = false;         // it has a place of its own there (Segment::keeps_residual)
  bool residual_crosses = false;
  bool crosses = false;          // something comes or goes, so that saved pages do, too
  uint32_t crossing_values = 0;  // for each token, the most of what experts elsewhere read or make
};

std::vector<Needs> needs_of(const Model& model);  // by device

uint64_t step_state_bytes(uint32_t sequences, uint32_t pages_per_sequence);
uint64_t log_bytes(uint32_t pages);                             // of the token log
uint64_t ones_bytes(const Model& model, uint32_t step_tokens);  // of StepBuffers::ones
uint64_t residual_bytes(const Shape& s, uint32_t step_tokens);  // of StepBuffers::residual
uint64_t layer_state_bytes(const Shape& s, uint32_t layer);     // of one state in a layer
// What the host reads of a step: rows of logits, or hidden states, of which there is room for one at least.
uint64_t readback_bytes(const Shape& s, const ExecutorOptions& o, uint32_t step_tokens);
// Of hidden states that the head reads and writes, and how they are laid out.
uint64_t head_states_bytes(const Shape& s, const ExecutorOptions& o, uint32_t step_tokens);
void set_head_states(const Shape& s, const Slice& all, uint32_t step_tokens, StepBuffers* b);
// What differs between the StepStates of a pass's pieces, which is their beginning.
constexpr uint64_t kRowsBytes = offsetof(StepState, sample);
// Of the memory that a pass of several pieces takes on its device.
uint64_t pass_bytes(const Shape& s, uint32_t step_tokens);
// Whether steps of the model can run in passes: all of what it does then is on one device, and no layer has
// what is planned for the rows of one step.
bool can_pass(const Model& model);
// Of what crosses for each token: values of 4 bytes.
uint32_t crossing_values(const Shape& s, Crossing crossing);
// Of host memory through which what experts elsewhere read and make, and pages that are saved, come to a
// device or leave it.
uint64_t crossing_bytes(const Model& model, const StepBuffers& b, uint32_t device, uint32_t step_tokens);

// Of host memory through which the residuals of the steps under way come to a device and leave it, if so many
// values of each do. Where the device shares memory with the host, both have the same places.
uint64_t residuals_crossing_bytes(const DeviceInfo& device, const Shape& s, uint32_t step_tokens);

Status describe_cache(const Model& model, const ExecutorOptions& o, StepBuffers* b);
// The buffers of all steps at places in `memory`, which is given no bytes of its own and stands for them. It
// must outlive them.
Status describe_buffers(const Model& model, const ExecutorOptions& o, const ExecutorPlan& plan,
                        Buffer* memory, StepBuffers* out);
void set_groups(const Shape& shape, const CacheGroups& groups, StepBuffers* b);

}  // namespace greta
