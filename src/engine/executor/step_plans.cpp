// Makes the plans of an executor's steps: one graph for each segment.
#include <algorithm>

#include "engine/executor/executor.h"

namespace greta {

uint32_t token_bucket(uint32_t tokens) {
  for (uint32_t bucket : kTokenBuckets)
    if (tokens <= bucket) return bucket;
  return kMaxStepTokens;
}

uint32_t output_bucket(uint32_t outputs, uint32_t tokens) {
  return outputs <= 1 ? outputs : std::min(token_bucket(std::max(outputs, 8u)), tokens);
}

// Reports compiling to whoever opened the executor. They, or a sequence of the step, may stop it.
Progress Executor::compile_progress() {
  const auto told = [](void* user, uint64_t done, uint64_t total) -> int {
    Executor& self = *static_cast<Executor*>(user);
    const auto cancelled = [&](const PagePool::Want& want) { return bool(self.cancelled_[want.sequence]); };
    return !self.options_.progress.goes_on(done, total) || std::ranges::any_of(self.wants_, cancelled);
  };
  return {told, this};
}

// Compiles the kernels that `want` has asked for. Where the driver refuses some, it is asked again for
// others.
Status Executor::compile(const std::function<Status()>& want) {
  for (;;) {
    GRETA_TRY(want());
    Status compiled;
    uint32_t d = 0;
    {
      const Span span(model_.spans, SpanKind::Compile, "compile");
      for (; d < on_.size() && compiled.ok(); ++d) compiled = on_[d].kernels->compile(compile_progress());
    }
    if (compiled.ok()) return compiled;
    --d;
    if (!drop_refused(model_.devices[d], on_[d].kernels->refused(), model_.log))
      return on_device(model_, d, compiled);
  }
}

Status Executor::build(const StepKey& key, size_t segment, GretaGraph* graph) {
  const Segment& part = segments(key)[segment];
  OnDevice& on = on_[part.device];
  give_adapters(key, &on.buffers);
  const Weights& weights = key.brings ? with_brought_ : model_.weights();
  GRETA_TRY(build_step(*model_.arch, model_.shape, weights, on.buffers, key, graph, part));
  return graph->bind(*on.kernels, key.adapters ? on.adapter_arena.all() : on.arena.all());
}

Status Executor::make_plan(const StepKey& key) {
  Span span(model_.spans, SpanKind::Plan, "plan");
  span.event.tokens = key.tokens;
  if (key.adapters) GRETA_TRY(reserve_arena(key));
  Planned plan{key, {}, std::vector<bool>(on_.size())};
  const std::span<const Segment> segments = this->segments(key);
  GRETA_TRY(compile([&]() -> Status {
    plan.graphs.clear();
    for (size_t i = 0; i < segments.size(); ++i) {
      const RowFilter& filter = model_.devices[segments[i].device].filter;
      GRETA_TRY(build(key, i, plan.graphs.emplace_back(std::make_unique<GretaGraph>(filter)).get()));
    }
    return {};
  }));
  const auto takes_lone = [](const GretaGraph::Command& c) { return c.row && c.row->lone_rows; };
  for (size_t i = 0; i < segments.size(); ++i) {
    const uint32_t d = segments[i].device;
    if (plan.graphs[i]->commands().empty()) continue;
    GRETA_TRY(on_device(model_, d, plan.graphs[i]->capture(*on_[d].stream, device(d))));
    if (std::ranges::any_of(plan.graphs[i]->commands(), takes_lone)) plan.lone[d] = true;
  }
  plans_.push_back(std::move(plan));
  return {};
}

Status Executor::plan_for(const StepKey& key, const Planned** out) {
  const auto find = [&] { return std::ranges::find(plans_, key, &Planned::key); };
  if (find() == plans_.end()) GRETA_TRY(make_plan(key));
  *out = &*find();
  return {};
}

}  // namespace greta
