// The layer that drafts tokens: a row for each token of a text, and guesses of those that come next.
//
// The head's row at position p reads the hidden state of the token at p and the embedding of the token behind
// it, so it is written when that token is known. Its keys and values lie in the pages of the sequence. The
// row of the last known token gives the first guess. The next ones come from the head's own hidden states,
// and their rows are written anew when the tokens are known.
#include <algorithm>

#include "engine/executor/attempt.h"

namespace greta {

Slice Executor::hidden_state(HeadRow::From from, uint32_t index, uint64_t count) const {
  const StepBuffers& b = ends().buffers;
  const uint64_t bytes = model_.shape.width * sizeof(float);
  const Slice& all = from == HeadRow::From::Step   ? b.step_states
                     : from == HeadRow::From::Head ? b.head_states
                                                   : b.kept_states;
  return {all.buffer, all.offset + index * bytes, count * bytes};
}

// Copies the hidden states of the rows to where the head reads them, neighbours together.
Status Executor::copy_states(std::span<const HeadRow> rows) {
  OnDevice& on = ends();
  const uint64_t bytes = model_.shape.width * sizeof(float);
  for (size_t first = 0, end = 0; first < rows.size(); first = end) {
    const auto goes_on = [&](size_t i) {
      return rows[i].from == rows[first].from && rows[i].index == rows[first].index + (i - first);
    };
    for (end = first + 1; end < rows.size() && goes_on(end);) ++end;
    const Slice& to = on.buffers.head_inputs;
    GRETA_TRY(on.stream->copy({to.buffer, to.offset + first * bytes, (end - first) * bytes},
                              hidden_state(rows[first].from, rows[first].index, end - first)));
  }
  return {};
}

// Uploads a step that draws the likeliest tokens, whatever the sampling of its sequences is. The next step
// uploads that again.
Status Executor::Attempt::upload_greedy(std::span<const Row> rows, const Planned& plan) {
  struct Greedy {
    Executor& executor;
    std::vector<std::pair<uint32_t, DeviceSampling>> own = {};
    ~Greedy() {
      for (const auto& [sequence, sampling] : own) executor.set_sampling(sequence, sampling);
    }
  } greedy{executor_};
  for (const PagePool::Want& want : executor_.wants_) {
    const uint32_t s = want.sequence;
    greedy.own.push_back({s, {executor_.host_state().sample[s], executor_.host_penalties()[s]}});
    executor_.set_sampling(s, {});
  }
  return executor_.upload_step(rows, plan);
}

Status Executor::Attempt::submit_head(std::span<const HeadRow> rows, Output output, uint32_t steps,
                                      uint32_t* out) {
  Executor& e = executor_;
  const uint32_t count = uint32_t(rows.size()), tokens = token_bucket(count);
  if (rows.empty() || tokens > e.plan_.step_tokens)
    return fail(Code::Argument, "a step of %u drafts, expected 1 to %u", count, e.plan_.step_tokens);
  const bool draws = output == Output::Draw;
  const uint32_t outputs = uint32_t(std::ranges::count(rows, true, &HeadRow::output));
  const uint32_t most = draws ? max_draws(e.options_) : e.max_outputs(tokens);
  if (outputs > most)
    return fail(Code::Argument, "a step of drafts with %u outputs, at most %u", outputs, most);
  std::vector<Row> plain;
  for (const HeadRow& row : rows)
    plain.push_back({row.token, row.position, row.sequence, row.output ? output : Output::None});
  StepKey key{tokens, output_bucket(outputs, tokens), draws ? 0 : output_bucket(outputs, tokens), draws};
  key.head = true;

  const Planned* plan = nullptr;
  e.note_wants(plain);
  for (PagePool::Want& want : e.wants_) {
    want.end += steps - 1;
    // Pages that are there are written in place, also where others use them: all of them have the same
    // tokens.
    want.begin = std::max(want.begin, uint32_t(e.pools_[0].table(want.sequence).size()) * kPageTokens);
  }
  GRETA_TRY(e.plan_for(key, &plan));
  GRETA_TRY(e.pools_[0].reserve(e.wants_, &e.copies_[0]));
  GRETA_TRY(e.wait(e.flight_));
  GRETA_TRY(e.barrier());
  GRETA_TRY(e.copy_pages());
  GRETA_TRY(draws ? upload_greedy(plain, *plan) : e.upload_step(plain, *plan));
  GRETA_TRY(e.copy_states(rows));
  Flight& flight = e.flights_[e.flight_];
  flight.clock_set.reset();
  if (e.model_.spans.on())
    flight.step = {++e.steps_, now_ns(), count * steps, outputs * steps, rows.back().position + 1};
  flight.name = "step";
  const GretaGraph& graph = *plan->graphs.back();
  Stream& stream = *e.ends().stream;
  const Slice states = e.hidden_state(HeadRow::From::Head, 0, count), &inputs = e.ends().buffers.head_inputs;
  const auto record = [&]() -> Status {
    GRETA_TRY(graph.run(stream));
    for (uint32_t i = 1; i < steps; ++i) {
      GRETA_TRY(stream.barrier());
      GRETA_TRY(stream.copy({inputs.buffer, inputs.offset, states.bytes}, states));
      GRETA_TRY(graph.run(stream));
    }
    GRETA_TRY(stream.signal(flight.done));
    return stream.submit();
  };
  if (draws) e.rows_there_.clear();  // draws move them on
  GRETA_TRY(on_device(e.model_, e.model_.placement.output(), record()));
  keep();
  flight.under_way = true;
  *out = e.flight_;
  e.flight_ = (e.flight_ + 1) % kFlights;
  return {};
}

Status Executor::head_step(std::span<const HeadRow> rows) {
  uint32_t flight = 0;
  GRETA_TRY(Attempt(*this).submit_head(rows, Output::Logits, 1, &flight));
  return wait(flight);
}

// Notes which hidden states of a step are kept when it has run: those of each sequence's last rows.
void Executor::note_states(std::span<const Row> rows) {
  kept_rows_.clear();
  if (!has_head()) return;
  for (size_t first = 0, end = 0; first < rows.size(); first = end) {
    const uint32_t sequence = rows[first].sequence, begin = rows[first].position;
    while (end < rows.size() && rows[end].sequence == sequence) ++end;
    const uint32_t last = begin + uint32_t(end - first);
    HeadEnd& head = head_ends_[sequence];
    if (begin > head.kept_end || begin < head.kept_from) head.kept_from = begin;
    head.kept_from = std::max(head.kept_from, last - std::min(last, kKeptStates));
    head.kept_end = last;
    for (uint32_t p = std::max(begin, head.kept_from); p < last; ++p)
      kept_rows_.push_back({0, p, sequence, HeadRow::From::Step, uint32_t(first) + p - begin, false});
  }
}

// The places of a sequence's hidden states are taken in turn.
Status Executor::keep_states() {
  if (kept_rows_.empty()) return {};
  Stream& stream = *ends().stream;
  GRETA_TRY(stream.barrier());
  const auto place_of = [](const HeadRow& row) {
    return row.sequence * kKeptStates + row.position % kKeptStates;
  };
  for (size_t first = 0, end = 0; first < kept_rows_.size(); first = end) {
    const HeadRow& row = kept_rows_[first];
    const uint32_t place = place_of(row);
    for (end = first + 1; end < kept_rows_.size(); ++end) {
      const uint32_t count = uint32_t(end - first);
      const HeadRow& next = kept_rows_[end];
      if (next.index != row.index + count || place_of(next) != place + count) break;
    }
    GRETA_TRY(stream.copy(hidden_state(HeadRow::From::Kept, place, end - first),
                          hidden_state(HeadRow::From::Step, row.index, end - first)));
  }
  return {};
}

// Whether what the head lacks of a text is so little that it can wait for more.
bool Executor::waits_for_head(const HeadPart& part) const {
  const uint32_t last = part.begin + part.count, position = head_ends_[part.sequence].position;
  return part.count && !part.depth && part.count <= kWaitingStates && last <= position + kWaitingStates;
}

// Lists the head's rows for positions that it lacks. `fresh`: the hidden states of the last step are those of
// the part. Returns false if some are nowhere.
bool Executor::list_head_rows(const HeadPart& part, bool fresh) {
  const HeadEnd end = head_ends_[part.sequence];
  const size_t listed = head_rows_.size();
  const uint32_t last = part.begin + part.count, known = uint32_t(part.tokens.size());
  for (uint32_t p = end.position; p < last && p + 1 < known; ++p) {
    HeadRow row{uint32_t(part.tokens[p + 1]), p, part.sequence, HeadRow::From::Step, 0, false};
    if (fresh && p >= part.begin) {
      row.index = part.row + p - part.begin;
    } else if (p >= end.kept_from && p < end.kept_end) {
      row.from = HeadRow::From::Kept;
      row.index = part.sequence * kKeptStates + p % kKeptStates;
    } else if (fresh && p + 1 == part.begin) {
      row.index = part.row;  // its neighbour's, which is not far from it
    } else {
      head_rows_.resize(listed);
      return false;
    }
    head_rows_.push_back(row);
  }
  if (head_rows_.size() > listed)
    head_rows_.back().output = part.depth && head_rows_.back().position + 2 == known;
  return true;
}

// Runs the listed rows and draws the first guesses from them. Further ones are drawn behind these on the
// device: in as many steps as the text wants that wants most, but no more than each has positions for. The
// host waits once, and reads the tokens alone.
Status Executor::chain_head(std::span<const HeadPart> parts, std::vector<std::vector<int32_t>>* guesses) {
  const auto part_of = [&](const HeadRow& row) {
    return size_t(std::ranges::find(parts, row.sequence, &HeadPart::sequence) - parts.begin());
  };
  std::vector<HeadRow> next;
  uint32_t wanted = 0, most = plan_.context, first = 0, more = 0;
  for (uint32_t i = 0; i < head_rows_.size(); ++i) {
    const HeadRow& row = head_rows_[i];
    const uint32_t depth = parts[part_of(row)].depth, position = row.position + 1;
    if (!row.output || depth < 2 || position >= plan_.context) continue;
    next.push_back({kTokenFromSample, position, row.sequence, HeadRow::From::Head, i, true});
    wanted = std::max(wanted, depth - 1);
    most = std::min(most, plan_.context - position);
  }
  uint32_t steps = std::min(wanted, most);
  GRETA_TRY(Attempt(*this).submit_head(head_rows_, Output::Draw, 1, &first));
  const Status chained = steps ? Attempt(*this).submit_head(next, Output::Draw, steps, &more) : Status{};
  GRETA_TRY(wait(first));
  if (chained.code == Code::Full) steps = 0;  // there are no pages for more
  if (steps) GRETA_TRY(chained.ok() ? wait(more) : chained);
  for (const HeadRow& row : head_rows_) {
    if (!row.output) continue;
    const bool goes_on = std::ranges::find(next, row.sequence, &HeadRow::sequence) != next.end();
    const uint32_t count = std::min(parts[part_of(row)].depth, 1 + (goes_on ? steps : 0));
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t token = drawn(row.sequence, row.position + i);
      if (token == kNoDraw) break;
      (*guesses)[part_of(row)].push_back(int32_t(token));
    }
  }
  return {};
}

