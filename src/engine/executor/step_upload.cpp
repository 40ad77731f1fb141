#include "engine/executor/step_upload.h"

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstring>

namespace greta {

StepUpload::StepUpload(const Model& model, ExecutorDevices& on, const Sequences& sequences,
                       const Flights& flights, const ExecutorOptions& options, const ExecutorPlan& plan)
    : model_(model),
      on_(on),
      sequences_(sequences),
      flights_(flights),
      options_(options),
      plan_(plan),
      lone_there_(on.size()),
      sampling_changed_(options.sequences, true) {}

Status StepUpload::open() {
  host_.assign(divide_up(on_[0].step.buffer().bytes, sizeof(uint64_t)), 0);
  host().sequence_capacity = options_.sequences;
  host().page_capacity = plan_.pages_per_sequence;
  for (uint32_t d = 0; d < on_.size(); ++d) GRETA_TRY(copy(d, &host(), on_[d].step.buffer().bytes));
  return on_.wait_all();
}

void StepUpload::set_sampling(uint32_t sequence, const DeviceSampling& sampling) {
  host().sample[sequence] = sampling.params;
  penalties()[sequence] = sampling.penalties;
  sampling_changed_[sequence] = true;
}

void StepUpload::set_prefixes(const SharedPrefixes& found) {
  if (!memcmp(&found, shared_prefixes(), sizeof found)) return;
  memcpy(shared_prefixes(), &found, sizeof found);
  prefixes_there_ = false;
}

Status StepUpload::copy(uint32_t device, const void* from, uint64_t bytes) {
  ExecutorOnDevice& on = on_[device];
  const DeviceMemory& staged = on.staged[flights_.next()].step;
  const auto* state = reinterpret_cast<const uint8_t*>(host_.data());
  const auto offset = uint64_t(static_cast<const uint8_t*>(from) - state);
  memcpy(static_cast<uint8_t*>(staged.buffer().mapped) + offset, from, bytes);
  return on_device(model_, device,
                   on.stream->copy(on.step.slice(offset, bytes), staged.slice(offset, bytes)));
}

Status StepUpload::copy(const void* from, uint64_t bytes) {
  for (uint32_t d = 0; d < on_.size(); ++d) GRETA_TRY(copy(d, from, bytes));
  return {};
}

void StepUpload::write_rows(std::span<const TokenRow> rows) {
  StepState& state = host();
  const uint32_t count = uint32_t(rows.size());
  for (uint32_t t = 0; t < count; ++t)
    state.row[t] = {rows[t].token, rows[t].position, rows[t].sequence, kNoOutput};
  state.token_count = count;
  state.output_count = 0;
  for (const RowOutput kind : {RowOutput::Hidden, RowOutput::Logits, RowOutput::Draw}) {
    state.first_drawn = state.output_count;
    for (uint32_t t = 0; t < count; ++t) {
      if (rows[t].output != kind) continue;
      state.row[t].output = state.output_count;
      state.output_row[state.output_count++] = t;
    }
  }
}

Status StepUpload::rows(const std::vector<bool>& takes_lone, uint32_t lone) {
  StepState& state = host();
  const std::span<const StepRow> rows = {state.row, state.token_count};
  const bool same = rows.size() == rows_there_.size() && state.first_drawn == first_drawn_there_ &&
                    !memcmp(rows.data(), rows_there_.data(), rows.size_bytes());
  rows_there_.clear();  // stays so if the copy fails
  for (uint32_t d = 0; d < on_.size(); ++d) {
    state.lone_count = takes_lone[d] ? lone : 0;
    if (same && state.lone_count == lone_there_[d]) continue;
    GRETA_TRY(copy(d, &state, offsetof(StepState, row) + rows.size_bytes()));
    lone_there_[d] = state.lone_count;
  }
  rows_there_.assign(rows.begin(), rows.end());
  first_drawn_there_ = state.first_drawn;
  const std::span<const uint32_t> outputs = {state.output_row, state.output_count};
  const bool known = outputs.size() <= output_rows_there_.size();
  if (known && std::equal(outputs.begin(), outputs.end(), output_rows_there_.begin())) return {};
  output_rows_there_.clear();
  GRETA_TRY(copy(state.output_row, outputs.size_bytes()));
  output_rows_there_.assign(outputs.begin(), outputs.end());
  return {};
}

Status StepUpload::runs(std::span<const TokenRow> rows) {
  if (!sequences_.states()) return {};
  StepRuns made = {};
  for (uint32_t t = 0; t < rows.size(); ++t) {
    if (t == 0 || rows[t].sequence != rows[t - 1].sequence)
      made.run[made.count++] = {t, 0, sequences_.state(rows[t].sequence)};
    ++made.run[made.count - 1].count;
    made.run_of[t] = made.count - 1;
  }
  return runs(made);
}

Status StepUpload::runs(const StepRuns& runs) {
  if (runs_there_ && !memcmp(&runs, &*runs_there_, sizeof runs)) return {};
  runs_there_.reset();  // stays so if the copy fails
  for (ExecutorOnDevice& on : on_) {
    const DeviceMemory& staged = on.staged[flights_.next()].runs;
    memcpy(staged.buffer().mapped, &runs, sizeof runs);
    GRETA_TRY(on.stream->copy(on.runs.slice(0, sizeof runs), staged.slice(0, sizeof runs)));
  }
  runs_there_ = runs;
  return {};
}

Status StepUpload::prefixes() {
  if (prefixes_there_) return {};
  GRETA_TRY(copy(shared_prefixes(), sizeof(SharedPrefixes)));
  prefixes_there_ = true;
  return {};
}

// Uploads a sequence's page table unless the device has it. Entries before its pages stay what they were,
// pages of the pool in which no kernel uses anything.
Status StepUpload::table(uint32_t group, uint32_t sequence) {
  const PagePool& pool = sequences_.pool(group);
  const std::span<const uint32_t> table = pool.table(sequence).subspan(pool.gone(sequence));
  uint32_t* row = tables(group) + uint64_t(sequence) * plan_.pages_per_sequence + pool.gone(sequence);
  if (table.empty() || memcmp(row, table.data(), table.size_bytes()) == 0) return {};
  memcpy(row, table.data(), table.size_bytes());
  return copy(row, table.size_bytes());
}

Status StepUpload::sequences() {
  StepState& state = host();
  for (const PagePool::Want& want : sequences_.wants()) {
    for (uint32_t g = 0; g < plan_.groups.count; ++g) GRETA_TRY(table(g, want.sequence));
    if (sampling_changed_[want.sequence]) {
      GRETA_TRY(copy(&state.sample[want.sequence], sizeof(SampleParams)));
      GRETA_TRY(copy(&penalties()[want.sequence], sizeof(SamplePenalties)));
      sampling_changed_[want.sequence] = false;
    }
  }
  return {};
}

// Writes the token log of the device that draws, where another one embeds and logs only for itself.
Status StepUpload::log_tokens(std::span<const TokenRow> rows) {
  ExecutorOnDevice& on = on_.ends();
  const DeviceMemory& staged = on.staged[flights_.next()].tokens;
  uint32_t* tokens = static_cast<uint32_t*>(staged.buffer().mapped);
  constexpr uint64_t kBytes = sizeof(uint32_t);
  for (size_t first = 0, end = 0; first < rows.size(); first = end) {
    const auto [token, position, sequence, output] = rows[first];
    const auto goes_on = [&] {
      const uint32_t next = position + uint32_t(end - first);
      return end < rows.size() && rows[end].sequence == sequence && rows[end].position == next &&
             (end == first || next % kPageTokens);
    };
    for (end = first; goes_on(); ++end) tokens[end] = rows[end].token;
    const uint64_t page = sequences_.pool(0).table(sequence)[position / kPageTokens];
    const uint64_t at = page * kPageTokens + position % kPageTokens, count = end - first;
    GRETA_TRY(on_device(model_, model_.placement.output(),
                        on.stream->copy(on.token_log.slice(at * kBytes, count * kBytes),
                                        staged.slice(first * kBytes, count * kBytes))));
  }
  return {};
}

// The last drawn output of each sequence makes its row that of the token drawn, one position further
// (SampleBlock). Of several devices only that of the output draws, so that their rows are no longer the same.
void StepUpload::follow_draws() {
  const StepState& state = host();
  if (on_.size() > 1 && state.first_drawn < state.output_count) rows_there_.clear();
  if (rows_there_.empty()) return;
  std::bitset<kMaxStepSequences> drawn;
  for (uint32_t i = state.output_count; i-- > state.first_drawn;) {
    StepRow& row = rows_there_[state.output_row[i]];
    if (drawn[row.sequence]) continue;
    drawn.set(row.sequence);
    row.token = kTokenFromSample;
    ++row.position;
  }
}

void StepUpload::forget() {
  rows_there_.clear();
  output_rows_there_.clear();
  runs_there_.reset();
  prefixes_there_ = false;
  std::fill(sampling_changed_.begin(), sampling_changed_.end(), true);
  for (uint32_t g = 0; g < plan_.groups.count; ++g)
    std::fill_n(tables(g), uint64_t(options_.sequences) * plan_.pages_per_sequence,
                ~0u);  // no table is equal to this
}

}  // namespace greta
