#include "engine/executor/sequences.h"

#include <algorithm>
#include <bitset>
#include <utility>

#include "engine/executor/transformer.h"

namespace greta {

// The first page of a window that is saved with `positions` positions. Who restores them can go on there, and
// read the last token again for its logits.
static uint32_t first_page_saved(uint32_t window, uint32_t positions) {
  return first_page_kept(window, std::max(positions, 1u) - 1);
}

Sequences::Sequences(const Shape& shape, const ExecutorOptions& options, const ExecutorPlan& plan)
    : most_checkpoints_(plan.checkpoints),
      not_there_(options.sequences),
      window_(common_window(shape)),
      used_(options.sequences),
      cancelled_(options.sequences) {
  const uint32_t sequences = options.sequences + 1;
  for (const CacheGroup& group : plan.groups.all())
    pools_.emplace_back(group, sequences, plan.pages_per_sequence);
  if (plan.states) {
    states_.emplace(CacheGroup{.pages = plan.states}, sequences, 1);
    state_ends_.resize(sequences);
    kept_inputs_.reserve(kReplayRows);
    checkpoints_.emplace(*states_, Checkpoints::Of::States, sequences);
  } else if (has_windows()) {
    checkpoints_.emplace(pools_[1], Checkpoints::Of::Windows, sequences);
  }
}

Status Sequences::acquire(uint32_t* out) {
  for (uint32_t i = 0; i < used_.size(); ++i)
    if (!used_[i]) {
      used_[i] = true;
      *out = i;
      return {};
    }
  return fail(Code::Full, "all %zu sequences of the executor are in use", used_.size());
}

void Sequences::release(uint32_t sequence) {
  forget_inputs(sequence);
  used_[sequence] = false;
}

void Sequences::fork(uint32_t from, uint32_t to, uint32_t position) {
  for (PagePool& pool : pools_) pool.fork(from, to, position);
  forget_inputs(to);
  not_there_[to] = not_there_[from];
  if (states_) {
    states_->fork(from, to, std::min(position, 1u));
    state_ends_[to] = position ? state_ends_[from] : 0;
  }
  if (checkpoints_) checkpoints_->fork(from, to, position);
}

uint32_t Sequences::truncate(uint32_t sequence, uint32_t position) {
  if (first_page_seen(window_, position) < not_there_[sequence]) position = not_there_[sequence] = 0;
  if (checkpoints_ && !stands_at(sequence, position)) {
    position = checkpoints_->last(sequence, position);
    checkpoints_->resume(sequence, position);
    if (states_) state_ends_[sequence] = position;
  }
  for (PagePool& pool : pools_) pool.truncate(sequence, position);
  if (checkpoints_) checkpoints_->forget(sequence, position);
  return position;
}

// Whether the sequence can go on at `position` without a checkpoint.
bool Sequences::stands_at(uint32_t sequence, uint32_t position) const {
  return states_ ? state_ends_[sequence] == position : pools_[1].whole(sequence, position);
}

void Sequences::keep_checkpoint(uint32_t sequence, uint32_t position) {
  if (!checkpoints_ || (states_ && !stands_at(sequence, position))) return;
  (void)guarded([&] { return checkpoints_->make(sequence, position), Status{}; });  // or there is none
}

void Sequences::keep_passing_state(uint32_t sequence, uint32_t position) {
  if (!states_ || !stands_at(sequence, position)) return;
  if (position % kPageTokens == kFlights) checkpoints_->drop_passed(sequence);
  if (position % kPageTokens == 0)
    (void)guarded([&] { return checkpoints_->make(sequence, position, true), Status{}; });
}

bool Sequences::keep_for_guesses(uint32_t sequence, uint32_t position) {
  if (!states_) return true;
  if (!stands_at(sequence, position)) return false;
  bool kept = false;
  // Beside these there is a state for each sequence and the spare one, so that no step lacks one.
  const auto keep = [&] {
    kept = checkpoints_->keep_for_guesses(sequence, position, most_checkpoints_);
    return Status{};
  };
  return guarded(keep).ok() && kept;
}

void Sequences::drop_for_guesses(uint32_t sequence) {
  if (states_) checkpoints_->drop_for_guesses(sequence);
}

// Frees pages of windows that no row sees. Returns false if there are none.
bool Sequences::make_window_room() {
  const uint32_t before = pools_[1].free_pages();
  pools_[1].trim();
  return pools_[1].free_pages() > before || checkpoints_->give_up() || (spare_pages_ && spare_pages_());
}

bool Sequences::free_window_page() {
  while (pools_[1].free_pages() == 0)
    if (!make_window_room()) return false;
  return true;
}

bool Sequences::free_state() {
  while (states_->free_pages() == 0)
    if (!make_state_room()) return false;
  return true;
}

void Sequences::set_state(uint32_t sequence, uint32_t state, uint32_t position) {
  states_->set_seen(sequence, 1, {&state, 1});
  forget_inputs(sequence);
  state_ends_[sequence] = position;
}

bool Sequences::is_cancelled() const {
  return std::ranges::any_of(wants_,
                             [&](const PagePool::Want& want) { return bool(cancelled_[want.sequence]); });
}

void Sequences::clear_copies() {
  for (auto& copies : copies_) copies.clear();
  state_copies_.clear();
}

void Sequences::take_back_copies() {
  for (size_t g = 0; g < pools_.size(); ++g) pools_[g].take_back(copies_[g]);
  if (states_) states_->take_back(state_copies_);
}

void Sequences::note_wants(std::span<const TokenRow> rows) {
  wants_.clear();
  for (const TokenRow& row : rows) {
    if (wants_.empty() || wants_.back().sequence != row.sequence)
      wants_.push_back({row.sequence, row.position, 0});
    wants_.back().end = row.position + 1;
  }
}

// Pages that are there are written in place, also where others use them: all of them have the same tokens.
void Sequences::note_head_wants(std::span<const TokenRow> rows, uint32_t steps) {
  note_wants(rows);
  for (PagePool::Want& want : wants_) {
    want.end += steps - 1;
    want.begin = std::max(want.begin, uint32_t(pools_[0].table(want.sequence).size()) * kPageTokens);
  }
}

// Fails unless each sequence of the step has its rows together and goes on where its state ends.
Status Sequences::check_runs() const {
  if (!states_) return {};
  std::bitset<kMaxStepSequences> seen;
  for (const PagePool::Want& want : wants_) {
    if (seen[want.sequence])
      return fail(Code::Argument, "the rows of sequence %u do not stand together in the step", want.sequence);
    seen.set(want.sequence);
    if (want.begin && want.begin != state_ends_[want.sequence])
      return fail(Code::Argument, "a step at position %u of sequence %u, whose state ends at %u", want.begin,
                  want.sequence, state_ends_[want.sequence]);
  }
  return {};
}

Status Sequences::reserve_pages(std::span<const PagePool::Want> wants) {
  return pools_[0].reserve(wants, &copies_[0]);
}

// By the plan of the pools, rows of steps have pages of windows if all else gives way.
Status Sequences::reserve_windows(std::span<const PagePool::Want> wants) {
  if (!has_windows()) return {};
  return pools_[1].reserve(wants, &copies_[1], [this] { return make_window_room(); });
}

// There are enough states if checkpoints and the prefix cache give theirs up. A state that a checkpoint or
// another sequence has as well is copied before the step.
Status Sequences::reserve_states(std::span<const PagePool::Want> wants) {
  if (!states_) return {};
  std::vector<PagePool::Want> one_of_each;
  for (const PagePool::Want& want : wants) one_of_each.push_back({want.sequence, 0, 1});
  return states_->reserve(one_of_each, &state_copies_, [this] { return make_state_room(); });
}

// Notes what the step makes of states. It stands before the submission: where that fails, nobody goes on from
// a state of which it is not known whether the step has changed it.
void Sequences::move_states() {
  if (states_)
    for (const PagePool::Want& want : wants_) state_ends_[want.sequence] = want.end;
}

void Sequences::keep_inputs(std::span<const TokenRow> rows) {
  kept_inputs_.clear();
  if (states_ && rows.size() <= kReplayRows) kept_inputs_.assign(rows.begin(), rows.end());
}

// The sequence has another text now. The rows of others keep their places.
void Sequences::forget_inputs(uint32_t sequence) {
  for (TokenRow& row : kept_inputs_)
    if (row.sequence == sequence) row.sequence = ~0u;
}

// Gives nothing unless the last step has rows of the sequence before and behind `position`, a checkpoint lies
// where they begin, and no step has gone on from them.
std::optional<Sequences::Replay> Sequences::find_replay(uint32_t sequence, uint32_t position) const {
  if (!states_) return {};
  const auto first = std::ranges::find(kept_inputs_, sequence, &TokenRow::sequence);
  if (first == kept_inputs_.end() || position <= first->position) return {};
  const auto count = std::ranges::count(kept_inputs_, sequence, &TokenRow::sequence);
  const uint32_t begin = first->position, end = begin + uint32_t(count);
  if (position >= end || state_ends_[sequence] != end || checkpoints_->last(sequence, position) != begin)
    return {};
  return Replay{sequence, begin, position, uint32_t(first - kept_inputs_.begin())};
}

void Sequences::begin_replay(const Replay& replay) {
  checkpoints_->resume(replay.sequence, replay.begin);
  checkpoints_->drop_for_guesses(replay.sequence);  // the state need not be copied if nobody else has it
  state_ends_[replay.sequence] = replay.begin;
}

bool Sequences::can_save(uint32_t sequence, uint32_t positions) const {
  if (states_) return positions == 0 || state_ends_[sequence] == positions;
  return !has_windows() || positions == 0 || pools_[1].whole(sequence, positions - 1);
}

uint32_t Sequences::first_saved(uint32_t window, uint32_t positions, CacheForm form) const {
  return form == CacheForm::Windows && window == window_ ? first_page_saved(window, positions) : 0;
}

// Gives the spare sequence the pages of `positions` positions.
Status Sequences::reserve_spare(uint32_t positions) {
  if (!positions) return {};
  const PagePool::Want want{spare(), 0, positions};
  GRETA_TRY(reserve_states({&want, 1}));
  GRETA_TRY(reserve_pages({&want, 1}));
  for (PagePool& pool : std::span(pools_).subspan(1)) {
    const uint32_t first = first_page_saved(pool.window(), positions) * kPageTokens;
    pool.set_seen(spare(), first, {});
    const PagePool::Want seen{spare(), first, positions};
    GRETA_TRY(reserve_windows({&seen, 1}));
  }
  return {};
}

void Sequences::give_back_spare() {
  for (PagePool& pool : pools_) pool.truncate(spare(), 0);
  if (states_) states_->truncate(spare(), 0);
}

// Gives the sequence, in place of its pages, those of the spare one, which were filled from what was saved in
// this form.
void Sequences::take_spare(uint32_t sequence, uint32_t positions, CacheForm form) {
  for (PagePool& pool : pools_) pool.exchange(sequence, spare());
  if (states_) {
    states_->exchange(sequence, spare());
    state_ends_[sequence] = positions;
    forget_inputs(sequence);
  }
  if (checkpoints_) checkpoints_->forget(sequence, 0);
  const bool lacks = form == CacheForm::Windows && cache_form() == CacheForm::Whole;
  not_there_[sequence] = lacks ? first_page_saved(window_, positions) : 0;
}

}  // namespace greta
