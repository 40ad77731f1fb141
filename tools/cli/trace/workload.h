// What a profile runs: one prompt and its answer, several answers at once, or requests of a service.
#pragma once
#include <vector>

#include "model.h"
#include "trace/sampler.h"

namespace greta::cli {

struct Workload {
  const ContextOptions& context;
  const std::vector<int32_t>& tokens;  // of the prompt
  uint32_t predict, streams;
  uint32_t requests;  // 0: no service; else so many, of which `streams` run at once
};

struct Written {
  size_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t prompt_ns = 0, generate_ns = 0;  // of the stream that took the longest
};

// The executor that it runs on.
greta_executor_options executor_of(const Workload& work, uint32_t model_context);
Written run_workload(const Workload& work, greta_model* model, Sampler& sampler);

}  // namespace greta::cli
