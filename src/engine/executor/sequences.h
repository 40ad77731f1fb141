// The sequences of an executor: which are in use, what pages and states they have, and the places to which
// they can go back. Nothing here touches a device. What must be copied before a step runs is listed, for
// whoever records the step.
#pragma once
#include <atomic>
#include <functional>
#include <optional>

#include "engine/executor/checkpoints.h"
#include "engine/executor/executor_plan.h"
#include "engine/executor/step_rows.h"

namespace greta {

// Whether the pages before first_page_kept() are left out of what is saved of layers with a window.
enum class CacheForm : uint8_t { Whole, Windows };

class Sequences {
 public:
  Sequences(const Shape& shape, const ExecutorOptions& options, const ExecutorPlan& plan);

  // Sequences are indices below options.sequences. The one behind them owns pages while they are restored.
  Status acquire(uint32_t* out);  // fails with Full when all are in use
  void release(uint32_t sequence);
  void fork(uint32_t from, uint32_t to, uint32_t position);
  uint32_t truncate(uint32_t sequence, uint32_t position);  // Executor::truncate, but for states made anew

  // Makes a checkpoint at the last multiple of kPageTokens up to `position`, if windows are whole there. That
  // of a state is made at `position`, if no step has gone on from there.
  void keep_checkpoint(uint32_t sequence, uint32_t position);
  bool has_checkpoints() const { return checkpoints_.has_value(); }
  // Called with each position that an answer has come to, it makes one of a state at each multiple of
  // kPageTokens, in place of the one before, which goes when the answer is known to have come so far.
  void keep_passing_state(uint32_t sequence, uint32_t position);
  // Keeps what truncate() needs to go back to `position`, at which the sequence stands, from wrong guesses
  // behind it: one state, if layers have some. False if there is no room for it.
  bool keep_for_guesses(uint32_t sequence, uint32_t position);
  void drop_for_guesses(uint32_t sequence);

  uint32_t groups() const { return uint32_t(pools_.size()); }
  PagePool& pool(uint32_t group) { return pools_[group]; }
  const PagePool& pool(uint32_t group) const { return pools_[group]; }
  bool has_windows() const { return pools_.size() > 1; }  // a group of layers with a window
  bool free_window_page();  // makes sure that there is a free page of it; false if all are in use
  PagePool* states() { return states_ ? &*states_ : nullptr; }  // of recurrent layers
  const PagePool* states() const { return states_ ? &*states_ : nullptr; }
  uint32_t state(uint32_t sequence) const { return states_->table(sequence)[0]; }
  // The state of a sequence, if by what was submitted it ends at `position`, else kGone. It stays as it is
  // for who holds it, since a step copies it before it goes on.
  uint32_t state_at(uint32_t sequence, uint32_t position) const {
    return position && stands_at(sequence, position) ? state(sequence) : PagePool::kGone;
  }
  // Whether a step can go on at `position`. It cannot where a step from there failed in its submission: then
  // it is not known whether it has changed the state.
  bool goes_on(uint32_t sequence, uint32_t position) const {
    return !states_ || position == 0 || stands_at(sequence, position);
  }
  // Gives the sequence, which has pages for `position` positions, a state that ends there.
  void set_state(uint32_t sequence, uint32_t state, uint32_t position);
  bool free_state();  // makes sure that there is a free one; false if all are in use
  // Where windows or states lack pages, this gives one up that is only kept for later; false if there is
  // none.
  void set_spare_pages(std::function<bool()> give_up) { spare_pages_ = std::move(give_up); }

  // Stops a step that is compiling kernels. Any thread or signal handler may call it.
  void cancel(uint32_t sequence) { cancelled_[sequence].store(true, std::memory_order_relaxed); }
  bool take_cancel(uint32_t sequence) {
    return cancelled_[sequence].exchange(false, std::memory_order_relaxed);
  }
  bool is_cancelled() const;  // one of those that the step wants something for

  // What a step that is being recorded wants and has been given. Whoever records it clears the copies first,
  // and takes them back if it fails.
  void clear_copies();
  void take_back_copies();
  void note_wants(std::span<const TokenRow> rows);
  // The same for steps of the layer that drafts tokens, each of which goes on from the one before.
  void note_head_wants(std::span<const TokenRow> rows, uint32_t steps);
  void set_wants(std::vector<PagePool::Want> wants) { wants_ = std::move(wants); }
  std::span<const PagePool::Want> wants() const { return wants_; }
  Status check_runs() const;
  Status reserve_pages(std::span<const PagePool::Want> wants);  // of group 0
  Status reserve_windows(std::span<const PagePool::Want> wants);
  Status reserve_states(std::span<const PagePool::Want> wants);
  void move_states();
  std::span<const PagePool::Copy> copies(uint32_t group) const { return copies_[group]; }
  std::span<const PagePool::Copy> state_copies() const { return state_copies_; }

  // The rows of which StepBuffers::Cache::inputs are there, after a step.
  void keep_inputs(std::span<const TokenRow> rows);
  std::span<const TokenRow> kept_inputs() const { return kept_inputs_; }
  struct Replay {
    uint32_t sequence, begin, end;  // positions
    uint32_t row;                   // of the first one in the last step
  };
  std::optional<Replay> find_replay(uint32_t sequence, uint32_t position) const;
  void begin_replay(const Replay& replay);  // the state is that of its beginning
  // Nobody knows what the state has read: the sequence goes on from a checkpoint.
  void lose_state(uint32_t sequence) { state_ends_[sequence] = ~0u; }

  // What is saved of a sequence, and where it goes while it is restored.
  CacheForm cache_form() const { return has_windows() || states_ ? CacheForm::Windows : CacheForm::Whole; }
  bool can_save(uint32_t sequence, uint32_t positions) const;
  uint32_t first_saved(uint32_t window, uint32_t positions, CacheForm form) const;  // page
  uint32_t spare() const { return uint32_t(used_.size()); }
  Status reserve_spare(uint32_t positions);
  void give_back_spare();
  void take_spare(uint32_t sequence, uint32_t positions, CacheForm form);

 private:
  bool stands_at(uint32_t sequence, uint32_t position) const;
  bool make_window_room();
  bool make_state_room() { return checkpoints_->give_up() || (spare_pages_ && spare_pages_()); }
  void forget_inputs(uint32_t sequence);

  std::vector<PagePool> pools_;  // by group
  // Whose pages are states: a sequence has one at most, and one that it shares is copied before a step.
  std::optional<PagePool> states_;
  std::vector<uint32_t> state_ends_;        // by sequence: the position behind the last row in its state
  std::vector<TokenRow> kept_inputs_;
  std::optional<Checkpoints> checkpoints_;  // of states, else of the group with a window
  const uint32_t most_checkpoints_;
  std::function<bool()> spare_pages_;
  // By sequence, how many pages at its beginning lack layers with a window, since it was restored without
  // them.
  std::vector<uint32_t> not_there_;
  const uint32_t window_;  // of most layers with a window; 0: there is none
  std::vector<bool> used_;
  std::vector<std::atomic<bool>> cancelled_;  // by sequence
  std::vector<PagePool::Want> wants_;
  std::vector<PagePool::Copy> copies_[kMaxCacheGroups], state_copies_;
};

}  // namespace greta
