// Writes a transformer's forward step as calls, from which a plan is made.
#pragma once
#include "engine/adapter/adapter.h"

namespace greta {

// Which rows of a step are each the only one of their sequence.
enum class LoneRows : uint8_t { None, First, All };

// The size of a step that a plan is made for. Steps with the same key replay the same plan.
struct StepKey {
  uint32_t tokens = 1;             // one of kTokenBuckets
  uint32_t outputs = 1;            // rows of logits: an output_bucket()
  uint32_t logits = 1;             // how many of these rows, the first ones, the host gets
  bool sample = false;             // the device draws tokens from the live rows behind those
  LoneRows lone = LoneRows::None;  // what attention may make use of
  bool hidden = false;             // the outputs are hidden states, and there are no logits
  bool prefixes = false;           // of the lone rows some share pages that are read once (SharedPrefixes)
  uint32_t adapters = 0;           // the number of the AdapterSet whose parts are added; 0: none
  bool head = false;               // the step is one of the layer that drafts tokens
  bool brings = false;             // experts that are apart are brought to their layers (BroughtExperts)
  bool replay = false;             // only the states are made, of what the step before has kept (kReplayRows)
  bool operator==(const StepKey&) const = default;
};

// A step of at most so many rows keeps what its layers with a state have made it of, until the next step.
constexpr uint32_t kReplayRows = 8;

constexpr uint32_t kTokenBuckets[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
uint32_t token_bucket(uint32_t tokens);                     // the smallest bucket for so many tokens
uint32_t output_bucket(uint32_t outputs, uint32_t tokens);  // 0, 1, or a bucket from 8 to `tokens`, if less

// Device memory that a step reads and writes beside weights and temporaries.
struct StepBuffers {
  Slice step;  // StepState with page tables for each group of the cache, one behind the other
  uint32_t groups = 1;
  Slice rope[kMaxRopeTables];  // [context][RopeTable::width / 2][2]
  Slice ones;                  // numbers that are 1, as many as ones_values() says
  Slice token_log;             // [pages][kPageTokens]
  Slice counters;              // [kCounterCount] of uint, which are 0 between launches
  Slice drawn;                 // [kMaxStepSequences][kDrawnPositions]: tokens for the host
  Slice runs;                  // StepRuns, where layers are recurrent
  Slice readback;              // logits [outputs][vocab] or hidden states [outputs][width] for the host
  Slice scales;                // [adapters][StepKey::tokens]: of each row for each adapter
  Slice output_step;           // a StepState whose tokens are the rows of logits
  std::span<const std::shared_ptr<const Adapter>> adapters;  // of the step
  std::span<const float> same_scales;  // [adapters]: those of all rows, in place of `scales`; or empty
  // Where a layer drafts tokens, hidden states of [width] values: those of a step's rows, those of the head's
  // rows, those that it reads, each [tokens], and those that are kept of each sequence.
  Slice step_states, head_states, head_inputs, kept_states;
  Slice arrives, leaves;  // host memory through which what experts on another device read and make crosses
  Slice residual;         // [tokens][width], where it crosses, or stays while such experts run
  // The pages of a layer: [pages] x page bytes. Without attention there are none.
  struct Cache {
    Slice keys = {}, values = {};
    uint32_t key_page_bytes = 0, value_page_bytes = 0;
    bool joined = false;  // latent attention: the values are the keys, and have no pages of their own
    Slice states = {};    // of a recurrent layer: [ExecutorPlan::states] of RecurrentShape::stride() values
    Slice inputs = {};    // and of kReplayRows rows what its state is made of (state_inputs_bytes)
    uint32_t group = 0;
    uint64_t page_bytes() const { return key_page_bytes + (joined ? 0 : uint64_t(value_page_bytes)); }
  };
  Slice step_of(uint32_t group) const {
    return {step.buffer, step.offset + step.bytes / groups * group, step.bytes / groups};
  }
  std::vector<Cache> cache;               // by layer
  uint32_t key_type = 0, value_type = 0;  // kernels/abi/cache_types.def
};

// The bytes of StepBuffers::Cache::inputs; 0 where a layer keeps no state.
uint64_t state_inputs_bytes(const Arch& arch, const Shape& shape, uint32_t layer);

// How many ones a step of so many tokens reads.
uint64_t ones_values(const Arch& arch, const Shape& shape, uint32_t tokens);

// Writes a segment of the step, by default the whole step. A segment that only ends it makes nothing if the
// step has no outputs.
Status build_step(const Arch& arch, const Shape& shape, const Weights& weights, const StepBuffers& buffers,
                  const StepKey& key, GretaGraph* graph, const Segment& segment = {});

}  // namespace greta
