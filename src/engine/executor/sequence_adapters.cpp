#include "engine/executor/sequence_adapters.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace greta {

// The scales of rows, and behind them a StepState for the rows of logits.
constexpr uint64_t kScalesBytes = kMaxStepAdapters * kMaxStepTokens * sizeof(float);
constexpr uint64_t kScalesAndState = kScalesBytes + sizeof(StepState);

static void sort_by_identity(StepPlans::Adapters* adapters) {
  std::ranges::sort(*adapters, {}, [](const auto& adapter) { return adapter->identity(); });
}

// The scales of all rows for each adapter, where these are the same and plans take them as constants: on a
// processor, where each launch that scales rows is waited for. With `exact` a row has the bits that it has
// beside any others, so its scale is always read. Else empty.
static std::vector<float> same_scales(const Model& model, std::span<const float> scales, size_t rows,
                                      uint32_t tokens) {
  const auto calls_functions = [](const ModelDevice& on) { return on.device->info().host_functions; };
  if (model.exact || !std::ranges::all_of(model.devices, calls_functions)) return {};
  std::vector<float> same;
  for (size_t first = 0; first < scales.size(); first += tokens) {
    const std::span<const float> of_rows = scales.subspan(first, rows);
    if (std::ranges::count(of_rows, of_rows[0]) != ptrdiff_t(rows)) return {};
    same.push_back(of_rows[0]);
  }
  return same;
}

SequenceAdapters::SequenceAdapters(const Model& model, ExecutorDevices& on, StepPlans& plans,
                                   const Flights& flights, const ExecutorOptions& options,
                                   const ExecutorPlan& plan)
    : model_(model),
      on_(on),
      plans_(plans),
      flights_(flights),
      options_(options),
      plan_(plan),
      adapters_(options.sequences) {}

uint64_t SequenceAdapters::bytes(uint32_t index) const {
  const ExecutorOnDevice& on = on_[index];
  return on.adapter_arena.buffer().bytes + (on.scales.buffer().bytes ? (1 + kFlights) * kScalesAndState : 0);
}

Status SequenceAdapters::set(uint32_t sequence, std::shared_ptr<const AdapterList> adapters) {
  if (adapters) {
    for (uint32_t d = 0; d < on_.size(); ++d) GRETA_TRY(on_device(model_, d, allocate_scales(d)));
    StepPlans::Adapters wanted;
    for (const AdapterUse& use : adapters->uses()) wanted.push_back(use.adapter);
    sort_by_identity(&wanted);
    StepKey key{.tokens = plan_.step_tokens};
    GRETA_TRY(plans_.find_set(std::move(wanted), {}, &key.adapters));
    // The largest steps need the most memory. It is there before the first of them runs.
    for (const bool sample : {false, true}) {
      key.sample = sample;
      key.outputs = key.logits = output_bucket(
          std::min(sample ? max_draws(options_) : options_.output_rows, key.tokens), key.tokens);
      GRETA_TRY(plans_.reserve_arena(key));
    }
  }
  adapters_[sequence] = std::move(adapters);
  return {};
}

Status SequenceAdapters::allocate_scales(uint32_t index) {
  ExecutorOnDevice& on = on_[index];
  if (on.scales.buffer().bytes) return {};
  for (StagedStep& staged : on.staged)
    if (!staged.scales.buffer().bytes)
      GRETA_TRY(staged.scales.allocate(on_.device(index), kScalesAndState, Memory::Upload));
  GRETA_TRY(on.scales.allocate(on_.device(index), kScalesAndState, Memory::Device));
  const Status filled = on.stream->fill(on.scales.all(), 0);
  const Status done = filled.ok() ? on.stream->wait() : filled;
  if (!done.ok()) on.scales.reset();
  on.buffers.scales = on.scales.slice(0, kScalesBytes);
  on.buffers.output_step = on.scales.slice(kScalesBytes, sizeof(StepState));
  return done;
}

Status SequenceAdapters::find(std::span<const TokenRow> rows, StepKey* key) {
  StepPlans::Adapters wanted;
  const auto each_use = [&](const auto& visit) {
    for (uint32_t t = 0; t < rows.size(); ++t)
      if (const AdapterList* list = adapters_[rows[t].sequence].get())
        for (const AdapterUse& use : list->uses()) visit(t, use);
  };
  each_use([&](uint32_t, const AdapterUse& use) {
    if (std::ranges::find(wanted, use.adapter) == wanted.end()) wanted.push_back(use.adapter);
  });
  if (wanted.empty()) return {};
  sort_by_identity(&wanted);
  const auto& adapters = wanted;
  scales_.assign(adapters.size() * key->tokens, 0);
  each_use([&](uint32_t t, const AdapterUse& use) {
    const size_t index = size_t(std::ranges::find(adapters, use.adapter) - adapters.begin());
    scales_[index * key->tokens + t] = use.scale * use.adapter->factor();
  });
  std::vector<float> same = same_scales(model_, scales_, rows.size(), key->tokens);
  return plans_.find_set(std::move(wanted), std::move(same), &key->adapters);
}

Status SequenceAdapters::upload(const StepKey& key, uint32_t outputs) {
  if (!key.adapters) return {};
  if (scales_ == scales_there_ && outputs == outputs_there_) return {};
  scales_there_.clear();  // stays so if a copy fails
  const uint64_t bytes = scales_.size() * sizeof(float);
  const Slice count = {nullptr, kScalesBytes + offsetof(StepState, token_count), sizeof outputs};
  for (ExecutorOnDevice& on : on_) {
    const DeviceMemory& staged = on.staged[flights_.next()].scales;
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
