#include "engine/executor/bringing.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/executor/memory.h"

namespace greta {

// From fewer tokens on it is not looked for: each of them reads a small part of the experts.
constexpr uint32_t kFewestTokens = 32;

Status Bringing::open() {
  if (!plan_.brings) return {};
  for (uint32_t d = 0; d < on_.size(); ++d) {
    if (!BroughtExperts::bytes(model_, d)) continue;
    on_[d].brought = std::make_unique<BroughtExperts>(model_, d);
    GRETA_TRY(on_device(model_, d, on_[d].brought->open()));
  }
  plans_.open_brought();
  from_ = model_.bring_from;
  return from_ ? Status{} : measure();
}

Status Bringing::begin(std::span<const Segment> segments) {
  const auto next = std::ranges::find_if(segments, [](const Segment& s) { return s.brings != kNoLayer; });
  if (next == segments.end()) return {};
  ExecutorOnDevice& on = on_[next->device];
  const Span span(model_.spans, SpanKind::Submit, "bring experts");
  return on_device(model_, next->device, on.brought->begin(next->brings, *on.stream));
}

Status Bringing::finish(const Segment& segment) {
  if (segment.brings == kNoLayer) return {};
  GRETA_TRY(begin({&segment, 1}));
  const Span span(model_.spans, SpanKind::Wait, "wait for experts");
  return on_device(model_, segment.device, on_[segment.device].brought->finish(segment.brings));
}

// The time that a layer's experts take for so many tokens on the segment's device, the shorter one of two.
// The tokens choose their experts in turn.
Status Bringing::time_experts(const Segment& segment, const Weights& weights, uint32_t tokens, uint64_t* ns) {
  const uint32_t d = segment.device;
  const Experts& e = model_.shape.experts;
  ExecutorOnDevice& on = on_[d];
  std::optional<GretaGraph> graph;
  const auto has_room = [&] { return graph->arena_bytes() <= on.arena.buffer().bytes; };  // as a whole step
  GRETA_TRY(plans_.compile([&]() -> Status {
    graph.emplace(model_.devices[d].filter);
    const StepKey key{tokens, 0, 0};
    GRETA_TRY(build_step(*model_.arch, model_.shape, weights, on.buffers, key, &*graph, segment));
    return has_room() ? graph->bind(*on.kernels, on.arena.all()) : Status{};
  }));
  if (!has_room()) return *ns = 0, Status{};
  float* const x = static_cast<float*>(on.arrives.buffer().mapped);
  const uint64_t values = uint64_t(tokens) * model_.shape.width, slots = uint64_t(tokens) * e.used;
  for (uint64_t i = 0; i < values; ++i) x[i] = float(i % 7) - 3;
  uint32_t* const ids = reinterpret_cast<uint32_t*>(x + values);
  float* const factors = x + values + slots;
  for (uint64_t i = 0; i < slots; ++i) ids[i] = uint32_t(i % e.count), factors[i] = 1 / float(e.used);
  StepState& state = upload_.host();
  state.token_count = tokens;
  *ns = ~uint64_t(0);
  for (int round = 0; round < 2; ++round) {
    GRETA_TRY(on_device(model_, d, on.stream->barrier()));
    GRETA_TRY(upload_.copy(d, &state, offsetof(StepState, row)));
    GRETA_TRY(on_device(model_, d, on.stream->barrier()));
    const uint64_t begin = now_ns();
    GRETA_TRY(on_device(model_, d, graph->run(*on.stream)));
    GRETA_TRY(on_device(model_, d, on.stream->wait()));
    *ns = std::min(*ns, now_ns() - begin);
  }
  state.token_count = 0;
  return {};
}

// Finds from how many tokens on the experts of one layer take longer where they are than their weights take
// to come and the layer's device to compute with them. Between two sizes that were measured the times are
// lines.
Status Bringing::measure() {
  const auto brings = [](const Segment& s) { return s.brings != kNoLayer; };
  const Segment& first = *std::ranges::find_if(plans_.brought_segments(), brings);
  const uint32_t layer = first.brings, on_layer = first.device,
                 on_experts = model_.placement.experts_of(layer);
  uint64_t brought_ns = 0;
  for (int round = 0; round < 2; ++round) {  // the first time kernels are compiled
    on_[on_layer].brought->forget();
    const uint64_t begin = now_ns();
    GRETA_TRY(finish(first));
    brought_ns = now_ns() - begin;
  }
  from_ = kNeverBring;
  double lost_before = 0;
  uint32_t before = 0;
  for (const uint32_t tokens : kTokenBuckets) {
    if (tokens < kFewestTokens || tokens > plan_.step_tokens) continue;
    const auto time = [&](uint32_t device, const Weights& weights, uint64_t* ns) {
      return time_experts({device, Crossing::Chosen, layer, layer + 1, Crossing::Results}, weights, tokens,
                          ns);
    };
    uint64_t apart_ns = 0, there_ns = 0;
    GRETA_TRY(time(on_experts, model_.weights(), &apart_ns));
    GRETA_TRY(time(on_layer, plans_.weights(true), &there_ns));
    const double gained = double(apart_ns) - double(brought_ns + there_ns);
    if (gained > 0) {
      const double share = before ? lost_before / (lost_before + gained) : 0;
      from_ = before ? before + 1 + uint32_t(share * (tokens - before - 1)) : tokens;
      model_.log(LogLevel::Info,
                 "the experts of a layer come to %s in %.1f ms, which is worth while from %u tokens on",
                 model_.devices[on_layer].id, double(brought_ns) / 1e6, from_);
      return {};
    }
    lost_before = -gained;
    before = tokens;
  }
  plan_.brings = false;
  if (plan_.passes()) {
    ExecutorOnDevice& on = on_[model_.placement.layer(0)];
    plan_.on[model_.placement.layer(0)].tables -= pass_bytes(model_.shape, plan_.step_tokens);
    on.residuals.reset();
    for (StagedStep& staged : on.staged) staged.pieces.reset();
  }
  plan_.step_tokens = plan_.pass_tokens = plan_.apart_tokens;
  for (uint32_t d = 0; d < on_.size(); ++d)
    if (std::exchange(on_[d].brought, nullptr)) plan_.on[d].tables -= BroughtExperts::bytes(model_, d);
  return {};
}

}  // namespace greta
