#include "plan/step_plan.h"

#include <algorithm>

#include "console.h"

namespace greta::cli {
namespace {

struct PlanReading {
  StepPlan* plan;
  uint32_t stage = ~0u;
};

int add_launch(void* user, const greta_plan_launch* launch) {
  auto& [plan, stage] = *static_cast<PlanReading*>(user);
  ++plan->launches;
  if (launch->barrier_stage != stage) ++plan->barriers;
  stage = launch->barrier_stage;
  const auto same = [&](const PlanLine& line) {
    return line.device == launch->device && line.stage == launch->stage && line.kernel == launch->kernel &&
           line.ops == launch->ops && line.weight == launch->weight && line.splits == launch->splits &&
           std::equal(line.groups, line.groups + 3, launch->groups);
  };
  auto line = std::find_if(plan->lines.begin(), plan->lines.end(), same);
  if (line == plan->lines.end()) {
    PlanLine first;
    first.stage = launch->stage;
    first.kernel = launch->kernel;
    first.ops = launch->ops;
    first.weight = launch->weight;
    first.device = launch->device;
    first.rank = launch->rank;
    first.splits = launch->splits;
    std::copy_n(launch->groups, 3, first.groups);
    first.machine_code = launch->machine_code;
    for (uint32_t i = 0; i < launch->passed_count; ++i)
      first.passed.push_back({launch->passed[i].kernel, launch->passed[i].reason, launch->passed[i].rank});
    line = plan->lines.insert(line, first);
  }
  ++line->launches;
  line->bytes += launch->bytes;
  line->flops += launch->flops;
  return 0;
}

const char* bound_text(const StepPlan& plan, const PlanLine& line) {
  return bound_of(plan.roofs, line.bytes, line.flops, 1).arithmetic ? "arithmetic" : "bandwidth";
}

std::string grid_text(const PlanLine& line) {
  if (line.ops.empty()) return "";
  std::string text = std::to_string(line.groups[0]);
  if (line.groups[1] * line.groups[2] > 1) text += format(" x %u", line.groups[1]);
  if (line.groups[2] > 1) text += format(" x %u", line.groups[2]);
  return text;
}

std::string head_text(const StepPlan& plan) {
  const double seconds = least_seconds(plan);
  std::string text = format("\nplan of a step  %u token%s behind %u, %u launches, %u barriers", plan.tokens,
                            plan.tokens == 1 ? "" : "s", plan.depth, plan.launches, plan.barriers);
  for (const std::string& device : plan.devices) text += (text.back() == 's' ? ", on " : ",") + device;
  text += format("\nmeasured roofs  %.1f GB/s, %.3f TFLOP/s: the step takes at least %.1f us",
                 static_cast<double>(plan.roofs.bandwidth) * 1e-9,
                 static_cast<double>(plan.roofs.arithmetic) * 1e-12, seconds * 1e6);
  if (seconds > 0) text += format(", so at most %.1f tokens/s", plan.tokens / seconds);
  return text + "\n\n";
}

}  // namespace

double least_seconds(const StepPlan& plan, const PlanLine& line) {
  if (line.device > 0) return 0;
  return 1e-11 * bound_of(plan.roofs, line.bytes, line.flops, 1).percent;  // percent of 1 ns
}

double least_seconds(const StepPlan& plan) {
  double sum = 0;
  for (const PlanLine& line : plan.lines) sum += least_seconds(plan, line);
  return sum;
}

StepPlan read_step_plan(greta_runtime* runtime, const greta_file* file, const DeviceOptions& device,
                        const greta_executor_options& executor, uint32_t tokens, uint32_t depth,
                        bool machine_code) {
  StepPlan plan;
  plan.tokens = tokens;
  plan.depth = depth;
  PlanReading reading{&plan};
  const greta_placement placement = placement_of(device);
  auto options = sized<greta_plan_options>();
  options.tokens = tokens;
  options.depth = depth;
  options.machine_code = machine_code ? 1 : 0;
  options.executor = &executor;
  options.placement = greta_runtime_device_count(runtime) > 1 ? &placement : nullptr;
  options.on_launch = add_launch;
  options.user = &reading;
  check(greta_plan_explain(runtime, file, &options));
  for (uint32_t i = 0; i < greta_runtime_device_count(runtime); ++i) {
    auto info = sized<greta_device_info>();
    check(greta_runtime_device(runtime, i, &info));
    plan.devices.emplace_back(info.id);
  }
  return plan;
}

void measure_roofs(greta_runtime* runtime, StepPlan* plan) {
  check(greta_runtime_measure_bandwidth(runtime, &plan->roofs.bandwidth));
  check(greta_runtime_measure_arithmetic(runtime, &plan->roofs.arithmetic));
}

std::string step_plan_text(const StepPlan& plan, bool reasons) {
  std::string text = head_text(plan);
  text += format("%-16s %-34s %5s %4s %12s %11s %9s %6s  %s\n", "stage", "kernel", "runs", "rank", "grid",
                 "bytes", "MFLOP", "us", "bound by");
  const bool several = plan.devices.size() > 1;
  for (const PlanLine& line : plan.lines) {
    const std::string stage =
        several ? format("%s %s", plan.devices[line.device].c_str(), line.stage.c_str()) : line.stage;
    const bool known = line.device == 0;
    text += format("%-16s %-34s %5u %4u %12s %11s %9.2f %6s  %s\n", stage.c_str(), line.kernel.c_str(),
                   line.launches, line.rank, grid_text(line).c_str(), size_text(line.bytes).c_str(),
                   static_cast<double>(line.flops) * 1e-6,
                   known ? format("%.1f", 1e6 * least_seconds(plan, line)).c_str() : "?",
                   known ? bound_text(plan, line) : "not measured");
    if (!line.machine_code.empty()) text += "    has " + printable(line.machine_code) + "\n";
    if (!reasons) continue;
    if (!line.ops.empty())
      text += format("    computes %s%s%s\n", line.ops.c_str(), line.weight.empty() ? "" : " with ",
                     line.weight.c_str());
    for (const Passed& passed : line.passed)
      text += format("    not %s (rank %u): %s\n", passed.kernel.c_str(), passed.rank, passed.reason.c_str());
  }
  return text;
}

Json step_plan_json(const StepPlan& plan) {
  Json json = {{"tokens", plan.tokens},
               {"depth", plan.depth},
               {"launches", plan.launches},
               {"barriers", plan.barriers},
               {"devices", plan.devices},
               {"bandwidth_gb_s", static_cast<double>(plan.roofs.bandwidth) * 1e-9},
               {"arithmetic_tflop_s", static_cast<double>(plan.roofs.arithmetic) * 1e-12},
               {"least_ns", 1e9 * least_seconds(plan)},
               {"lines", Json::array()}};
  for (const PlanLine& line : plan.lines) {
    Json passed = Json::array();
    for (const Passed& each : line.passed)
      passed.push_back({{"kernel", each.kernel}, {"rank", each.rank}, {"reason", each.reason}});
    Json one = {{"stage", line.stage},       {"device", plan.devices[line.device]},
                {"kernel", line.kernel},     {"ops", line.ops},
                {"weight", line.weight},     {"rank", line.rank},
                {"launches", line.launches}, {"groups", line.groups},
                {"splits", line.splits},     {"bytes", line.bytes},
                {"flops", line.flops},       {"passed", passed}};
    if (!line.machine_code.empty()) one["machine_code"] = line.machine_code;
    if (line.device == 0) {
      one["least_ns"] = 1e9 * least_seconds(plan, line);
      one["bound"] = bound_text(plan, line);
    }
    json["lines"].push_back(one);
  }
  return json;
}

}  // namespace greta::cli
