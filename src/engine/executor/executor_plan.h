// What an executor is asked for, and what it will have on each device.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/executor/cache_groups.h"
#include "engine/model/model.h"

namespace greta {

struct ExecutorOptions {
  uint32_t context = 0;  // tokens of one sequence; 0: the model's or 8192, or less if that does not fit
  uint32_t sequences = 4;
  uint32_t key_type = 1, value_type = 1;  // indices in kernels/abi/cache_types.def; 1: f16
  uint32_t cache_tokens = 0;              // positions in the page pool; 0: context
  uint32_t output_rows = 0;               // rows of logits of one step; 0: 8, or `sequences` if that is more
  uint32_t step_tokens = 0;               // tokens of one step; 0: step_limit()
  Progress progress = {};                 // counts kernels that are compiled
  // Pages with which sequences of a step begin are read once where this saves so many; 0: kMinPagesSaved.
  uint32_t pages_saved = 0;
  uint64_t step_pairs = 0;        // of tokens and the positions that they see, in one step; 0: most_pairs()
  uint64_t checkpoint_bytes = 0;  // CacheWants
  bool compile_ahead = false;     // at opening, the kernels of all steps; on a GPU
  // Steps' worth of tokens that share one pass over experts that are brought; 0: kPassPieces, or 1 where
  // step_tokens is given.
  uint32_t pass_pieces = 0;
  bool draft_head = false;  // of a model that is opened with the layer that drafts tokens
};

// Rows with an output in a step that draws: one of each sequence, or those of a sequence whose next tokens
// were guessed.
constexpr uint32_t kGuessedRows = 8;
inline uint32_t max_draws(const ExecutorOptions& o) { return std::max(o.sequences, kGuessedRows); }

// What the device's kernel is told of a sequence's sampling.
struct DeviceSampling {
  SampleParams params;
  SamplePenalties penalties;
};

// What an executor allocates on a device, exact to the byte.
struct ExecutorBytes {
  uint64_t cache = 0;  // keys, values, the token log and states
  uint64_t arena = 0;
  uint64_t tables =
      0;  // rope table, StepState and its host copy, readback, room for experts that are brought
  uint64_t total() const { return cache + arena + tables; }
};

struct ExecutorPlan {
  uint32_t context = 0, pages = 0, pages_per_sequence = 0, step_tokens = 0;  // pages: of group 0
  CacheGroups groups;
  uint32_t states = 0;  // of recurrent layers: one of each sequence, a spare one and those of checkpoints
  uint32_t checkpoints = 0;       // of these, those of checkpoints
  uint64_t state_bytes = 0;       // of one state in all layers
  bool brings = false;            // there is room for experts that are brought
  uint32_t apart_tokens = 0;      // step_tokens where no step brings any
  uint32_t pass_tokens = 0;       // of what is submitted at once: step_tokens, or more where it brings some
  std::vector<ExecutorBytes> on;  // by device
  std::vector<uint64_t> layer_bytes;  // of the cache of each layer, which is in the above
  uint64_t head_bytes = 0;            // of it and the tables, those of the layer that drafts tokens
  bool passes() const { return pass_tokens > step_tokens; }
  ExecutorBytes all() const;  // of all devices together
  uint64_t total() const { return all().total(); }
};

constexpr uint64_t kCachePieceBytes = uint64_t(4) << 20;
constexpr uint32_t kPassPieces = 4;
constexpr uint32_t kFlights = 2;  // steps under way: one runs while the next is recorded
constexpr uint64_t kDrawnBytes = kMaxStepSequences * kDrawnPositions * sizeof(uint32_t);
static_assert(kFlights <= kDrawnPositions);

// The default of step_tokens. With it a CPU ends a step in about a second, and a GPU ends its largest launch
// within the time of one submission.
uint32_t step_limit(const DeviceInfo& device, uint64_t token_parameters, uint64_t largest_product);

}  // namespace greta
