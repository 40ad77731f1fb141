// An executor runs forward steps of one model for several sequences. Each of its parts does one job:
//
//   Sequences          which are in use, and their pages, states and checkpoints
//   ExecutorDevices    what there is on each of the model's devices: a stream, an arena, pages
//   Flights            the steps under way
//   Crossings          what crosses between the devices of a step
//   StepPlans          the captured plans
//   SequenceAdapters   which adapters the rows of a step have
//   StepUpload         what the devices are told of a step
//   Bringing           steps that bring experts to their layers' devices
//   CacheCopies        pages and states that are copied
//   DraftHead          what the layer that drafts tokens has read
//
// The executor itself puts a step together and submits it.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>

#include "engine/executor/bringing.h"
#include "engine/executor/cache_copies.h"
#include "engine/executor/crossings.h"
#include "engine/executor/draft_head.h"
#include "engine/executor/sequence_adapters.h"
#include "engine/executor/shared_pages.h"
#include "engine/executor/step_profile.h"
#include "engine/model/model.h"

namespace greta {

class Executor {
 public:
  // Computes what an executor needs, without allocating it. The default context is chosen so that it fits
  // into `free_bytes`, which is the memory of each device that is free beside the weights.
  using FreeBytes = std::span<const uint64_t>;
  static Status plan(const Model& model, ExecutorOptions* options, FreeBytes free_bytes, ExecutorPlan* out);
  static Status open(Model& model, const ExecutorOptions& options, FreeBytes free_bytes,
                     std::unique_ptr<Executor>* out);
  // The same for a model on one device.
  static Status plan(const Model& model, ExecutorOptions* options, uint64_t free_bytes, ExecutorPlan* out) {
    return plan(model, options, FreeBytes(&free_bytes, 1), out);
  }
  static Status open(Model& model, const ExecutorOptions& options, uint64_t free_bytes,
                     std::unique_ptr<Executor>* out) {
    return open(model, options, FreeBytes(&free_bytes, 1), out);
  }
  ~Executor();

  using Output = RowOutput;
  using Row = TokenRow;
  // Runs one step of at most plan().pass_tokens rows and waits for it. A step is any mix of rows: tokens that
  // go on with their sequences, and pieces of prompts. The rows of a sequence stand together in order of
  // their positions. Rows that are the only ones of their sequence should come first, where attention reads
  // their caches side by side.
  //
  // A step of more than plan().step_tokens rows, and one whose attention would take a GPU too long, runs in
  // several pieces. Where it brings experts, these run side by side from layer to layer (pass.cpp). Else all
  // but the last one are waited for.
  //
  // At most max_outputs(rows) rows have logits. In a step that draws, at most max_draws() rows have an output
  // of either kind. A step that gives at most max_hidden(rows) hidden states has no other output. Of several
  // draws of one sequence the last is its last token. Pages are reserved
  // first: Code::Full, like any failure before the submission, leaves the sequences as they were.
  Status step(std::span<const Row> rows);
  // The same in two parts, so that a step can run while the host looks at the one before it. At most kFlights
  // steps are under way: a further one first waits for the oldest. A step with rows of logits or hidden
  // states overwrites those of the one before.
  Status submit(std::span<const Row> rows, uint32_t* flight);
  Status wait(uint32_t flight);
  // Runs one step and times each kernel by itself. `on_stage` is called for each kernel of each part of the
  // step, in the order of first launches.
  using Stage = StepProfile::Stage;
  Status profile(std::span<const Row> rows, void (*on_stage)(void* user, const Stage& stage), void* user);
  uint64_t waited_ns() const { return flights_.waited_ns(); }  // for the device, in steps so far
  const float* logits() const;                       // [rows with Output::Logits of the last step][vocab]
  const float* hidden() const { return logits(); }   // [rows with Output::Hidden of the last step][width]
  // The token drawn after `position`. It is there after the wait for its flight, until kDrawnPositions more
  // are submitted.
  uint32_t drawn(uint32_t sequence, uint32_t position) const;
  // Rows of steps that were submitted, but for those of the layer that drafts tokens, and those of them of
  // which states were made anew.
  struct RowCounts {
    uint64_t read = 0, replayed = 0;
  };
  const RowCounts& row_counts() const { return row_counts_; }
  uint64_t submitted() const { return submitted_; }  // the number of the step that was submitted last
  Status wait_all() { return on_.wait_all(); }       // for everything that was submitted

  // A step of the layer that drafts tokens, which is waited for. Rows of a sequence stand together in
  // order, and all its positions before them have had such rows. logits() has those of rows with `output`.
  bool has_head() const { return head_.is_there(); }
  using HeadRow = greta::HeadRow;
  using HeadPart = greta::HeadPart;
  static constexpr uint32_t kWaitingStates = greta::kWaitingStates;
  Status head_step(std::span<const HeadRow> rows);
  // Gives the head the rows of step number `step`, which has ended; of parts without rows, what has waited of
  // the positions before. Where no guesses are wanted, few rows wait for others. If no step was submitted
  // since, guesses[i] gets the tokens that may follow the text of part i.
  Status feed_head(uint64_t step, std::span<const HeadPart> parts,
                   std::vector<std::vector<int32_t>>* guesses);
  // The sequence has pages for so many positions which others have filled, the head's among them.
  void skip_head(uint32_t sequence, uint32_t positions) { head_.set_read(sequence, positions); }

