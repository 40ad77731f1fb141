// Runs what the scheduler has planned, and hands out what was drawn.
#include <algorithm>

#include "engine/serve/scheduler.h"
namespace greta {

// Runs the parts as one step. If that fails, each half is tried alone, down to the request that is to blame.
void Scheduler::run(std::span<const Part> parts) {
  const Status status = guarded([&] { return submit(parts); });
  if (status.ok()) return;
  if (parts.size() == 1) {
    Request& request = *parts[0].request;
    if (request.phase == Request::Phase::Running) fail(request, status);
    return;
  }
  run(parts.first(parts.size() / 2));
  run(parts.subspan(parts.size() / 2));
}

// Submits a step, and collects the one before. The device goes on with this one if it can.
Status Scheduler::submit(std::span<const Part> parts) {
  using Output = Executor::Output;
  bool chooses = false;  // the host, so that the step after this one waits for it
  rows_.clear();
  next_.parts.clear();
  for (const Part& part : parts) {
    Request& request = *part.request;
    if (request.phase != Request::Phase::Running) continue;  // it has ended since the step was planned
    next_.parts.push_back(part);
    const Output output = request.on_device() ? Output::Draw : Output::Logits;
    chooses |= !request.on_device() || part.pooled;
    for (uint32_t at = part.begin; at < part.begin + part.count; ++at) {
      const uint32_t token = at < request.tokens().size() ? uint32_t(request.tokens()[at]) : kTokenFromSample;
      const bool last = at + 1 == part.begin + part.count;
      const bool gives = part.scores || (part.draws && last);
      const bool pools = part.pooled && request.pooled()->wants(at);
      rows_.push_back({token, at, request.sequence, pools ? Output::Hidden : gives ? output : Output::None});
    }
  }
  if (rows_.empty()) return {};
  next_.begun_ns = options_.now();
  GRETA_TRY(executor_.submit(rows_, &next_.flight));
  next_.rows = uint32_t(rows_.size());
  for (const Part& part : next_.parts) {
    part.request->fed = part.begin + part.count;
    part.request->drawing += part.draws;
  }
  collect();
  std::swap(under_way_, next_);
  any_under_way_ = true;
  if (!ahead_ || chooses) collect();
  return {};
}

// Waits for the step that is under way, and gives its tokens to their requests. Returns false if there is
// none.
bool Scheduler::collect() {
  if (!any_under_way_) return false;
  any_under_way_ = false;
  const Status waited = guarded([&] { return executor_.wait(under_way_.flight); });
  const uint64_t now = options_.now();
  clock_.note(under_way_.rows, now - std::max(under_way_.begun_ns, collected_ns_));
  collected_ns_ = now;
  ++counts_.steps;
  counts_.rows += under_way_.rows;
  const float* logits = executor_.logits();
  for (const Part& part : under_way_.parts) {
    Request& request = *part.request;
    request.drawing -= part.draws;
    const bool running = request.phase == Request::Phase::Running;
    if (running && !waited.ok()) fail(request, waited);
    if (running && waited.ok() && part.outputs()) take_outputs(part, logits);
    if (running && waited.ok() && part.pooled) take_pooled(part, logits);
    logits += uint64_t(part.pooled) * executor_.model().shape.width;
    if (!request.on_device()) logits += uint64_t(part.outputs()) * executor_.model().shape.vocab;
  }
  return true;
}

// logits: [outputs of the part][vocab], where the host chooses
void Scheduler::take_outputs(const Part& part, const float* logits) {
  Request& request = *part.request;
  const uint64_t vocab = executor_.model().shape.vocab;
  const uint32_t last = part.begin + part.count - 1;
  const Status status = guarded([&]() -> Status {
    if (request.on_device()) {
      const uint32_t drawn = executor_.drawn(request.sequence, last);
      return drawn == kNoDraw ? no_finite_logit() : request.take(int32_t(drawn));
    }
    for (uint32_t row = 0; part.scores && row < part.count; ++row)
      GRETA_TRY(request.score(part.begin + row, logits + row * vocab));
    return part.draws ? request.choose(logits + (part.outputs() - 1) * vocab) : Status{};
  });
  if (!status.ok()) return fail(request, status);
  if (request.phase == Request::Phase::Ended) leave(request);
}

// states: [pooled rows of the part][width]
void Scheduler::take_pooled(const Part& part, const float* states) {
  Request& request = *part.request;
  const uint32_t width = executor_.model().shape.width;
  const Status status = guarded([&]() -> Status {
    for (uint32_t at = part.begin; at < part.begin + part.count; ++at)
      if (request.pooled()->wants(at)) GRETA_TRY(request.pool(at, std::exchange(states, states + width)));
    return {};
  });
  if (!status.ok()) return fail(request, status);
  if (request.phase == Request::Phase::Ended) leave(request);
}

}  // namespace greta
