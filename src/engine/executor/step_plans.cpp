#include "engine/executor/step_plans.h"

#include <algorithm>
#include <utility>

namespace greta {

constexpr size_t kMaxSets = 8;  // of adapters, whose plans are kept

uint32_t token_bucket(uint32_t tokens) {
  for (uint32_t bucket : kTokenBuckets)
    if (tokens <= bucket) return bucket;
  return kMaxStepTokens;
}

uint32_t output_bucket(uint32_t outputs, uint32_t tokens) {
  return outputs <= 1 ? outputs : std::min(token_bucket(std::max(outputs, 8u)), tokens);
}

StepPlans::StepPlans(const Model& model, ExecutorDevices& on, const Sequences& sequences, Flights& flights,
                     const ExecutorOptions& options, const ExecutorPlan& plan)
    : model_(model),
      on_(on),
      sequences_(sequences),
      flights_(flights),
      options_(options),
      plan_(plan),
      segments_(segments_of(model.placement)) {}

// Reports compiling to whoever opened the executor. They, or a sequence of the step, may stop it.
Progress StepPlans::compile_progress() {
  const auto told = [](void* user, uint64_t done, uint64_t total) -> int {
    const StepPlans& self = *static_cast<const StepPlans*>(user);
    return !self.options_.progress.goes_on(done, total) || self.sequences_.is_cancelled();
  };
  return {told, this};
}

Status StepPlans::compile(const std::function<Status()>& want) {
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

void StepPlans::open_brought() {
  brought_segments_ = segments_of(model_.placement, brought_layers(model_));
  with_brought_ = with_brought(model_);
}

Status StepPlans::build(const StepKey& key, size_t segment, GretaGraph* graph) {
  const Segment& part = segments(key)[segment];
  ExecutorOnDevice& on = on_[part.device];
  give_adapters(key, &on.buffers);
  GRETA_TRY(build_step(*model_.arch, model_.shape, weights(key.brings), on.buffers, key, graph, part));
  return graph->bind(*on.kernels, key.adapters ? on.adapter_arena.all() : on.arena.all());
}

Status StepPlans::make(const StepKey& key) {
  Span span(model_.spans, SpanKind::Plan, "plan");
  span.event.tokens = key.tokens;
  if (key.adapters) GRETA_TRY(reserve_arena(key));
  PlannedStep plan{key, {}, std::vector<bool>(on_.size())};
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
    GRETA_TRY(on_device(model_, d, plan.graphs[i]->capture(*on_[d].stream, on_.device(d))));
    if (std::ranges::any_of(plan.graphs[i]->commands(), takes_lone)) plan.lone[d] = true;
  }
  plans_.push_back(std::move(plan));
  return {};
}

Status StepPlans::find(const StepKey& key, const PlannedStep** out) {
  const auto found = [&] { return std::ranges::find(plans_, key, &PlannedStep::key); };
  if (found() == plans_.end()) GRETA_TRY(make(key));
  *out = &*found();
  return {};
}

// Forgets plans with adapters, or those of one set. No step may be under way.
void StepPlans::drop_plans(uint32_t set) {
  flights_.forget_launches();
  std::erase_if(plans_, [&](const PlannedStep& plan) {
    return set ? plan.key.adapters == set : plan.key.adapters != 0;
  });
}

Status StepPlans::find_set(Adapters adapters, std::vector<float> scales, uint32_t* number) {
  if (adapters.size() > kMaxStepAdapters)
    return fail(Code::Full, "%zu adapters in a step, at most %u", adapters.size(), kMaxStepAdapters);
  const auto stale = [](const AdapterSet& set) {
    return std::ranges::any_of(set.adapters, [](const auto& adapter) { return adapter->closed(); });
  };
  const auto is_wanted = [&](const AdapterSet& set) {
    return set.adapters == adapters && set.same_scales == scales;
  };
  auto found = std::ranges::find_if(sets_, is_wanted);
  const bool is_new = found == sets_.end();
  if (std::ranges::any_of(sets_, stale) || (is_new && sets_.size() == kMaxSets)) {
    GRETA_TRY(on_.wait_all());
    const auto drop = [&](const AdapterSet& set) { return drop_plans(set.number), true; };
    std::erase_if(sets_, [&](const AdapterSet& set) { return stale(set) && drop(set); });
    if (is_new && sets_.size() == kMaxSets) {
      drop(sets_.front());
      sets_.erase(sets_.begin());
    }
    found = std::ranges::find_if(sets_, is_wanted);
  }
  if (found == sets_.end())
    sets_.push_back({++last_set_, std::move(adapters), std::move(scales)});
  else
    std::rotate(found, found + 1, sets_.end());  // the one that was used last comes last
  *number = sets_.back().number;
  return {};
}

void StepPlans::give_adapters(const StepKey& key, StepBuffers* to) const {
  const auto set = std::ranges::find(sets_, key.adapters, &AdapterSet::number);
  to->adapters = {};
  to->same_scales = {};
  if (set != sets_.end()) to->adapters = set->adapters, to->same_scales = set->same_scales;
}

Status StepPlans::reserve_arena(const StepKey& key) {
  for (const Segment& segment : segments_) {
    ExecutorOnDevice& on = on_[segment.device];
    GretaGraph graph(model_.devices[segment.device].filter);
    give_adapters(key, &on.buffers);
    GRETA_TRY(build_step(*model_.arch, model_.shape, model_.weights(), on.buffers, key, &graph, segment));
    const uint64_t bytes = round_up(graph.arena_bytes(), 256);
    if (bytes <= on.adapter_arena.buffer().bytes) continue;
    GRETA_TRY(on_.wait_all());
    drop_plans(0);
    on.adapter_arena.reset();
    GRETA_TRY(on_device(model_, segment.device,
                        within(on.adapter_arena.allocate(on_.device(segment.device), bytes, Memory::Device),
                               "working memory for adapters")));
  }
  return {};
}

}  // namespace greta