  // Sequences (sequences.h) are indices below options.sequences.
  Status acquire_sequence(uint32_t* out) { return sequences_.acquire(out); }
  void release_sequence(uint32_t sequence);
  // Gives positions [begin, end) of a sequence pages of group 0 of its own, all or none, for later steps.
  Status reserve(uint32_t sequence, uint32_t begin, uint32_t end);
  void fork_sequence(uint32_t from, uint32_t to, uint32_t position);  // which truncate() would give
  // Forgets the positions from `position` on. Gives the position at which the sequence can go on: this one,
  // or where its windows have left that behind, the last checkpoint before it. The tokens from there on are
  // to be read again.
  // A state that wrong guesses have gone into is made anew of what the last step has kept of the right ones.
  uint32_t truncate(uint32_t sequence, uint32_t position);
  void keep_checkpoint(uint32_t sequence, uint32_t position) {
    sequences_.keep_checkpoint(sequence, position);
  }
  bool has_checkpoints() const { return sequences_.has_checkpoints(); }
  void keep_passing_state(uint32_t sequence, uint32_t position) {
    sequences_.keep_passing_state(sequence, position);
  }
  bool keep_for_guesses(uint32_t sequence, uint32_t position) {
    return sequences_.keep_for_guesses(sequence, position);
  }
  void drop_for_guesses(uint32_t sequence) { sequences_.drop_for_guesses(sequence); }
  PagePool& pages() { return sequences_.pool(0); }
  PagePool* windows() { return sequences_.has_windows() ? &sequences_.pool(1) : nullptr; }
  bool free_window_page() { return sequences_.free_window_page(); }
  PagePool* states() { return sequences_.states(); }
  uint32_t state_at(uint32_t sequence, uint32_t position) const {
    return sequences_.state_at(sequence, position);
  }
  bool goes_on(uint32_t sequence, uint32_t position) const { return sequences_.goes_on(sequence, position); }
  void set_state(uint32_t sequence, uint32_t state, uint32_t position) {
    sequences_.set_state(sequence, state, position);
  }
  bool free_state() { return sequences_.free_state(); }
  void set_spare_pages(std::function<bool()> give_up) { sequences_.set_spare_pages(std::move(give_up)); }
  void cancel(uint32_t sequence) { sequences_.cancel(sequence); }
  bool take_cancel(uint32_t sequence) { return sequences_.take_cancel(sequence); }
  void set_sampling(uint32_t sequence, const DeviceSampling& sampling) {
    upload_.set_sampling(sequence, sampling);
  }
  Status set_adapters(uint32_t sequence, std::shared_ptr<const AdapterList> adapters) {
    return adapters_.set(sequence, std::move(adapters));
  }
  const std::shared_ptr<const AdapterList>& adapters(uint32_t sequence) const {
    return adapters_.of(sequence);
  }
  uint64_t adapter_bytes(uint32_t device) const { return adapters_.bytes(device); }
  void set_pages_saved(uint32_t pages) { options_.pages_saved = pages; }  // as in ExecutorOptions

  // What the host keeps of the cache (cache_copies.h).
  using CacheBytes = greta::CacheBytes;
  using CacheForm = greta::CacheForm;
  using CachePage = greta::CachePage;
  CacheForm cache_form() const { return sequences_.cache_form(); }
  uint64_t cache_bytes(uint32_t positions, CacheForm form) const { return cache_.bytes(positions, form); }
  // Whether it has what is saved with them: all that the last one of them sees.
  bool can_save(uint32_t sequence, uint32_t positions) const {
    return sequences_.can_save(sequence, positions);
  }
  Status save_cache(uint32_t sequence, uint32_t positions, const CacheBytes& take) {
    return cache_.save(sequence, positions, take);
  }
  Status restore_cache(uint32_t sequence, std::span<const int32_t> tokens, CacheForm form,
                       const CacheBytes& fill);
  uint64_t page_bytes() const { return cache_.page_bytes(); }
  Status save_page(const CachePage& page, const Slice& to) { return cache_.save_page(page, to); }
  Status load_page(const Slice& from, const CachePage& page) { return cache_.load_page(from, page); }
  uint64_t kept_state_bytes() const { return cache_.kept_state_bytes(); }
  Status save_state(uint32_t state, const Slice& to) { return cache_.save_state(state, to); }
  Status load_state(const Slice& from, uint32_t state) { return cache_.load_state(from, state); }

