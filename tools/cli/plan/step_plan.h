// The plan of a step as greta.h tells it, with the time that it takes at least by the measured roofs.
#pragma once
#include <string>
#include <vector>

#include "bench/roofline.h"
#include "json.h"
#include "model.h"

namespace greta::cli {

struct Passed {
  std::string kernel, reason;
  uint32_t rank;
};

// Equal launches of a stage, such as those of all layers.
struct PlanLine {
  std::string stage, kernel, ops, weight;
  uint32_t device = 0, rank = 0, splits = 1, launches = 0;
  uint32_t groups[3] = {1, 1, 1};
  uint64_t bytes = 0, flops = 0;  // of all of them
  std::vector<Passed> passed;
  std::string machine_code;  // registers, where the driver tells
};

struct StepPlan {
  uint32_t tokens = 1, depth = 0;
  uint32_t launches = 0, barriers = 0;
  std::vector<PlanLine> lines;  // in the order of first launches
  Roofs roofs;                  // of the first device
  std::vector<std::string> devices;
};

// Asks for the plan of a step of `tokens` tokens behind `depth` others. `machine_code` also asks drivers for
// registers, for which they compile its kernels.
StepPlan read_step_plan(greta_runtime* runtime, const greta_file* file, const DeviceOptions& device,
                        const greta_executor_options& executor, uint32_t tokens, uint32_t depth,
                        bool machine_code = false);
void measure_roofs(greta_runtime* runtime, StepPlan* plan);  // of the first device

// The time at the roof that binds a line, or that of the whole step, one line after the other; 0 for lines on
// devices whose roofs are not measured.
double least_seconds(const StepPlan& plan, const PlanLine& line);
double least_seconds(const StepPlan& plan);

std::string step_plan_text(const StepPlan& plan, bool reasons);  // reasons: why not kernels of higher ranks
Json step_plan_json(const StepPlan& plan);
std::string step_plan_svg(const StepPlan& plan, const std::string& title);

}  // namespace greta::cli