Status Executor::feed_head(uint64_t step, std::span<const HeadPart> parts,
                           std::vector<std::vector<int32_t>>* guesses) {
  if (guesses) guesses->assign(parts.size(), {});
  head_rows_.clear();
  std::vector<const HeadPart*> fed;
  for (const HeadPart& part : parts) {
    const bool fresh = step == submitted_ && part.row + part.count <= states_rows_;
    if (!waits_for_head(part) && list_head_rows(part, fresh)) fed.push_back(&part);
  }
  if (step != submitted_) guesses = nullptr;  // the logits of the step behind it may not have been read
  const size_t most = plan_.step_tokens;
  const auto outputs = std::ranges::count(head_rows_, true, &HeadRow::output);
  const bool draws = guesses && outputs && outputs <= max_draws(options_) && head_rows_.size() <= most;
  for (HeadRow& row : head_rows_) row.output &= draws;
  if (draws) GRETA_TRY(chain_head(parts, guesses));
  for (size_t done = 0; !draws && done < head_rows_.size(); done += most) {
    uint32_t flight = 0;
    const std::span<const HeadRow> rows = std::span(head_rows_).subspan(done);
    GRETA_TRY(Attempt(*this).submit_head(rows.first(std::min(most, rows.size())), Output::None, 1, &flight));
  }
  for (const HeadPart* part : fed) {
    const uint32_t known = uint32_t(part->tokens.size()), last = part->begin + part->count;
    uint32_t& position = head_ends_[part->sequence].position;
    position = std::max(position, std::min(last, known - 1));
  }
  return {};
}

}  // namespace greta
