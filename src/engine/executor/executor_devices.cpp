#include "engine/executor/executor_devices.h"

#include <algorithm>

#include "engine/executor/memory.h"
#include "engine/model/rope.h"

namespace greta {

ExecutorDevices::ExecutorDevices(Model& model, const ExecutorOptions& options, const ExecutorPlan& plan)
    : model_(model), options_(options), plan_(plan), on_(model.devices.size()) {}

void ExecutorDevices::drain_all() {
  for (ExecutorOnDevice& on : on_)
    if (on.stream) drain(*on.stream);
}

ExecutorDevices::~ExecutorDevices() {
  drain_all();
  for (ExecutorOnDevice& on : on_) on.stream.reset();  // before the memory that it uses
}

Status ExecutorDevices::open() {
  for (uint32_t d = 0; d < size(); ++d) GRETA_TRY(on_device(model_, d, allocate(d)));
  return {};
}

bool ExecutorDevices::has_processor() const {
  return std::ranges::any_of(model_.devices,
                             [](const ModelDevice& on) { return on.device->info().host_functions; });
}

Slice ExecutorDevices::state_of(uint32_t layer, uint32_t state) const {
  const Slice& states = cache_of(layer).states;
  const uint64_t bytes = model_.shape.recurrence.stride() * sizeof(float);
  return {states.buffer, states.offset + state * bytes, bytes};
}

Status ExecutorDevices::barrier() {
  for (uint32_t d = 0; d < size(); ++d) GRETA_TRY(on_device(model_, d, on_[d].stream->barrier()));
  return {};
}

Status ExecutorDevices::wait_all() {
  return guarded([&]() -> Status {
    for (uint32_t d = 0; d < size(); ++d) GRETA_TRY(on_device(model_, d, on_[d].stream->wait()));
    return {};
  });
}

Status ExecutorDevices::allocate(uint32_t index) {
  Device& device = this->device(index);
  ExecutorOnDevice& on = on_[index];
  StepBuffers& b = on.buffers;
  const Shape& s = model_.shape;
  const Needs needs = needs_of(model_)[index];
  Stream* stream = nullptr;
  GRETA_TRY(device.create_stream(&stream));
  on.stream.reset(stream);
  on.kernels = std::make_unique<KernelSet>(*model_.devices[index].kernels);

  const uint64_t state = plan_.groups.count * step_state_bytes(options_.sequences, plan_.pages_per_sequence);
  GRETA_TRY(on.step.allocate(device, state, Memory::Device));
  for (uint32_t f = 0; f < kFlights; ++f) {
    GRETA_TRY(on.staged[f].step.allocate(device, state, Memory::Upload));
    if (plan_.states) GRETA_TRY(on.staged[f].runs.allocate(device, sizeof(StepRuns), Memory::Upload));
    if (needs.outputs && !needs.embeds)
      GRETA_TRY(on.staged[f].tokens.allocate(device, kMaxStepTokens * sizeof(uint32_t), Memory::Upload));
  }
  if (plan_.states) GRETA_TRY(on.runs.allocate(device, sizeof(StepRuns), Memory::Device));
  if (needs.outputs) GRETA_TRY(on.drawn.allocate(device, kDrawnBytes, Memory::Readback));
  const uint64_t ones = needs.layers || model_.arch->scale_inputs ? ones_bytes(model_, plan_.step_tokens) : 0;
  const uint64_t rope_bytes = needs.layers ? rope_tables_bytes(s, plan_.context) : 0;
  if (ones + rope_bytes) GRETA_TRY(on.rope.allocate(device, ones + rope_bytes, Memory::Device));
  if (needs.embeds || needs.outputs)
    GRETA_TRY(on.token_log.allocate(device, log_bytes(plan_.pages), Memory::Device));
  GRETA_TRY(on.counters.allocate(device, kCounterCount * sizeof(uint32_t), Memory::Device));
  if (needs.outputs)
    GRETA_TRY(on.readback.allocate(device, readback_bytes(s, options_, plan_.step_tokens), Memory::Readback));
  if (plan_.on[index].arena) GRETA_TRY(on.arena.allocate(device, plan_.on[index].arena, Memory::Device));

  GRETA_TRY(describe_cache(model_, options_, &b));
  GRETA_TRY(allocate_crossing(index));
  GRETA_TRY(allocate_cache(index));
  b.groups = plan_.groups.count;
  b.step = on.step.all();
  if (plan_.states) b.runs = on.runs.all();
  if (ones) b.ones = on.rope.slice(0, ones);
  uint64_t at = ones;
  for (uint32_t i = 0; rope_bytes && i < s.rope_tables; ++i) {
    const uint64_t bytes = rope_table_bytes(s.rope[i], plan_.context);
    b.rope[i] = on.rope.slice(at, bytes);
    at += bytes;
  }
  b.token_log = on.token_log.all();
  b.counters = on.counters.all();
  b.drawn = on.drawn.all();
  b.readback = on.readback.all();
  return upload_tables(index);
}

// Memory for what crosses to other devices, and for a residual that stays meanwhile.
Status ExecutorDevices::allocate_crossing(uint32_t index) {
  Device& device = this->device(index);
  ExecutorOnDevice& on = on_[index];
  const Needs needs = needs_of(model_)[index];
  if (needs.residual)
    GRETA_TRY(on.residual.allocate(device, residual_bytes(model_.shape, plan_.step_tokens), Memory::Device));
  on.buffers.residual = on.residual.all();
  if (plan_.passes() && index == model_.placement.layer(0)) {
    const uint64_t bytes = kPassPieces * residual_bytes(model_.shape, plan_.step_tokens);
    GRETA_TRY(on.residuals.allocate(device, bytes, Memory::Device));
    for (StagedStep& staged : on.staged)
      GRETA_TRY(staged.pieces.allocate(device, kPassPieces * kRowsBytes, Memory::Upload));
  }
  if (!needs.crosses) return {};
  const uint64_t bytes = crossing_bytes(model_, on.buffers, index, plan_.step_tokens);
  GRETA_TRY(on.arrives.allocate(device, bytes, Memory::Upload));
  GRETA_TRY(on.leaves.allocate(device, bytes, Memory::Readback));
  on.buffers.arrives = on.arrives.all();
  on.buffers.leaves = on.leaves.all();
  return {};
}

Status ExecutorDevices::allocate_cache(uint32_t index) {
  Device& device = this->device(index);
  ExecutorOnDevice& on = on_[index];
  set_groups(model_.shape, plan_.groups, &on.buffers);
  const auto pages_of = [&](const StepBuffers::Cache& layer) -> uint64_t {
    return plan_.groups.group[layer.group].pages;
  };
  const auto states_of = [&](uint32_t layer) {
    return plan_.states * layer_state_bytes(model_.shape, layer);
  };
  const auto inputs_of = [&](uint32_t layer) {
    return state_inputs_bytes(*model_.arch, model_.shape, layer);
  };
  const auto here = [&](uint32_t layer) { return model_.placement.layer(layer) == index; };
  std::vector<uint64_t> slices;
  for (uint32_t l = 0; l < model_.shape.cached_layers(); ++l) {
    const StepBuffers::Cache& layer = on.buffers.cache[l];
    if (!here(l)) continue;
    for (const uint64_t bytes : {states_of(l), inputs_of(l)})
      if (bytes) slices.push_back(bytes);
    if (!layer.key_page_bytes) continue;
    slices.push_back(pages_of(layer) * layer.key_page_bytes);
    if (!layer.joined) slices.push_back(pages_of(layer) * layer.value_page_bytes);
  }
  on.cache = std::make_unique<Pool>(device, arena_limit(device.info()), std::move(slices));
  for (uint32_t l = 0; l < model_.shape.cached_layers(); ++l) {
    StepBuffers::Cache& layer = on.buffers.cache[l];
    if (!here(l)) continue;
    if (const uint64_t bytes = states_of(l)) GRETA_TRY(on.cache->take(bytes, &layer.states));
    if (const uint64_t bytes = inputs_of(l)) GRETA_TRY(on.cache->take(bytes, &layer.inputs));
    if (!layer.key_page_bytes) continue;
    GRETA_TRY(on.cache->take(pages_of(layer) * layer.key_page_bytes, &layer.keys));
    layer.values = layer.keys;
    if (!layer.joined) GRETA_TRY(on.cache->take(pages_of(layer) * layer.value_page_bytes, &layer.values));
  }
  const uint64_t bytes = head_states_bytes(model_.shape, options_, plan_.step_tokens);
  if (!bytes || index != model_.placement.output()) return {};
  GRETA_TRY(on.head_states.allocate(device, bytes, Memory::Device));
  set_head_states(model_.shape, on.head_states.all(), plan_.step_tokens, &on.buffers);
  return {};
}

// Uploads the ones and the rope tables, and clears the token log and the counters.
Status ExecutorDevices::upload_tables(uint32_t index) {
  const Shape& s = model_.shape;
  ExecutorOnDevice& on = on_[index];
  std::vector<float> tables(on.rope.buffer().bytes / sizeof(float), 1.0f);
  const uint64_t ones = on.buffers.ones.bytes / sizeof(float);
  float* table = tables.data() + ones;
  for (uint32_t i = 0; tables.size() > ones && i < s.rope_tables; ++i) {
    fill_rope_table(s, model_.weights(), i, plan_.context, table);
    table += rope_table_bytes(s.rope[i], plan_.context) / sizeof(float);
  }
  Staging staging;
  GRETA_TRY(staging.open(device(index), 1 << 20));
  if (!tables.empty())
    GRETA_TRY(staging.upload(
        on.rope.all(),
        [](void* context, uint64_t offset, void* host, uint64_t bytes) {
          __builtin_memcpy(host, static_cast<const uint8_t*>(context) + offset, bytes);
          return Status{};
        },
        tables.data()));
  GRETA_TRY(staging.finish());
  if (on.token_log.buffer().bytes) GRETA_TRY(on.stream->fill(on.token_log.all(), 0));
  GRETA_TRY(on.stream->fill(on.counters.all(), 0));
  // The head may have to guess where it has not read all of a text.
  if (on.head_states.buffer().bytes) {
    const StepBuffers::Cache& cache = on.buffers.cache[s.layers];
    GRETA_TRY(on.stream->fill(on.head_states.all(), 0));
    GRETA_TRY(on.stream->fill(cache.keys, 0));
    if (!cache.joined) GRETA_TRY(on.stream->fill(cache.values, 0));
  }
  return on.stream->wait();
}

}  // namespace greta
