// Allocates what an executor has on each device, and writes its tables.
#include "engine/executor/memory.h"
#include "engine/model/rope.h"

namespace greta {

Status Executor::allocate(uint32_t index) {
  Device& device = this->device(index);
  OnDevice& on = on_[index];
  StepBuffers& b = on.buffers;
  const Shape& s = model_.shape;
  const Needs needs = needs_of(model_)[index];
  Stream* stream = nullptr;
  GRETA_TRY(device.create_stream(&stream));
  on.stream.reset(stream);
  on.kernels = std::make_unique<KernelSet>(*model_.devices[index].kernels);

  const uint64_t state = plan_.groups.count * step_state_bytes(options_.sequences, plan_.pages_per_sequence);
  GRETA_TRY(on.step.allocate(device, state, Memory::Device));
  host_step_.assign(divide_up(state, sizeof(uint64_t)), 0);
  for (uint32_t f = 0; f < kFlights; ++f) {
    GRETA_TRY(on.staged[f].step.allocate(device, state, Memory::Upload));
    if (plan_.states) GRETA_TRY(on.staged[f].runs.allocate(device, sizeof(StepRuns), Memory::Upload));
    if (needs.outputs && !needs.embeds)
      GRETA_TRY(on.staged[f].tokens.allocate(device, kMaxStepTokens * sizeof(uint32_t), Memory::Upload));
    if (needs.outputs) GRETA_TRY(device.create_event(&flights_[f].done, false));
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
Status Executor::allocate_crossing(uint32_t index) {
  Device& device = this->device(index);
  OnDevice& on = on_[index];
  const Needs needs = needs_of(model_)[index];
  if (needs.residual)
    GRETA_TRY(on.residual.allocate(device, residual_bytes(model_.shape, plan_.step_tokens), Memory::Device));
  on.buffers.residual = on.residual.all();
  if (plan_.passes() && index == model_.placement.layer(0)) {
    const uint64_t bytes = kPassPieces * residual_bytes(model_.shape, plan_.step_tokens);
    GRETA_TRY(on.residuals.allocate(device, bytes, Memory::Device));
    for (Staged& staged : on.staged)
      GRETA_TRY(staged.pieces.allocate(device, kPassPieces * kRowsBytes, Memory::Upload));
  }
  if (needs.residual_crosses) GRETA_TRY(allocate_residuals(index));
  if (!needs.crosses) return {};
  const uint64_t bytes = crossing_bytes(model_, on.buffers, index, plan_.step_tokens);
  GRETA_TRY(on.arrives.allocate(device, bytes, Memory::Upload));
  GRETA_TRY(on.leaves.allocate(device, bytes, Memory::Readback));
  on.buffers.arrives = on.arrives.all();
  on.buffers.leaves = on.leaves.all();
  return {};
}

// Host memory for the residuals of the steps under way. Devices that can, share it, so that what one of them
// writes is where the next one reads it.
Status Executor::allocate_residuals(uint32_t index) {
  Device& device = this->device(index);
  Between& between = between_[index];
  const uint64_t bytes = kFlights * residual_bytes(model_.shape, plan_.step_tokens);
  if (device.info().shares_host) {
    if (!shared_.pages() && !shared_.map(bytes))
      return fail(Code::Memory, "there are no %llu bytes of host memory", (unsigned long long)bytes);
    const Status imported = between.comes.share_host(device, shared_.pages(), bytes);
    if (imported.ok() || imported.code == Code::Device) return imported;
    model_.log(LogLevel::Debug, "%s: what crosses is copied: %s", model_.devices[index].id, error_text());
    clear_error_text();
  }
  GRETA_TRY(between.comes.allocate(device, bytes, Memory::Upload));
  return between.goes.allocate(device, bytes, Memory::Readback);
}

Status Executor::allocate_cache(uint32_t index) {
  Device& device = this->device(index);
  OnDevice& on = on_[index];
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

// Uploads the ones, the rope tables and the StepState, and clears the token log and the counters.
Status Executor::upload_tables(uint32_t index) {
  const Shape& s = model_.shape;
  OnDevice& on = on_[index];
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
  host_state().sequence_capacity = options_.sequences;
  host_state().page_capacity = plan_.pages_per_sequence;
  GRETA_TRY(upload(index, &host_state(), on.step.buffer().bytes));
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