  // Whether a step runs while the host does something else. With several devices the host carries what
  // crosses. There it is worth while to submit a step before the one before is waited for if that has no
  // outputs, as the pieces of a prompt: its first segments run while the last one of the step before does.
  // Several GPUs run ahead as one does, but that the step before has ended when the next one is recorded:
  // what it drew is told while they compute. A processor would compute before that is told.
  bool runs_ahead() const {
    return device_info(model_.placement.output()).runs_ahead && (on_.size() == 1 || !has_processor());
  }
  bool overlaps_prompts() const { return on_.size() > 1 && !has_head(); }
  // Whether two groups of sequences should take turns in steps, so that all devices are busy. Nothing is lost
  // where devices take equally long, since a step of one group takes no longer than one of both. A processor
  // would take the most of the time, and more for two groups than for one.
  bool gains_by_turns() const { return overlaps_prompts() && !has_processor(); }
  bool has_processor() const { return on_.has_processor(); }
  // Whether a step of so many rows brings experts that are apart to their layers, if it has no adapters.
  bool brings_at(size_t rows) const { return bringing_.at(rows); }
  const DeviceInfo& device_info(uint32_t device) const { return on_.info(device); }
  const Model& model() const { return model_; }
  const ExecutorPlan& plan() const { return plan_; }
  const ExecutorOptions& options() const { return options_; }
  uint32_t max_outputs(uint32_t tokens) const;  // rows of logits that a step of `tokens` tokens may have
  uint32_t max_hidden(uint32_t tokens) const;   // hidden states that it may give

 private:
  class Attempt;
  struct Piece {
    std::vector<Row> rows;
    StepKey key = {};
    const PlannedStep* plan = nullptr;
  };
  Executor(Model& model, const ExecutorOptions& options, const ExecutorPlan& plan);
  Status open_parts();
  Status choose_plan(std::span<const Row> rows, StepKey* out) const;
  void find_prefixes(std::span<const Row> rows, StepKey* key);
  Status prepare(std::span<const Row> rows, const PlannedStep** out);
  Status upload_step(std::span<const Row> rows, const PlannedStep& plan);
  uint64_t tell_step(uint32_t rows, const Row& last, uint64_t begun_ns);
  void take_off(uint32_t rows, uint32_t* flight);
  Status submit_piece(std::span<const Row> rows, uint32_t* flight);
  Status submit_large(std::span<const Row> rows, uint32_t* flight);
  // segments.cpp
  Status know_tokens(std::span<const Row>* rows);
  Status wait_for_idle(std::span<const Segment> segments);
  Status run(const PlannedStep& plan, std::span<const Row> rows);
  Status run_segments(const PlannedStep& plan);
  Status run_in_advance(const PlannedStep& plan, std::span<const Row> rows);
  Status run_last(const GretaGraph& graph, Stream& stream);
  Status submit_segment(const PlannedStep& plan, size_t index, std::span<const Row> rows);
  Status end_segment(const Segment& segment);
  Status await_tokens(std::span<const Row> rows);
  void tell_drawn(std::span<const Row> rows);
  // pass.cpp
  bool passes(std::span<const Row> rows) const;
  Status submit_pass(std::span<Piece> pieces, uint32_t* flight);
  Status prepare_pass(std::span<Piece> pieces);
  Status run_pass(std::span<const Piece> pieces);
  Status run_piece(std::span<const Piece> pieces, size_t piece, size_t segment);
  // replay.cpp
  bool replay(uint32_t sequence, uint32_t position);
  Status submit_replay(const Sequences::Replay& replay);
  // head_steps.cpp
  // Submits a step of the layer that drafts tokens, whose rows have outputs of this kind. Where they draw,
  // there may be more `steps`, each of which goes on from the tokens that the one before has drawn in all of
  // its rows.
  Status submit_head(std::span<const HeadRow> rows, Output output, uint32_t steps, uint32_t* flight);
  Status run_head(const GretaGraph& graph, uint32_t rows, uint32_t steps);
  Status upload_greedy(std::span<const Row> rows, const PlannedStep& plan);
  Status chain_head(std::span<const HeadPart> parts, std::vector<std::vector<int32_t>>* guesses);

  // A part knows those before it alone, and goes before them.
  Model& model_;
  ExecutorOptions options_;
  ExecutorPlan plan_;
  Sequences sequences_;
  ExecutorDevices on_;
  Flights flights_;
  Crossings crossings_;
  StepPlans plans_;
  SequenceAdapters adapters_;
  StepUpload upload_;
  Bringing bringing_;
  CacheCopies cache_;
  DraftHead head_;

  const bool takes_lone_rows_;  // some kernel of the device takes rows that are alone in their sequences
  const bool takes_prefixes_;   // some kernel of the device takes pages that such rows share
  std::vector<SharingRow> sharing_;  // of the step that is being prepared
  std::vector<Row> known_rows_;
  std::vector<HeadRow> head_rows_;
  uint64_t submitted_ = 0;
  uint32_t states_rows_ = 0;  // rows of the last step whose hidden states are there
  RowCounts row_counts_;
};

}  // namespace greta
