// What a step will do, launch by launch, before any memory is allocated for it.
#pragma once
#include "engine/executor/executor.h"

namespace greta {

// The step that is explained: `tokens` tokens of one sequence behind `depth` others, of which the last one
// gives the next token.
struct ExplainedStep {
  uint32_t tokens = 1, depth = 0;
  bool machine_code = false;  // drivers are asked for that of the kernels
};

// A launch or a copy of its plan. Texts live as long as the call that hands them out.
struct ExplainedLaunch {
  // A row that covers the same ops for the same type of weight, has a higher rank and was not taken.
  struct PassedOver {
    const char* kernel;
    uint32_t rank;
    std::string reason;
  };
  uint32_t device = 0;    // of the model's
  uint32_t stage = 0;     // launches of one number may overlap; a barrier stands before the next number
  const char* part = "";  // of the step, such as "attention"
  const char* kernel = "";
  std::string ops, weight;  // "norm+matmul", "[4096][1024] q4_k planes"
  uint32_t rank = 0, splits = 1, groups[3] = {1, 1, 1};
  Cost cost;
  std::vector<PassedOver> passed_over;
  std::string machine_code;  // what the driver tells of it; "" if nothing
};

// Hands out the launches in their order, until `visit` returns false. The model need not be loaded.
Status explain_step(const Model& model, ExecutorOptions options, Executor::FreeBytes free_bytes,
                    const ExplainedStep& step, const std::function<bool(const ExplainedLaunch&)>& visit);

// A launch of a step that stands apart from its model. Slices of its calls only say which are the same
// memory.
struct LoneLaunch {
  std::vector<Call> calls;
  uint32_t bucket = 1;
};

// Hands out the launches on one device of the model, as they are planned without a tuning table.
Status lone_launches(const Model& model, ExecutorOptions options, Executor::FreeBytes free_bytes,
                     uint32_t tokens, uint32_t device, std::vector<LoneLaunch>* out);

}  // namespace greta
