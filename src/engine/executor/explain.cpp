#include "engine/executor/explain.h"

#include <algorithm>
#include <cstring>

#include "engine/executor/memory.h"

namespace greta {

static std::string ops_text(std::span<const Call> calls) {
  std::string text;
  for (const Call& call : calls) text += (text.empty() ? "" : "+") + std::string(op_name(call.op));
  return text;
}

static std::string weight_text(const Tensor& weight) {
  if (!weight.n || !weight.depth) return "";
  const auto size = [](uint32_t count) { return "[" + std::to_string(count) + "]"; };
  std::string text = (weight.count > 1 ? size(weight.count) : "") + size(weight.n) + size(weight.depth) +
                     " " + quant_info(weight.type).name;
  return weight.layout == Layout::Gguf ? text : text + " " + layout_name(weight.layout);
}

// The calls as they were when their row was chosen: the planner then gave products the row's form of x, and
// shares of their columns.
static std::vector<Call> as_asked(std::span<const Call> calls) {
  std::vector<Call> asked(calls.begin(), calls.end());
  for (Call& call : asked)
    if (multiplies(call.op)) call.form = Form::F32, call.matmul.splits = 1;
  return asked;
}

static std::vector<ExplainedLaunch::PassedOver> passed_over(const GretaGraph::Command& command,
                                                            const RowFilter& filter) {
  std::vector<ExplainedLaunch::PassedOver> list;
  const std::vector<Call> calls = as_asked(command.calls);
  for (const KernelRow& row : candidates(filter, calls)) {
    const bool other_device = filter.device && row.target[0] && !runs_on(row.target, filter.device->arch);
    if (row.rank <= command.row->rank || row.type != command.row->type || other_device) continue;
    Reason why(true);
    why_not(row, calls, command.bucket, filter, why);
    const char* reason = why.text()[0] ? why.text() : "it does not fit what stands beside these calls";
    list.push_back({row.name, row.rank, reason});
  }
  std::ranges::sort(list, [](const auto& a, const auto& b) {
    return a.rank != b.rank ? a.rank > b.rank : strcmp(a.kernel, b.kernel) < 0;
  });
  return list;
}

static ExplainedLaunch explain(const GretaGraph::Command& command, const RowFilter& filter,
                               const ExplainedStep& step) {
  ExplainedLaunch launch;
  launch.stage = command.stage;
  launch.part = command.part;
  launch.cost = command.cost(step.tokens, 1, step.depth + step.tokens);
  if (!command.row) {
    launch.kernel = "copy";
    return launch;
  }
  const Call& lead = lead_call(command.calls);
  launch.kernel = command.row->name;
  launch.rank = command.row->rank;
  launch.ops = ops_text(command.calls);
  launch.weight = weight_text(lead.weight);
  launch.splits = lead.matmul.splits;
  std::ranges::copy(command.launch.groups, launch.groups);
  launch.passed_over = passed_over(command, filter);
  return launch;
}

// Plans the segments of a step, and gives each to `visit`.
static Status plan_step(const Model& model, ExecutorOptions options, Executor::FreeBytes free_bytes,
                        const ExplainedStep& step, bool tuned,
                        const std::function<Status(const Segment&, const GretaGraph&)>& visit) {
  ExecutorPlan plan;
  GRETA_TRY(Executor::plan(model, &options, free_bytes, &plan));
  if (step.tokens == 0 || step.tokens > plan.step_tokens)
    return fail(Code::Argument, "a step of %u tokens, expected 1 to %u", step.tokens, plan.step_tokens);
  if (uint64_t(step.depth) + step.tokens > plan.context)
    return fail(Code::Full, "%u tokens behind %u others, but the context is %u", step.tokens, step.depth,
                plan.context);
  Buffer memory;
  StepBuffers buffers;
  GRETA_TRY(describe_buffers(model, options, plan, &memory, &buffers));
  const StepKey key{token_bucket(step.tokens), 1, 0, true};
  for (const Segment& segment : segments_of(model.placement)) {
    RowFilter filter = model.devices[segment.device].filter;
    if (!tuned) filter.tuned = nullptr;
    GretaGraph graph(filter);
    GRETA_TRY(
        on_device(model, segment.device,
                  build_step(*model.arch, model.shape, model.weights(), buffers, key, &graph, segment)));
    GRETA_TRY(visit(segment, graph));
  }
  return {};
}

Status explain_step(const Model& model, ExecutorOptions options, Executor::FreeBytes free_bytes,
                    const ExplainedStep& step, const std::function<bool(const ExplainedLaunch&)>& visit) {
  uint32_t stages = 0;
  const auto tell = [&](const Segment& segment, const GretaGraph& graph) -> Status {
    MachineCodes codes(*model.devices[segment.device].device);
    for (const GretaGraph::Command& command : graph.commands()) {
      ExplainedLaunch launch = explain(command, model.devices[segment.device].filter, step);
      if (step.machine_code && command.row)
        GRETA_TRY(codes.of(*command.row, command.launch, &launch.machine_code));
      launch.device = segment.device;
      launch.stage += stages;
      if (!visit(launch)) return fail(Code::Cancelled, "the callback stopped the plan");
    }
    if (!graph.commands().empty()) stages += graph.commands().back().stage + 1;
    return {};
  };
  return plan_step(model, options, free_bytes, step, true, tell);
}

// Buffers of a plan end with it, so that others stand for them, the same one for each. A form of x that the
// planner had made becomes the float32 values again.
static std::vector<Call> standing_alone(const GretaGraph::Command& command) {
  static const Buffer kPlaces[kMaxFused * kSlotCount + 1];
  std::vector<Call> calls = as_asked(command.calls);
  std::vector<const Buffer*> met;
  for (Call& call : calls)
    for (Slice& slice : call.slot) {
      if (!slice.bytes) continue;
      const auto at = std::ranges::find(met, slice.buffer);
      const size_t index = size_t(at - met.begin());
      if (at == met.end()) met.push_back(slice.buffer);
      slice.buffer = &kPlaces[index];
    }
  for (Call& call : calls) call.weight.slice = {}, call.weight.parts = nullptr;
  const Form form = lead_call(command.calls).form;
  if (form == Form::F32 || !multiplies(lead_call(command.calls).op)) return calls;
  const bool norms = calls[0].op == Op::Norm;
  const Call& product = calls[norms];
  const uint64_t width = product.op != Op::MatmulExpert ? product.weight.depth
                         : product.x_stride ? uint64_t(product.x_stride) * product.matmul_expert.x_slots
                                            : uint64_t(product.weight.depth) * product.matmul_expert.x_slots;
  const Slice x = {&kPlaces[kMaxFused * kSlotCount], 0, width * command.bucket * sizeof(float)};
  for (Call& call : calls)
    if (norms ? &call == &calls[0] : multiplies(call.op)) call.slot[kX] = x;
  return calls;
}

Status lone_launches(const Model& model, ExecutorOptions options, Executor::FreeBytes free_bytes,
                     uint32_t tokens, uint32_t device, std::vector<LoneLaunch>* out) {
  const auto take = [&](const Segment& segment, const GretaGraph& graph) -> Status {
    if (segment.device != device) return {};
    for (const GretaGraph::Command& command : graph.commands())
      if (command.row) out->push_back({standing_alone(command), command.bucket});
    return {};
  };
  return plan_step(model, options, free_bytes, {tokens, 0}, false, take);
}

}  // namespace greta
