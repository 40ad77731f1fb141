#include "engine/executor/executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/executor/attempt.h"
#include "engine/executor/deep_steps.h"

namespace greta {

void Executor::release_sequence(uint32_t sequence) {
  truncate(sequence, 0);
  adapters_.release(sequence);
  sequences_.release(sequence);
}

void Executor::fork_sequence(uint32_t from, uint32_t to, uint32_t position) {
  sequences_.fork(from, to, position);
  head_.fork(from, to, position);
}

uint32_t Executor::truncate(uint32_t sequence, uint32_t position) {
  replay(sequence, position);
  position = sequences_.truncate(sequence, position);
  head_.truncate(sequence, position);
  return position;
}

Status Executor::restore_cache(uint32_t sequence, std::span<const int32_t> tokens, CacheForm form,
                               const CacheBytes& fill) {
  GRETA_TRY(cache_.restore(sequence, tokens, form, fill));
  head_.set_read(sequence, 0);
  return {};
}

uint32_t Executor::max_outputs(uint32_t tokens) const { return std::min(tokens, options_.output_rows); }

const float* Executor::logits() const {
  return static_cast<const float*>(on_.ends().readback.buffer().mapped);
}

uint32_t Executor::drawn(uint32_t sequence, uint32_t position) const {
  return static_cast<const uint32_t*>(
      on_.ends().drawn.buffer().mapped)[sequence * kDrawnPositions + position % kDrawnPositions];
}

// Records copies of what has changed.
Status Executor::upload_step(std::span<const Row> rows, const PlannedStep& plan) {
  upload_.write_rows(rows);
  GRETA_TRY(upload_.rows(plan.lone, count_lone(rows)));
  GRETA_TRY(upload_.runs(rows));
  GRETA_TRY(adapters_.upload(plan.key, upload_.host().output_count));
  if (on_.apart() && !plan.key.head && !crossings_.in_advance()) GRETA_TRY(upload_.log_tokens(rows));
  if (plan.key.prefixes) GRETA_TRY(upload_.prefixes());
  return upload_.sequences();
}

Status Executor::reserve(uint32_t sequence, uint32_t begin, uint32_t end) {
  const PagePool::Want want{sequence, begin, end};
  Attempt attempt(*this);
  GRETA_TRY(sequences_.reserve_pages({&want, 1}));
  GRETA_TRY(cache_.copy_shared());
  if (!sequences_.copies(0).empty()) GRETA_TRY(wait_all());
  attempt.keep();
  return {};
}

Status Executor::wait(uint32_t flight) { return flights_.wait(flight); }

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
    const std::span<const uint32_t> table = sequences_.pool(0).table(rows[t].sequence);
    const size_t whole = std::min<size_t>(rows[t].position / kPageTokens, table.size());
    if (whole && sequences_.pool(0).users(table[0]) >= kMinPrefixRows)
      sharing_.push_back({t, rows[t].sequence, table.first(whole)});
  }
  if (sharing_.size() < kMinPrefixRows) return;
  SharedPrefixes found;
  find_shared_pages(sharing_, options_.pages_saved ? options_.pages_saved : kMinPagesSaved, &found);
  if (!found.count) return;
  key->prefixes = true;
  key->lone = lone == rows.size() ? LoneRows::All : LoneRows::First;
  upload_.set_prefixes(found);
}

// Does everything before a step's launches: the plan, pages, and the upload of the rows.
Status Executor::prepare(std::span<const Row> rows, const PlannedStep** out) {
  GRETA_TRY(model_.gguf.source().check_mapped());
  sequences_.keep_inputs({});
  if (on_.size() > 1 && !crossings_.in_advance()) GRETA_TRY(know_tokens(&rows));
  StepKey key;
  GRETA_TRY(choose_plan(rows, &key));
  find_prefixes(rows, &key);
  sequences_.note_wants(rows);
  GRETA_TRY(sequences_.check_runs());
  GRETA_TRY(adapters_.find(rows, &key));
  key.brings = !key.adapters && brings_at(rows.size());
  GRETA_TRY(plans_.find(key, out));
  GRETA_TRY(sequences_.reserve_pages(sequences_.wants()));
  GRETA_TRY(sequences_.reserve_windows(sequences_.wants()));
  GRETA_TRY(sequences_.reserve_states(sequences_.wants()));
  GRETA_TRY(flights_.land(flights_.next()));
  GRETA_TRY(on_.barrier());  // the previous step may still read what is written now
  GRETA_TRY(cache_.copy_shared());
  if (crossings_.in_advance()) GRETA_TRY(await_tokens(rows));
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
    sequences_.note_wants(rows);
    GRETA_TRY(sequences_.reserve_pages(sequences_.wants()));
    GRETA_TRY(on_.barrier());  // steps before may still write what is copied
    GRETA_TRY(cache_.copy_shared());
    if (!sequences_.copies(0).empty()) GRETA_TRY(wait_all());
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
  const PlannedStep* plan = nullptr;
  Span span(model_.spans, SpanKind::Record, "record");
  GRETA_TRY(prepare(rows, &plan));
  span.event.number = tell_step(uint32_t(rows.size()), rows.back(), span.event.begin_ns);
  head_.note_states(rows);
  GRETA_TRY(run(*plan, rows));
  attempt.keep();
  sequences_.keep_inputs(rows);
  take_off(uint32_t(rows.size()), out);
  return {};
}

// What is told of the step that is being recorded.
uint64_t Executor::tell_step(uint32_t rows, const Row& last, uint64_t begun_ns) {
  return flights_.tell("step", {0, begun_ns, rows, upload_.host().output_count, last.position + 1});
}

// The step was submitted.
void Executor::take_off(uint32_t rows, uint32_t* out) {
  states_rows_ = rows;
  row_counts_.read += rows;
  ++submitted_;
  *out = flights_.take_off();
}

Status Executor::profile(std::span<const Row> rows, void (*on_stage)(void* user, const Stage& stage),
                         void* user) {
  Attempt attempt(*this);
  const PlannedStep* plan = nullptr;
  GRETA_TRY(prepare(rows, &plan));
  StepProfile profile({uint32_t(rows.size()), upload_.host().output_count, rows.back().position + 1});
  sequences_.move_states();
  const std::span<const Segment> segments = plans_.segments(plan->key);
  for (size_t i = 0; i < segments.size(); ++i) {
    const GretaGraph& graph = *plan->graphs[i];
    const uint32_t d = segments[i].device;
    std::vector<uint64_t> ns;
    GRETA_TRY(bringing_.finish(segments[i]));
    GRETA_TRY(on_device(model_, d, crossings_.receive(segments[i], plan->key.tokens)));
    GRETA_TRY(on_device(model_, d, graph.time_commands(*on_[d].stream, on_.device(d), &ns)));
    GRETA_TRY(on_device(model_, d, crossings_.send(segments[i], plan->key.tokens)));
    profile.add(graph, ns);
    if (i + 1 < segments.size()) GRETA_TRY(crossings_.cross_behind(segments, i, plan->key.tokens));
  }
  upload_.follow_draws();
  attempt.keep();
  for (const Stage& stage : profile.stages()) on_stage(user, stage);
  return {};
}

}  // namespace greta
