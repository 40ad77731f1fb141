// Steps of the layer that drafts tokens: a row for each token of a text, and guesses of those that come next.
//
// The head's row at position p reads the hidden state of the token at p and the embedding of the token behind
// it, so it is written when that token is known. Its keys and values lie in the pages of the sequence. The
// row of the last known token gives the first guess. The next ones come from the head's own hidden states,
// and their rows are written anew when the tokens are known.
#include <algorithm>

#include "engine/executor/attempt.h"

namespace greta {

// Uploads a step that draws the likeliest tokens, whatever the sampling of its sequences is. The next step
// uploads that again.
Status Executor::upload_greedy(std::span<const Row> rows, const PlannedStep& plan) {
  struct Greedy {
    StepUpload& upload;
    std::vector<std::pair<uint32_t, DeviceSampling>> own = {};
    ~Greedy() {
      for (const auto& [sequence, sampling] : own) upload.set_sampling(sequence, sampling);
    }
  } greedy{upload_};
  for (const PagePool::Want& want : sequences_.wants()) {
    greedy.own.push_back({want.sequence, upload_.sampling(want.sequence)});
    upload_.set_sampling(want.sequence, {});
  }
  return upload_step(rows, plan);
}

Status Executor::submit_head(std::span<const HeadRow> rows, Output output, uint32_t steps, uint32_t* out) {
  Attempt attempt(*this);
  const uint32_t count = uint32_t(rows.size()), tokens = token_bucket(count);
  if (rows.empty() || tokens > plan_.step_tokens)
    return fail(Code::Argument, "a step of %u drafts, expected 1 to %u", count, plan_.step_tokens);
  const bool draws = output == Output::Draw;
  const uint32_t outputs = uint32_t(std::ranges::count(rows, true, &HeadRow::output));
  const uint32_t most = draws ? max_draws(options_) : max_outputs(tokens);
  if (outputs > most)
    return fail(Code::Argument, "a step of drafts with %u outputs, at most %u", outputs, most);
  std::vector<Row> plain;
  for (const HeadRow& row : rows)
    plain.push_back({row.token, row.position, row.sequence, row.output ? output : Output::None});
  StepKey key{tokens, output_bucket(outputs, tokens), draws ? 0 : output_bucket(outputs, tokens), draws};
  key.head = true;

  const PlannedStep* plan = nullptr;
  sequences_.note_head_wants(plain, steps);
  GRETA_TRY(plans_.find(key, &plan));
  GRETA_TRY(sequences_.reserve_pages(sequences_.wants()));
  GRETA_TRY(wait(flights_.next()));
  GRETA_TRY(on_.barrier());
  GRETA_TRY(cache_.copy_shared());
  GRETA_TRY(draws ? upload_greedy(plain, *plan) : upload_step(plain, *plan));
  GRETA_TRY(head_.copy_states(rows));
  flights_.tell("step", {0, now_ns(), count * steps, outputs * steps, rows.back().position + 1});
  if (draws) upload_.forget_rows();  // draws move them on
  GRETA_TRY(on_device(model_, model_.placement.output(), run_head(*plan->graphs.back(), count, steps)));
  attempt.keep();
  *out = flights_.take_off();
  return {};
}

// Each of the steps goes on from the tokens and hidden states of the one before.
Status Executor::run_head(const GretaGraph& graph, uint32_t rows, uint32_t steps) {
  Stream& stream = *on_.ends().stream;
  const Slice states = head_.hidden_state(HeadRow::From::Head, 0, rows),
              &inputs = on_.ends().buffers.head_inputs;
  GRETA_TRY(graph.run(stream));
  for (uint32_t i = 1; i < steps; ++i) {
    GRETA_TRY(stream.barrier());
    GRETA_TRY(stream.copy({inputs.buffer, inputs.offset, states.bytes}, states));
    GRETA_TRY(graph.run(stream));
  }
  GRETA_TRY(flights_.signal_end(stream));
  return stream.submit();
}

Status Executor::head_step(std::span<const HeadRow> rows) {
  uint32_t flight = 0;
  GRETA_TRY(submit_head(rows, Output::Logits, 1, &flight));
  return wait(flight);
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
  GRETA_TRY(submit_head(head_rows_, Output::Draw, 1, &first));
  const Status chained = steps ? submit_head(next, Output::Draw, steps, &more) : Status{};
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
    if (!head_.waits(part) && head_.list_rows(part, fresh, &head_rows_)) fed.push_back(&part);
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
    GRETA_TRY(submit_head(rows.first(std::min(most, rows.size())), Output::None, 1, &flight));
  }
  for (const HeadPart* part : fed) head_.note_read(*part);
  return {};
}

}  // namespace greta
