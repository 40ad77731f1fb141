// The layer that drafts tokens: a row for each token of a text, and guesses of those that come next.
//
// The head's row at position p reads the hidden state of the token at p and the embedding of the token behind
// it, so it is written when that token is known. Its keys and values lie in the pages of the sequence. The
// row of the last known token gives the first guess. The next ones come from the head's own hidden states,
// and their rows are written anew when the tokens are known.
#include <algorithm>
#include <cmath>

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

Status Executor::head_step(std::span<const HeadRow> rows) {
  const uint32_t count = uint32_t(rows.size()), tokens = token_bucket(count);
  if (rows.empty() || tokens > plan_.step_tokens)
    return fail(Code::Argument, "a step of %u drafts, expected 1 to %u", count, plan_.step_tokens);
  const uint32_t outputs = uint32_t(std::ranges::count(rows, true, &HeadRow::output));
  if (outputs > max_outputs(tokens))
    return fail(Code::Argument, "a step with %u rows of logits, at most %u", outputs, max_outputs(tokens));
  std::vector<Row> plain;
  for (const HeadRow& row : rows)
    plain.push_back({row.token, row.position, row.sequence, row.output ? Output::Logits : Output::None});
  StepKey key{tokens, output_bucket(outputs, tokens), output_bucket(outputs, tokens)};
  key.head = true;

  Attempt attempt(*this);
  const Planned* plan = nullptr;
  note_wants(plain);
  GRETA_TRY(plan_for(key, &plan));
  GRETA_TRY(pools_[0].reserve(wants_, &copies_[0]));
  GRETA_TRY(wait(flight_));
  GRETA_TRY(barrier());
  GRETA_TRY(copy_pages());
  GRETA_TRY(upload_step(plain, *plan));
  GRETA_TRY(copy_states(rows));
  const uint32_t device = model_.placement.output(), flight = flight_;
  Stream& stream = *ends().stream;
  GRETA_TRY(on_device(model_, device, plan->graphs.back()->run(stream)));
  GRETA_TRY(on_device(model_, device, stream.signal(flights_[flight].done)));
  GRETA_TRY(on_device(model_, device, stream.submit()));
  attempt.keep();
  flights_[flight].under_way = true;
  flight_ = (flight_ + 1) % kFlights;
  return wait(flight);
}

// Keeps hidden states of the last step until the tokens behind them are known.
Status Executor::keep_states(std::span<const HeadRow> kept) {
  if (kept.empty()) return {};
  Recordings recordings{on_};
  GRETA_TRY(barrier());
  for (const HeadRow& row : kept)
    GRETA_TRY(ends().stream->copy(hidden_state(HeadRow::From::Kept, row.sequence, 1),
                                  hidden_state(HeadRow::From::Step, row.index, 1)));
  GRETA_TRY(barrier());
  GRETA_TRY(on_device(model_, model_.placement.output(), ends().stream->submit()));
  recordings.kept = true;
  return {};
}

// Lists the head's rows for positions that it lacks, and the one that is to be kept.
void Executor::list_head_rows(const HeadPart& part) {
  const HeadEnd end = head_ends_[part.sequence];
  const auto token_behind = [&](uint32_t position) { return uint32_t(part.tokens[position + 1]); };
  const bool own = end.position + 1 == part.begin;  // the one before is lacking
  if (own) {
    const uint32_t before = end.position;
    const auto from = end.kept ? HeadRow::From::Kept : HeadRow::From::Step;  // or a neighbour's
    head_rows_.push_back(
        {token_behind(before), before, part.sequence, from, end.kept ? part.sequence : part.row, false});
  }
  const uint32_t last = part.begin + part.count;
  for (uint32_t p = std::max(part.begin, end.position); p < last; ++p) {
    HeadRow row{0, p, part.sequence, HeadRow::From::Step, part.row + p - part.begin, false};
    if (p + 1 >= part.tokens.size()) {
      kept_rows_.push_back(row);
      break;
    }
    row.token = token_behind(p);
    head_rows_.push_back(row);
  }
  if (!head_rows_.empty() && head_rows_.back().sequence == part.sequence)
    head_rows_.back().output = part.depth && head_rows_.back().position + 2 == part.tokens.size();
}

static int32_t likeliest(const float* logits, uint32_t count) {
  int32_t best = -1;
  for (uint32_t i = 0; i < count; ++i)
    if (best < 0 ? std::isfinite(logits[i]) : logits[i] > logits[best]) best = int32_t(i);
  return best;
}

// Takes the guesses of the head's last step, and runs it on its own hidden states for further ones.
Status Executor::chain_head(std::span<const HeadPart> parts, std::vector<std::vector<int32_t>>* guesses) {
  const auto part_of = [&](uint32_t sequence) {
    return size_t(std::ranges::find(parts, sequence, &HeadPart::sequence) - parts.begin());
  };
  std::vector<HeadRow> rows(head_rows_), next;
  for (;;) {
    next.clear();
    const float* row_logits = logits();
    for (uint32_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].output) continue;
      const size_t part = part_of(rows[i].sequence);
      const int32_t token = likeliest(row_logits, model_.shape.vocab);
      row_logits += model_.shape.vocab;
      if (token < 0) continue;
      (*guesses)[part].push_back(token);
      const bool more = (*guesses)[part].size() < parts[part].depth && rows[i].position + 1 < plan_.context;
      if (more)
        next.push_back(
            {uint32_t(token), rows[i].position + 1, rows[i].sequence, HeadRow::From::Head, i, true});
    }
    if (next.empty()) return {};
    const Status status = head_step(next);
    if (status.code == Code::Full) return {};  // there are no pages for more
    GRETA_TRY(status);
    rows = next;
  }
}

Status Executor::feed_head(std::span<const HeadPart> parts, std::vector<std::vector<int32_t>>* guesses) {
  if (guesses) guesses->assign(parts.size(), {});
  head_rows_.clear();
  kept_rows_.clear();
  std::vector<const HeadPart*> fed;
  for (const HeadPart& part : parts) {
    const bool there = part.row + part.count <= states_rows_;
    if (!part.count || !there || part.begin > head_ends_[part.sequence].position + 1) continue;
    list_head_rows(part);
    fed.push_back(&part);
  }
  states_rows_ = 0;  // they are read once
  const size_t most = plan_.step_tokens;
  const auto outputs = std::ranges::count(head_rows_, true, &HeadRow::output);
  const bool whole =
      head_rows_.size() <= most && outputs <= max_outputs(token_bucket(uint32_t(head_rows_.size())));
  for (HeadRow& row : head_rows_) row.output &= whole && guesses;
  for (size_t done = 0; done < head_rows_.size(); done += most)
    GRETA_TRY(head_step(std::span(head_rows_).subspan(done, std::min(most, head_rows_.size() - done))));
  GRETA_TRY(keep_states(kept_rows_));
  for (const HeadPart* part : fed) {
    const uint32_t known = uint32_t(part->tokens.size()), last = part->begin + part->count;
    head_ends_[part->sequence] = {std::min(last, known - 1), last >= known};
  }
  return outputs && whole && guesses ? chain_head(parts, guesses) : Status{};
}

}  // namespace greta
