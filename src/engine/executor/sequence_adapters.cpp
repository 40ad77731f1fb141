// The adapters of an executor's sequences: which of them a step has, with which scale for each row.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engine/executor/executor.h"

namespace greta {

constexpr size_t kMaxSets = 8;  // whose plans are kept

// The scales of rows, and behind them a StepState for the rows of logits.
constexpr uint64_t kScalesBytes = kMaxStepAdapters * kMaxStepTokens * sizeof(float);
constexpr uint64_t kScalesAndState = kScalesBytes + sizeof(StepState);

uint64_t Executor::adapter_bytes(uint32_t index) const {
  const OnDevice& on = on_[index];
  return on.adapter_arena.buffer().bytes + (on.scales.buffer().bytes ? (1 + kFlights) * kScalesAndState : 0);
}

Status Executor::set_adapters(uint32_t sequence, std::shared_ptr<const AdapterList> adapters) {
  if (adapters) {
    for (uint32_t d = 0; d < on_.size(); ++d) GRETA_TRY(on_device(model_, d, allocate_scales(d)));
    std::vector<std::shared_ptr<const Adapter>> wanted;
    for (const AdapterUse& use : adapters->uses()) wanted.push_back(use.adapter);
    StepKey key{.tokens = plan_.step_tokens};
    GRETA_TRY(find_set(std::move(wanted), &key.adapters));
    // The largest steps need the most memory. It is there before the first of them runs.
    for (const bool sample : {false, true}) {
      key.sample = sample;
      key.outputs = key.logits = output_bucket(
          std::min(sample ? max_draws(options_) : options_.output_rows, key.tokens), key.tokens);
      GRETA_TRY(reserve_arena(key));
    }
  }
  adapters_[sequence] = std::move(adapters);
  return {};
}

Status Executor::allocate_scales(uint32_t index) {
  OnDevice& on = on_[index];
  if (on.scales.buffer().bytes) return {};
  for (Staged& staged : on.staged)
    if (!staged.scales.buffer().bytes)
      GRETA_TRY(staged.scales.allocate(device(index), kScalesAndState, Memory::Upload));
  GRETA_TRY(on.scales.allocate(device(index), kScalesAndState, Memory::Device));
  const Status filled = on.stream->fill(on.scales.all(), 0);
  const Status done = filled.ok() ? on.stream->wait() : filled;
  if (!done.ok()) on.scales.reset();
  on.buffers.scales = on.scales.slice(0, kScalesBytes);
  on.buffers.output_step = on.scales.slice(kScalesBytes, sizeof(StepState));
  return done;
}

// Forgets plans with adapters, or those of one set. No step may be under way.
void Executor::drop_plans(uint32_t set) {
  for (Flight& flight : flights_) flight.clock_set.reset();  // launches of these plans are told no more
  std::erase_if(plans_,
                [&](const Planned& plan) { return set ? plan.key.adapters == set : plan.key.adapters != 0; });
}

// Gives the number of the set of these adapters. A new one takes the place of that which was not used for
// longest, or of those with an adapter that was closed.
Status Executor::find_set(std::vector<std::shared_ptr<const Adapter>>&& adapters, uint32_t* number) {
  if (adapters.size() > kMaxStepAdapters)
    return fail(Code::Full, "%zu adapters in a step, at most %u", adapters.size(), kMaxStepAdapters);
  std::ranges::sort(adapters, {}, [](const auto& adapter) { return adapter->identity(); });
  const auto stale = [](const AdapterSet& set) {
    return std::ranges::any_of(set.adapters, [](const auto& adapter) { return adapter->closed(); });
  };
  auto found = std::ranges::find(sets_, adapters, &AdapterSet::adapters);
  const bool is_new = found == sets_.end();
  if (std::ranges::any_of(sets_, stale) || (is_new && sets_.size() == kMaxSets)) {
    GRETA_TRY(wait_all());
    const auto drop = [&](const AdapterSet& set) { return drop_plans(set.number), true; };
    std::erase_if(sets_, [&](const AdapterSet& set) { return stale(set) && drop(set); });
    if (is_new && sets_.size() == kMaxSets) {
      drop(sets_.front());
      sets_.erase(sets_.begin());
    }
    found = std::ranges::find(sets_, adapters, &AdapterSet::adapters);
  }
  if (found == sets_.end())
    sets_.push_back({++last_set_, std::move(adapters)});
  else
    std::rotate(found, found + 1, sets_.end());  // the one that was used last comes last
  *number = sets_.back().number;
  return {};
}

void Executor::give_adapters(const StepKey& key, StepBuffers* to) const {
  const auto set = std::ranges::find(sets_, key.adapters, &AdapterSet::number);
  to->adapters = {};
  if (set != sets_.end()) to->adapters = set->adapters;
}

// Makes the arenas of steps with adapters large enough for a plan, which drops those that were made with
// smaller ones.
Status Executor::reserve_arena(const StepKey& key) {
  for (const Segment& segment : segments_) {
    OnDevice& on = on_[segment.device];
    GretaGraph graph(model_.devices[segment.device].filter);
    give_adapters(key, &on.buffers);
    GRETA_TRY(build_step(*model_.arch, model_.shape, model_.weights(), on.buffers, key, &graph, segment));
    const uint64_t bytes = round_up(graph.arena_bytes(), 256);
    if (bytes <= on.adapter_arena.buffer().bytes) continue;
    GRETA_TRY(wait_all());
    drop_plans(0);
    on.adapter_arena.reset();
    GRETA_TRY(on_device(model_, segment.device,
                        within(on.adapter_arena.allocate(device(segment.device), bytes, Memory::Device),
                               "working memory for adapters")));
  }
  return {};
}

// Finds out which adapters the rows have.
Status Executor::find_adapters(std::span<const Row> rows, StepKey* key) {
  std::vector<std::shared_ptr<const Adapter>> wanted;
  const auto each_use = [&](const auto& visit) {
    for (uint32_t t = 0; t < rows.size(); ++t)
      if (const AdapterList* list = adapters_[rows[t].sequence].get())
        for (const AdapterUse& use : list->uses()) visit(t, use);
  };
  each_use([&](uint32_t, const AdapterUse& use) {
    if (std::ranges::find(wanted, use.adapter) == wanted.end()) wanted.push_back(use.adapter);
  });
  if (wanted.empty()) return {};
  GRETA_TRY(find_set(std::move(wanted), &key->adapters));
  const auto& adapters = sets_.back().adapters;
  scales_.assign(adapters.size() * key->tokens, 0);
  each_use([&](uint32_t t, const AdapterUse& use) {
    const size_t index = size_t(std::ranges::find(adapters, use.adapter) - adapters.begin());
    scales_[index * key->tokens + t] = use.scale * use.adapter->factor();
  });
  return {};
}

// Uploads the scales of the rows and the number of output rows, unless the devices have them.
Status Executor::upload_scales(const StepKey& key) {
  if (!key.adapters) return {};
  const uint32_t outputs = host_state().output_count;
  if (scales_ == scales_there_ && outputs == outputs_there_) return {};
  scales_there_.clear();  // stays so if a copy fails
  const uint64_t bytes = scales_.size() * sizeof(float);
  const Slice count = {nullptr, kScalesBytes + offsetof(StepState, token_count), sizeof outputs};
  for (OnDevice& on : on_) {
    const DeviceMemory& staged = on.staged[flight_].scales;
    memcpy(staged.buffer().mapped, scales_.data(), bytes);
    memcpy(static_cast<uint8_t*>(staged.buffer().mapped) + count.offset, &outputs, sizeof outputs);
    GRETA_TRY(on.stream->copy(on.scales.slice(0, bytes), staged.slice(0, bytes)));
    GRETA_TRY(
        on.stream->copy(on.scales.slice(count.offset, count.bytes), staged.slice(count.offset, count.bytes)));
  }
  scales_there_ = scales_;
  outputs_there_ = outputs;
  return {};
}

}  // namespace greta
