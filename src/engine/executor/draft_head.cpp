// The layer that drafts tokens: a row for each token of a text, and guesses of those that come next.
//
// The head's row at position p reads the hidden state of the token at p and the embedding of the token behind
// it, so it is written when that token is known. Its keys and values lie in the pages of the sequence. The
// row of the last known token gives the first guess. The next ones come from the head's own hidden states,
// and their rows are written anew when the tokens are known.
#include <algorithm>
#include <limits>

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
  // Pages that are there are written in place, also where others use them: all of them have the same tokens.
  for (PagePool::Want& want : wants_)
    want.begin = std::max(want.begin, uint32_t(pools_[0].table(want.sequence).size()) * kPageTokens);
  GRETA_TRY(plan_for(key, &plan));
  GRETA_TRY(pools_[0].reserve(wants_, &copies_[0]));
  GRETA_TRY(wait(flight_));
  GRETA_TRY(barrier());
  GRETA_TRY(copy_pages());
  GRETA_TRY(upload_step(plain, *plan));
  GRETA_TRY(copy_states(rows));
  flights_[flight_].clock_set.reset();
  if (model_.spans.on())
    flights_[flight_].step = {++steps_, now_ns(), count, outputs, rows.back().position + 1};
  const uint32_t device = model_.placement.output(), flight = flight_;
  Stream& stream = *ends().stream;
  GRETA_TRY(on_device(model_, device, plan->graphs.back()->run(stream)));
  GRETA_TRY(on_device(model_, device, stream.signal(flights_[flight].done)));
  GRETA_TRY(on_device(model_, device, stream.submit()));
  attempt.keep();
  flights_[flight].under_way = true;
  flight_ = (flight_ + 1) % kFlights;
  return outputs ? wait(flight) : Status{};
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

// The index of the greatest logit, or -1 if there is none. Lanes let the compiler compare several at once.
static int32_t likeliest(const float* logits, uint32_t count) {
  constexpr uint32_t kLanes = 16;
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  float best[kLanes];
  std::ranges::fill(best, kNone);
  const auto take = [&](uint32_t lane, float logit) { best[lane] = logit > best[lane] ? logit : best[lane]; };
  uint32_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (uint32_t lane = 0; lane < kLanes; ++lane) take(lane, logits[i + lane]);
  for (; i < count; ++i) take(0, logits[i]);
  const float most = *std::ranges::max_element(best);
  return most > kNone ? int32_t(std::find(logits, logits + count, most) - logits) : -1;
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
  const bool whole =
      head_rows_.size() <= most && outputs <= max_outputs(token_bucket(uint32_t(head_rows_.size())));
  for (HeadRow& row : head_rows_) row.output &= whole && guesses;
  for (size_t done = 0; done < head_rows_.size(); done += most)
    GRETA_TRY(head_step(std::span(head_rows_).subspan(done, std::min(most, head_rows_.size() - done))));
  for (const HeadPart* part : fed) {
    const uint32_t known = uint32_t(part->tokens.size()), last = part->begin + part->count;
    uint32_t& position = head_ends_[part->sequence].position;
    position = std::max(position, std::min(last, known - 1));
  }
  return outputs && whole && guesses ? chain_head(parts, guesses) : Status{};
}

}  // namespace greta
