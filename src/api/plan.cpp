// The plan of a step, as greta.h tells it.
#include "api/handles.h"

using namespace greta;

static bool report_launch(const greta_plan_options& options, uint32_t device, const ExplainedLaunch& from) {
  std::vector<greta_plan_passed> passed;
  for (const ExplainedLaunch::PassedOver& each : from.passed_over)
    passed.push_back({each.kernel, each.reason.c_str(), each.rank, 0});
  greta_plan_launch launch = {};
  launch.struct_size = sizeof launch;
  launch.device = device;
  launch.barrier_stage = from.stage;
  launch.rank = from.rank;
  launch.stage = from.part;
  launch.kernel = from.kernel;
  launch.ops = from.ops.c_str();
  launch.weight = from.weight.c_str();
  std::copy_n(from.groups, 3, launch.groups);
  launch.splits = from.splits;
  launch.bytes = from.cost.bytes;
  launch.flops = from.cost.flops;
  launch.passed = passed.data();
  launch.passed_count = uint32_t(passed.size());
  launch.machine_code = from.machine_code.c_str();
  return !call_back("on_launch", [&] { return options.on_launch(options.user, &launch); });
}

greta_status greta_plan_explain(greta_runtime* runtime, const greta_file* file,
                                const greta_plan_options* given) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    GRETA_TRY(need(file, "file"));
    GRETA_TRY(need(given, "options"));
    greta_plan_options o;
    GRETA_TRY(read_options(given, &o));
    ExplainedStep step{o.tokens ? o.tokens : 1, o.depth};
    GRETA_TRY(read_flag(o.machine_code, "machine_code", &step.machine_code));
    if (!o.on_launch) return fail(Code::Argument, "on_launch is NULL");
    ExecutorOptions executor;
    GRETA_TRY(read_executor_options(o.executor, &executor));
    Source source;
    GRETA_TRY(file->source.open(&source));
    Model model;
    GRETA_TRY(describe_placed(*runtime, std::move(source), o.placement, executor, Log{}, &model));
    const std::vector<uint64_t> free = beside_weights(model, runtime->free_bytes(model));
    return explain_step(model, executor, free, step, [&](const ExplainedLaunch& launch) {
      return report_launch(o, model.devices[launch.device].number, launch);
    });
  });
}
