#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstring>
#include <utility>

#include "engine/executor/attempt.h"
#include "engine/executor/deep_steps.h"

namespace greta {

Status Executor::acquire_sequence(uint32_t* out) {
  for (uint32_t i = 0; i < options_.sequences; ++i)
    if (!sequence_used_[i]) {
      sequence_used_[i] = true;
      *out = i;
      return {};
    }
  return fail(Code::Full, "all %u sequences of the executor are in use", options_.sequences);
}

void Executor::release_sequence(uint32_t sequence) {
  truncate(sequence, 0);
  forget_inputs(sequence);
  adapters_[sequence] = nullptr;
  sequence_used_[sequence] = false;
}

void Executor::fork_sequence(uint32_t from, uint32_t to, uint32_t position) {
  for (PagePool& pool : pools_) pool.fork(from, to, position);
  forget_inputs(to);
  not_there_[to] = not_there_[from];
  if (states_) {
    states_->fork(from, to, std::min(position, 1u));
    state_ends_[to] = position ? state_ends_[from] : 0;
  }
  if (checkpoints_) checkpoints_->fork(from, to, position);
  head_ends_[to] = {std::min(head_ends_[from].position, position)};
}

uint32_t Executor::truncate(uint32_t sequence, uint32_t position) {
  if (first_page_seen(window_, position) < not_there_[sequence]) position = not_there_[sequence] = 0;
  if (checkpoints_ && !stands_at(sequence, position) && !replay(sequence, position)) {
    position = checkpoints_->last(sequence, position);
    checkpoints_->resume(sequence, position);
    if (states_) state_ends_[sequence] = position;
  }
  for (PagePool& pool : pools_) pool.truncate(sequence, position);
  if (checkpoints_) checkpoints_->forget(sequence, position);
  HeadEnd& head = head_ends_[sequence];
  head.position = std::min(head.position, position);
  head.kept_end = std::min(head.kept_end, position);
  return position;
}

// Whether the sequence can go on at `position` without a checkpoint.
bool Executor::stands_at(uint32_t sequence, uint32_t position) const {
  return states_ ? state_ends_[sequence] == position : pools_[1].whole(sequence, position);
}

void Executor::keep_checkpoint(uint32_t sequence, uint32_t position) {
  if (!checkpoints_ || (states_ && !stands_at(sequence, position))) return;
  (void)guarded([&] { return checkpoints_->make(sequence, position), Status{}; });  // or there is none
}

void Executor::keep_passing_state(uint32_t sequence, uint32_t position) {
  if (!states_ || !stands_at(sequence, position)) return;
  if (position % kPageTokens == kFlights) checkpoints_->drop_passed(sequence);
  if (position % kPageTokens == 0)
    (void)guarded([&] { return checkpoints_->make(sequence, position, true), Status{}; });
}

bool Executor::keep_for_guesses(uint32_t sequence, uint32_t position) {
  if (!states_) return true;
  if (!stands_at(sequence, position)) return false;
  bool kept = false;
  // Beside these there is a state for each sequence and the spare one, so that no step lacks one.
  const auto keep = [&] {
    kept = checkpoints_->keep_for_guesses(sequence, position, plan_.checkpoints);
    return Status{};
  };
  return guarded(keep).ok() && kept;
}

void Executor::drop_for_guesses(uint32_t sequence) {
  if (states_) checkpoints_->drop_for_guesses(sequence);
}

// Frees pages of windows that no row sees. Returns false if there are none.
bool Executor::make_window_room() {
  const uint32_t before = pools_[1].free_pages();
  pools_[1].trim();
  return pools_[1].free_pages() > before || checkpoints_->give_up() || (spare_pages_ && spare_pages_());
}

bool Executor::free_window_page() {
  while (pools_[1].free_pages() == 0)
    if (!make_window_room()) return false;
  return true;
}

// By the plan of the pools, rows of steps have pages of windows if all else gives way.
Status Executor::reserve_windows(std::span<const PagePool::Want> wants) {
  if (!has_windows()) return {};
  return pools_[1].reserve(wants, &copies_[1], [this] { return make_window_room(); });
}

void Executor::set_sampling(uint32_t sequence, const DeviceSampling& sampling) {
  host_state().sample[sequence] = sampling.params;
  host_penalties()[sequence] = sampling.penalties;
  sampling_changed_[sequence] = true;
}

uint32_t Executor::max_outputs(uint32_t tokens) const { return std::min(tokens, options_.output_rows); }

const float* Executor::logits() const { return static_cast<const float*>(ends().readback.buffer().mapped); }

uint32_t Executor::drawn(uint32_t sequence, uint32_t position) const {
  return static_cast<const uint32_t*>(
      ends().drawn.buffer().mapped)[sequence * kDrawnPositions + position % kDrawnPositions];
}

Status Executor::upload(uint32_t device, const void* from, uint64_t bytes) {
  OnDevice& on = on_[device];
  const DeviceMemory& staged = on.staged[flight_].step;
  const auto* state = reinterpret_cast<const uint8_t*>(host_step_.data());
  const auto offset = uint64_t(static_cast<const uint8_t*>(from) - state);
  memcpy(static_cast<uint8_t*>(staged.buffer().mapped) + offset, from, bytes);
  return on_device(model_, device,
                   on.stream->copy(on.step.slice(offset, bytes), staged.slice(offset, bytes)));
}

Status Executor::upload(const void* from, uint64_t bytes) {
  for (uint32_t d = 0; d < on_.size(); ++d) GRETA_TRY(upload(d, from, bytes));
  return {};
}

// Copies shared pages in every layer before the step writes into them.
Status Executor::copy_pages() {
  const auto page = [](const Slice& pool, uint64_t index, uint64_t bytes) {
    return Slice{pool.buffer, pool.offset + index * bytes, bytes};
  };
  const auto copy_in = [&](OnDevice& on, const Slice& pool, const PagePool::Copy& copy, uint64_t bytes) {
    return on.stream->copy(page(pool, copy.to, bytes), page(pool, copy.from, bytes));
  };
  for (uint32_t g = 0; g < plan_.groups.count; ++g)
    for (const PagePool::Copy& copy : copies_[g]) {
      for (uint32_t l = 0; l < model_.shape.cached_layers(); ++l) {
        OnDevice& on = on_[model_.placement.layer(l)];
        const StepBuffers::Cache& layer = on.buffers.cache[l];
        if (layer.group != g || !layer.key_page_bytes) continue;
        GRETA_TRY(copy_in(on, layer.keys, copy, layer.key_page_bytes));
        if (!layer.joined) GRETA_TRY(copy_in(on, layer.values, copy, layer.value_page_bytes));
      }
      if (g == 0) GRETA_TRY(copy_in(ends(), ends().token_log.all(), copy, kPageTokens * sizeof(uint32_t)));
    }
  for (const PagePool::Copy& copy : state_copies_)
    for (uint32_t l = 0; l < model_.shape.layers; ++l)
      if (model_.shape.each[l].recurrent)
        GRETA_TRY(on_[model_.placement.layer(l)].stream->copy(state_of(l, copy.to), state_of(l, copy.from)));
  return {};
}

// Uploads the rows of the host's StepState, unless the devices have them. `lone` rows are alone in their
// sequences, where a device has kernels for such.
Status Executor::upload_rows(const Planned& plan, uint32_t lone) {
  StepState& state = host_state();
  const std::span<const StepRow> rows = {state.row, state.token_count};
  const bool same = rows.size() == rows_there_.size() && state.first_drawn == first_drawn_there_ &&
                    !memcmp(rows.data(), rows_there_.data(), rows.size_bytes());
  rows_there_.clear();  // stays so if the copy fails
  for (uint32_t d = 0; d < on_.size(); ++d) {
    state.lone_count = plan.lone[d] ? lone : 0;
    if (same && state.lone_count == on_[d].lone_there) continue;
    GRETA_TRY(upload(d, &state, offsetof(StepState, row) + rows.size_bytes()));
    on_[d].lone_there = state.lone_count;
  }
  rows_there_.assign(rows.begin(), rows.end());
  first_drawn_there_ = state.first_drawn;
  const std::span<const uint32_t> outputs = {state.output_row, state.output_count};
  const bool known = outputs.size() <= output_rows_there_.size();
  if (known && std::equal(outputs.begin(), outputs.end(), output_rows_there_.begin())) return {};
  output_rows_there_.clear();
  GRETA_TRY(upload(state.output_row, outputs.size_bytes()));
  output_rows_there_.assign(outputs.begin(), outputs.end());
  return {};
}

// Repeats on the host's copy what drawing does to the device's rows (SampleBlock): the last drawn output of
// each sequence makes its row that of the token drawn, one position further. Of several devices only that of
// the output draws, so that their rows are no longer the same.
void Executor::follow_draws() {
  const StepState& state = host_state();
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

// Forgets what the device has, so that the next step uploads all that it needs.
void Executor::forget_uploads() {
  rows_there_.clear();
  output_rows_there_.clear();
  runs_there_.reset();
  scales_there_.clear();
  prefixes_there_ = false;
  std::fill(sampling_changed_.begin(), sampling_changed_.end(), true);
  for (uint32_t g = 0; g < plan_.groups.count; ++g)
    std::fill_n(host_tables(g), uint64_t(options_.sequences) * plan_.pages_per_sequence,
                ~0u);  // no table is equal to this
}

// Uploads a sequence's page table unless the device has it. Entries before its pages stay what they were,
// pages of the pool in which no kernel uses anything.
Status Executor::upload_table(uint32_t group, uint32_t sequence) {
  const PagePool& pool = pools_[group];
  const std::span<const uint32_t> table = pool.table(sequence).subspan(pool.gone(sequence));
  uint32_t* row = host_tables(group) + uint64_t(sequence) * plan_.pages_per_sequence + pool.gone(sequence);
  if (table.empty() || memcmp(row, table.data(), table.size_bytes()) == 0) return {};
  memcpy(row, table.data(), table.size_bytes());
  return upload(row, table.size_bytes());
}

// Writes the host's StepState for these rows. Outputs whose logits the host gets come before those that are
// drawn.
void Executor::write_rows(std::span<const Row> rows) {
  StepState& state = host_state();
  const uint32_t count = uint32_t(rows.size());
  for (uint32_t t = 0; t < count; ++t)
    state.row[t] = {rows[t].token, rows[t].position, rows[t].sequence, kNoOutput};
  state.token_count = count;
  state.output_count = 0;
  for (const Output kind : {Output::Hidden, Output::Logits, Output::Draw}) {
    state.first_drawn = state.output_count;
    for (uint32_t t = 0; t < count; ++t) {
      if (rows[t].output != kind) continue;
      state.row[t].output = state.output_count;
      state.output_row[state.output_count++] = t;
    }
  }
}

// Records copies of what has changed.
Status Executor::upload_step(std::span<const Row> rows, const Planned& plan) {
  write_rows(rows);
  GRETA_TRY(upload_rows(plan, count_lone(rows)));
  GRETA_TRY(upload_runs(rows));
  GRETA_TRY(upload_scales(plan.key));
  if (apart() && !plan.key.head && !in_advance()) GRETA_TRY(log_tokens(rows));
  if (plan.key.prefixes && !prefixes_there_) {
    GRETA_TRY(upload(host_prefixes(), sizeof(SharedPrefixes)));
    prefixes_there_ = true;
  }
  return upload_sequences();
}

// Page tables and sampling parameters of the step's sequences.
Status Executor::upload_sequences() {
  StepState& state = host_state();
  for (const PagePool::Want& want : wants_) {
    for (uint32_t g = 0; g < plan_.groups.count; ++g) GRETA_TRY(upload_table(g, want.sequence));
    if (sampling_changed_[want.sequence]) {
      GRETA_TRY(upload(&state.sample[want.sequence], sizeof(SampleParams)));
      GRETA_TRY(upload(&host_penalties()[want.sequence], sizeof(SamplePenalties)));
      sampling_changed_[want.sequence] = false;
    }
  }
  return {};
}

Status Executor::reserve(uint32_t sequence, uint32_t begin, uint32_t end) {
  const PagePool::Want want{sequence, begin, end};
  Attempt attempt(*this);
  GRETA_TRY(pools_[0].reserve({&want, 1}, &copies_[0]));
  GRETA_TRY(copy_pages());
  if (!copies_[0].empty()) GRETA_TRY(wait_all());
  attempt.keep();
  return {};
}

Status Executor::wait(uint32_t flight) {
  (void)land(flight);
  return {std::exchange(flights_[flight].outcome, Code::Ok)};
}

Status Executor::step(std::span<const Row> rows) {
  uint32_t flight = 0;
  GRETA_TRY(submit(rows, &flight));
  return wait(flight);
}

Status Executor::choose_plan(std::span<const Row> rows, StepKey* out) const {
  const uint32_t count = uint32_t(rows.size()), tokens = token_bucket(count);
  if (rows.empty() || tokens > plan_.step_tokens)
    return fail(Code::Argument, "a step of %u tokens, expected 1 to %u", count, plan_.step_tokens);
  const auto with = [&](Output output) { return uint32_t(std::ranges::count(rows, output, &Row::output)); };
  const uint32_t logits = with(Output::Logits), drawn = with(Output::Draw), hidden = with(Output::Hidden);
  if (hidden > (logits || drawn ? 0 : max_hidden(tokens)))
    return fail(Code::Argument, "a step with %u hidden states and %u other outputs, at most %u and none",
                hidden, logits + drawn, max_hidden(tokens));
  if (hidden) {
    *out = {tokens, output_bucket(hidden, tokens), 0, false, LoneRows::None, true};
    return {};
  }
  if (logits > max_outputs(tokens))
    return fail(Code::Argument, "a step with %u rows of logits, at most %u", logits, max_outputs(tokens));
  if (drawn && logits + drawn > max_draws(options_))
    return fail(Code::Argument, "a step that draws, with %u outputs, at most %u", logits + drawn,
                max_draws(options_));
  *out = {tokens, output_bucket(logits + drawn, tokens), output_bucket(logits, tokens), drawn > 0};
  const uint32_t lone = takes_lone_rows_ && tokens > kMaxSplitTokens ? count_lone(rows) : 0;
  if (lone) out->lone = lone == count ? LoneRows::All : LoneRows::First;
  return {};
}

// Looks for pages that the lone rows of a step share. Where there are enough, the step has a plan of its own.
// Pages that a row is written to are not shared when it runs, so pages need not be reserved before.
void Executor::find_prefixes(std::span<const Row> rows, StepKey* key) {
  const uint32_t lone = count_lone(rows);
  if (!takes_prefixes_ || key->hidden || lone < kMinPrefixRows) return;
  if (key->tokens <= kMaxSplitTokens && lone < rows.size()) return;  // no kernel takes a part of so few rows
  sharing_.clear();
  for (uint32_t t = 0; t < lone; ++t) {
    const std::span<const uint32_t> table = pools_[0].table(rows[t].sequence);
    const size_t whole = std::min<size_t>(rows[t].position / kPageTokens, table.size());
    if (whole && pools_[0].users(table[0]) >= kMinPrefixRows)
      sharing_.push_back({t, rows[t].sequence, table.first(whole)});
  }
  if (sharing_.size() < kMinPrefixRows) return;
  SharedPrefixes found;
  find_shared_pages(sharing_, options_.pages_saved ? options_.pages_saved : kMinPagesSaved, &found);
  if (!found.count) return;
  key->prefixes = true;
  key->lone = lone == rows.size() ? LoneRows::All : LoneRows::First;
  if (!memcmp(&found, host_prefixes(), sizeof found)) return;
  memcpy(host_prefixes(), &found, sizeof found);
  prefixes_there_ = false;
}

void Executor::note_wants(std::span<const Row> rows) {
  wants_.clear();
  for (const Row& row : rows) {
    if (wants_.empty() || wants_.back().sequence != row.sequence)
      wants_.push_back({row.sequence, row.position, 0});
    wants_.back().end = row.position + 1;
  }
}

// Does everything before a step's launches: the plan, pages, and the upload of the rows.
Status Executor::prepare(std::span<const Row> rows, const Planned** out) {
  GRETA_TRY(model_.gguf.source().check_mapped());
  kept_inputs_.clear();
  if (on_.size() > 1 && !in_advance()) GRETA_TRY(know_tokens(&rows));
  StepKey key;
  GRETA_TRY(choose_plan(rows, &key));
  find_prefixes(rows, &key);
  note_wants(rows);
  GRETA_TRY(check_runs());
  GRETA_TRY(find_adapters(rows, &key));
  key.brings = !key.adapters && brings_at(rows.size());
  GRETA_TRY(plan_for(key, out));
  GRETA_TRY(pools_[0].reserve(wants_, &copies_[0]));
  GRETA_TRY(reserve_windows(wants_));
  GRETA_TRY(reserve_states(wants_));
  GRETA_TRY(land(flight_));
  GRETA_TRY(barrier());  // the previous step may still read what is written now
  GRETA_TRY(copy_pages());
  if (in_advance()) GRETA_TRY(await_tokens(rows));
  return upload_step(rows, **out);
}

Status Executor::submit(std::span<const Row> rows, uint32_t* out) {
  return exceeds(rows, {plan_.step_tokens, options_.step_pairs}) ? submit_large(rows, out)
                                                                 : submit_piece(rows, out);
}

// Pages of all rows are reserved before the first piece runs, so that the later ones do not fail for them.
Status Executor::submit_large(std::span<const Row> rows, uint32_t* out) {
  if (rows.size() > plan_.pass_tokens)
    return fail(Code::Argument, "a step of %zu tokens, expected 1 to %u", rows.size(), plan_.pass_tokens);
  StepKey key;
  if (rows.size() <= plan_.step_tokens) GRETA_TRY(choose_plan(rows, &key));
  if (on_.size() > 1) GRETA_TRY(know_tokens(&rows));
  {
    Attempt attempt(*this);
    note_wants(rows);
    GRETA_TRY(pools_[0].reserve(wants_, &copies_[0]));
    GRETA_TRY(barrier());  // steps before may still write what is copied
    GRETA_TRY(copy_pages());
    if (!copies_[0].empty()) GRETA_TRY(wait_all());
    attempt.keep();
  }
  const PieceLimits limits{plan_.step_tokens, options_.step_pairs};
  const bool together = passes(rows);
  std::vector<Row> rest(rows.begin(), rows.end());
  std::vector<Piece> pieces;
  for (bool first = true, last = false; !last; first = false) {
    pieces.clear();
    while (!last && pieces.size() < (together ? kPassPieces : 1)) {
      std::vector<Row>& piece = pieces.emplace_back().rows;
      const bool taken = exceeds(rest, limits) && take_piece(&rest, limits, &piece);
      if (!taken) piece = std::exchange(rest, {});
      last = rest.empty();
    }
    GRETA_TRY(together ? submit_pass(pieces, out) : submit_piece(pieces[0].rows, out));
    if (!last) GRETA_TRY(wait(*out));
    if (!first || pieces.size() > 1) states_rows_ = 0;  // of the last piece alone
  }
  return {};
}

Status Executor::submit_piece(std::span<const Row> rows, uint32_t* out) {
  Attempt attempt(*this);
  const Planned* plan = nullptr;
  Span span(model_.spans, SpanKind::Record, "record");
  GRETA_TRY(prepare(rows, &plan));
  note_step(uint32_t(rows.size()), rows.back(), &span.event);
  note_states(rows);
  GRETA_TRY(run(*plan, rows));
  attempt.keep();
  if (states_ && rows.size() <= kReplayRows) kept_inputs_.assign(rows.begin(), rows.end());
  take_off(uint32_t(rows.size()), out);
  return {};
}

// Keeps what is told of the step that is being recorded.
void Executor::note_step(uint32_t rows, const Row& last, SpanEvent* recorded) {
  if (!model_.spans.on()) return;
  recorded->number = ++steps_;
  flights_[flight_].step = {steps_, recorded->begin_ns, rows, host_state().output_count, last.position + 1};
  flights_[flight_].name = "step";
}

// The step was submitted.
void Executor::take_off(uint32_t rows, uint32_t* out) {
  states_rows_ = rows;
  row_counts_.read += rows;
  ++submitted_;
  flights_[flight_].under_way = true;
  flights_[flight_].outcome = Code::Ok;
  *out = flight_;
  flight_ = (flight_ + 1) % kFlights;
}

Status Executor::profile(std::span<const Row> rows, void (*on_stage)(void* user, const Stage& stage),
                         void* user) {
  Attempt attempt(*this);
  const Planned* plan = nullptr;
  GRETA_TRY(prepare(rows, &plan));
  std::vector<uint64_t> ns;
  std::vector<const GretaGraph::Command*> commands;
  move_states();
  const std::span<const Segment> segments = this->segments(plan->key);
  for (size_t i = 0; i < segments.size(); ++i) {
    const GretaGraph& graph = *plan->graphs[i];
    const uint32_t d = segments[i].device;
    std::vector<uint64_t> of_segment;
    GRETA_TRY(bring(segments[i]));
    GRETA_TRY(on_device(model_, d, receive(segments[i], plan->key.tokens)));
    GRETA_TRY(on_device(model_, d, graph.time_commands(*on_[d].stream, device(d), &of_segment)));
    GRETA_TRY(on_device(model_, d, send(segments[i], plan->key.tokens)));
    ns.insert(ns.end(), of_segment.begin(), of_segment.end());
    for (const GretaGraph::Command& command : graph.commands()) commands.push_back(&command);
    if (i + 1 < segments.size()) GRETA_TRY(cross_behind(segments, i, plan->key.tokens));
  }
  follow_draws();
  attempt.keep();
  std::vector<Stage> stages;
  for (size_t i = 0; i < ns.size(); ++i) {
    const GretaGraph::Command& command = *commands[i];
    const char* name = command.row ? command.row->name : "copy";
    auto stage = std::find_if(stages.begin(), stages.end(), [&](const Stage& s) {
      return !strcmp(s.kernel, name) && !strcmp(s.part, command.part);
    });
    if (stage == stages.end()) stage = stages.insert(stage, Stage{name, command.part, 0, 0, 0, 0});
    const Cost cost =
        command.cost(uint32_t(rows.size()), host_state().output_count, rows.back().position + 1);
    stage->launches += 1;
    stage->ns += ns[i];
    stage->bytes += cost.bytes;
    stage->flops += cost.flops;
  }
  for (const Stage& stage : stages) on_stage(user, stage);
  return {};
}

}  // namespace greta
