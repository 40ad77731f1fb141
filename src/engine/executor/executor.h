// An executor runs forward steps of one model for several sequences. On each of the model's devices it owns a
// stream, an arena, a StepState and the pages of the layers there. It also owns the bookkeeping of pages,
// which is the same for all devices, and the captured plans.
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/executor/brought_experts.h"
#include "engine/executor/checkpoints.h"
#include "engine/executor/executor_plan.h"
#include "engine/executor/launch_clock.h"
#include "engine/executor/shared_pages.h"
#include "engine/executor/transformer.h"
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

  // What a step makes of a row: the host gets its logits, or the device draws the token that follows it, by
  // the sampling of its sequence, or the host gets its hidden state, which is what logits are made from.
  enum class Output : uint32_t { None, Logits, Draw, Hidden };
  struct Row {
    uint32_t token;  // a token's id, or kTokenFromSample: what the step before drew for this sequence
    uint32_t position, sequence;
    Output output;
  };
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
  struct Stage {
    const char* kernel;
    const char* part;  // of the step, such as "attention"
    uint32_t launches;
    uint64_t ns, bytes, flops;  // of all its launches together; `bytes` are those that must move
  };
  Status profile(std::span<const Row> rows, void (*on_stage)(void* user, const Stage& stage), void* user);
  uint64_t waited_ns() const { return waited_ns_; }  // for the device, in steps so far
  const float* logits() const;                       // [rows with Output::Logits of the last step][vocab]
  const float* hidden() const { return logits(); }   // [rows with Output::Hidden of the last step][width]
  // The token drawn after `position`. It is there after the wait for its flight, until kDrawnPositions more
  // are submitted.
  uint32_t drawn(uint32_t sequence, uint32_t position) const;

  // A step of the layer that drafts tokens (Shape::heads), which is waited for. A row is a token with the
  // hidden state of the token before it, which stands at `position`. Rows of a sequence stand together in
  // order, and all its positions before them have had such rows. logits() has those of rows with `output`.
  bool has_head() const { return model_.shape.heads != 0; }
  struct HeadRow {
    uint32_t token, position, sequence;
    enum class From : uint8_t { Step, Head, Kept } from;  // whose hidden state
    uint32_t index;  // a row of the last step, or of the last one of these; of what is kept, its place
    bool output;
  };
  // Hidden states that are kept of each sequence, those of its last positions, and as many as may wait there
  // before the layer gets them.
  static constexpr uint32_t kKeptStates = 32, kWaitingStates = 16;
  Status head_step(std::span<const HeadRow> rows);
  // Rows of the last step, of a text of which these tokens are known. `depth`: how many guesses are wanted.
  struct HeadPart {
    uint32_t sequence, begin, count, row;  // positions, and the first one's row
    std::span<const int32_t> tokens;
    uint32_t depth;
  };
  // Gives the head the rows of step number `step`, which has ended; of parts without rows, what has waited of
  // the positions before. Where no guesses are wanted, few rows wait for others. If no step was submitted
  // since, guesses[i] gets the tokens that may follow the text of part i.
  Status feed_head(uint64_t step, std::span<const HeadPart> parts,
                   std::vector<std::vector<int32_t>>* guesses);
  uint64_t submitted() const { return submitted_; }  // the number of the step that was submitted last
  // The sequence has pages for so many positions which others have filled, the head's among them.
  void skip_head(uint32_t sequence, uint32_t positions) { head_ends_[sequence] = {positions}; }

  // Sequences are indices below options.sequences.
  Status acquire_sequence(uint32_t* out);  // fails with Full when all are in use
  void release_sequence(uint32_t sequence);
  // Gives positions [begin, end) of a sequence pages of group 0 of its own, all or none, for later steps.
  Status reserve(uint32_t sequence, uint32_t begin, uint32_t end);
  void fork_sequence(uint32_t from, uint32_t to, uint32_t position);  // which truncate() would give
  // Forgets the positions from `position` on. Gives the position at which the sequence can go on: this one,
  // or where its windows have left that behind, the last checkpoint before it. The tokens from there on are
  // to be read again.
  // A state that wrong guesses have gone into is made anew of what the last step has kept of the right ones.
  uint32_t truncate(uint32_t sequence, uint32_t position);
  // Rows of steps that were submitted, but for those of the layer that drafts tokens, and those of them of
  // which states were made anew.
  struct RowCounts {
    uint64_t read = 0, replayed = 0;
  };
  const RowCounts& row_counts() const { return row_counts_; }
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
  PagePool& pages() { return pools_[0]; }
  PagePool* windows() { return has_windows() ? &pools_[1] : nullptr; }  // of the group with a window
  bool free_window_page();  // makes sure that there is a free page of it; false if all are in use
  PagePool* states() { return states_ ? &*states_ : nullptr; }  // of recurrent layers
  // The state of a sequence, if by what was submitted it ends at `position`, else kGone. It stays as it is
  // for who holds it, since a step copies it before it goes on.
  uint32_t state_at(uint32_t sequence, uint32_t position) const {
    return position && stands_at(sequence, position) ? states_->table(sequence)[0] : PagePool::kGone;
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
  void set_sampling(uint32_t sequence, const DeviceSampling& sampling);
  // The adapters of a sequence's next rows; null: none. The memory for the largest step with them is there
  // when this returns.
  Status set_adapters(uint32_t sequence, std::shared_ptr<const AdapterList> adapters);
  const std::shared_ptr<const AdapterList>& adapters(uint32_t sequence) const { return adapters_[sequence]; }
  uint64_t adapter_bytes(uint32_t device) const;  // what adapters have made it allocate there
  void set_pages_saved(uint32_t pages) { options_.pages_saved = pages; }  // as in ExecutorOptions
  // Stops a step that is compiling kernels. Any thread or signal handler may call it.
  void cancel(uint32_t sequence) { cancelled_[sequence].store(true, std::memory_order_relaxed); }
  bool take_cancel(uint32_t sequence) {
    return cancelled_[sequence].exchange(false, std::memory_order_relaxed);
  }

  // The cache of a sequence's first `positions` positions as a stream of bytes: by page, layer, keys before
  // values, head, position. It passes through a buffer of at most kCachePieceBytes. In the form `Windows` the
  // pages of layers with a window before first_page_kept() are left out, and the states of recurrent layers
  // come last.
  using CacheBytes = std::function<Status(uint8_t* bytes, uint64_t count)>;
  enum class CacheForm : uint8_t { Whole, Windows };
  CacheForm cache_form() const { return has_windows() || states_ ? CacheForm::Windows : CacheForm::Whole; }
  uint64_t cache_bytes(uint32_t positions, CacheForm form) const;
  // Whether it has what is saved with them: all that the last one of them sees.
  bool can_save(uint32_t sequence, uint32_t positions) const {
    if (states_) return positions == 0 || state_ends_[sequence] == positions;
    return !has_windows() || positions == 0 || pools_[1].whole(sequence, positions - 1);
  }
  // Saves them in the executor's own form.
  Status save_cache(uint32_t sequence, uint32_t positions, const CacheBytes& take);
  // Fills fresh pages, and the token log with `tokens`. The pages become the sequence's when all are filled;
  // on a failure the sequence keeps those that it has.
  Status restore_cache(uint32_t sequence, std::span<const int32_t> tokens, CacheForm form,
                       const CacheBytes& fill);

  // Submits the copy of a whole page to memory of `page_bytes()` or back: keys and values by layer, then the
  // page's part of the token log. Steps that are submitted later come behind it; the host waits for nothing.
  struct CachePage {
    uint32_t full, window = PagePool::kGone;  // of group 0, and of the one with a window, which may be gone
  };
  uint64_t page_bytes() const {
    const uint64_t head = has_head() ? cache_of(model_.shape.layers).page_bytes() : 0;
    return cache_bytes(kPageTokens, CacheForm::Whole) + head + kPageTokens * sizeof(uint32_t);
  }
  Status save_page(const CachePage& page, const Slice& to);
  Status load_page(const Slice& from, const CachePage& page);
  // The same for a state. 0 bytes: layers keep none, or several devices have parts of it.
  uint64_t kept_state_bytes() const { return states_ && on_.size() == 1 ? saved_state_bytes() : 0; }
  Status save_state(uint32_t state, const Slice& to);
  Status load_state(const Slice& from, uint32_t state);
  Status wait_all();  // for everything that was submitted

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
  bool has_processor() const {
    return std::ranges::any_of(model_.devices,
                               [](const ModelDevice& on) { return on.device->info().host_functions; });
  }
  // Whether a step of so many rows brings experts that are apart to their layers, if it has no adapters.
  bool brings_at(size_t rows) const { return plan_.brings && rows >= bring_from_; }
  const DeviceInfo& device_info(uint32_t device) const { return model_.devices[device].device->info(); }
  const Model& model() const { return model_; }
  const ExecutorPlan& plan() const { return plan_; }
  const ExecutorOptions& options() const { return options_; }
  uint32_t max_outputs(uint32_t tokens) const;  // rows of logits that a step of `tokens` tokens may have
  uint32_t max_hidden(uint32_t tokens) const;   // hidden states that it may give

 private:
  struct Planned {
    StepKey key;
    std::vector<std::unique_ptr<GretaGraph>> graphs;  // of each segment
    std::vector<bool> lone;  // by device: attention takes the step's first lone rows by themselves
  };
  class Attempt;
  class Pieces;
  struct Flight {
    Event done;  // on the device of the output
    bool under_way = false;
    LaunchClock::Step step = {};  // while someone listens to spans
    const char* name = "step";    // as they hear of it
    std::optional<uint32_t> clock_set = {};
    Code outcome = Code::Ok;  // where it was waited for before its submitter did
  };
  struct Staged {         // host memory for a step under way
    DeviceMemory step;    // from which the device's StepState is updated
    DeviceMemory runs;    // and its StepRuns
    DeviceMemory tokens;  // and its token log, if another device embeds
    DeviceMemory scales;  // of rows for adapters
    DeviceMemory pieces;  // the beginnings of the StepStates of a pass's pieces
  };
  // What the executor has on a device. Some is there only where a segment needs it.
  struct OnDevice {
    DeviceMemory arena, step, runs, rope, token_log, counters, drawn, readback, residual;
    DeviceMemory head_states;
    DeviceMemory residuals;              // of the pieces of a pass
    DeviceMemory adapter_arena, scales;  // of steps with adapters
    // Host memory through which saved pages, and what experts elsewhere read and make, cross.
    DeviceMemory arrives, leaves;
    std::unique_ptr<BroughtExperts> brought;
    Staged staged[kFlights];
    std::unique_ptr<Pool> cache;
    StepBuffers buffers;
    uint32_t lone_there = 0;  // StepState.lone_count as the device has it
    std::unique_ptr<KernelSet> kernels;
    std::unique_ptr<Stream> stream;  // destroyed before the memory that it uses
  };
  Executor(Model& model, const ExecutorOptions& options, const ExecutorPlan& plan);
  // Abandons at its end what was recorded on all streams, unless that is kept.
  struct Recordings {
    std::vector<OnDevice>& on;
    bool kept = false;
    ~Recordings() {
      for (OnDevice& each : on)
        if (!kept) each.stream->abandon();
    }
  };
  struct AdapterSet {  // of the steps that have these adapters and no others
    uint32_t number;
    std::vector<std::shared_ptr<const Adapter>> adapters;
  };
  Status allocate_scales(uint32_t device);
  void drop_plans(uint32_t set);
  Status find_set(std::vector<std::shared_ptr<const Adapter>>&& adapters, uint32_t* number);
  void give_adapters(const StepKey& key, StepBuffers* to) const;
  Status reserve_arena(const StepKey& key);
  Status find_adapters(std::span<const Row> rows, StepKey* key);
  Status upload_scales(const StepKey& key);
  Status barrier();  // on all streams
  Status allocate(uint32_t device);
  Status allocate_crossing(uint32_t device);
  Status allocate_residuals(uint32_t device);
  Status open_gates();
  Status allocate_cache(uint32_t device);
  Status upload_tables(uint32_t device);
  Status compile(const std::function<Status()>& want);
  Status build(const StepKey& key, size_t segment, GretaGraph* graph);
  Status compile_ahead();
  Status make_plan(const StepKey& key);
  Status plan_for(const StepKey& key, const Planned** out);
  Progress compile_progress();
  Status copy_pages();
  Status upload_table(uint32_t group, uint32_t sequence);
  using Spans = std::function<Status(uint32_t device, Slice)>;
  using Walk = std::function<Status(const Spans& visit)>;
  Status walk_page(const CachePage& page, const Spans& visit) const;
  Status reserve_windows(std::span<const PagePool::Want> wants);
  bool make_window_room();
  bool make_state_room() { return checkpoints_->give_up() || (spare_pages_ && spare_pages_()); }
  bool has_windows() const { return plan_.groups.count > 1; }
  Status reserve_states(std::span<const PagePool::Want> wants);
  Status check_runs() const;
  void move_states();
  Status upload_runs(std::span<const Row> rows);
  Status upload_runs(const StepRuns& runs);
  struct Replay {
    uint32_t sequence, begin, end;  // positions
    uint32_t row;                   // of the first one in the last step
  };
  std::optional<Replay> find_replay(uint32_t sequence, uint32_t position) const;
  bool replay(uint32_t sequence, uint32_t position);
  void forget_inputs(uint32_t sequence);
  Slice state_of(uint32_t layer, uint32_t state) const;
  bool stands_at(uint32_t sequence, uint32_t position) const;
  uint32_t first_saved(uint32_t layer, uint32_t positions, CacheForm form) const;
  Status walk_cache(uint32_t sequence, uint32_t positions, CacheForm form, const Spans& visit) const;
  Status walk_state(uint32_t state, const Spans& visit) const;
  Status walk_log(uint32_t sequence, uint32_t positions, const Spans& visit) const;
  uint64_t saved_state_bytes() const;
  Status copy_out(const Walk& walk, const Slice& to);
  Status copy_in(const Slice& from, const Walk& walk);
  Status load_pages(const Walk& walk, uint64_t bytes, const CacheBytes& fill);
  uint32_t spare_sequence() const { return options_.sequences; }  // owns pages while they are restored
  Status copy_states(std::span<const HeadRow> rows);
  void note_states(std::span<const Row> rows);
  Status keep_states();
  Slice hidden_state(HeadRow::From from, uint32_t index, uint64_t count) const;
  bool waits_for_head(const HeadPart& part) const;
  bool list_head_rows(const HeadPart& part, bool fresh);
  Status chain_head(std::span<const HeadPart> parts, std::vector<std::vector<int32_t>>* guesses);
  Status submit_piece(std::span<const Row> rows, uint32_t* flight);
  Status submit_large(std::span<const Row> rows, uint32_t* flight);
  struct Piece {
    std::vector<Row> rows;
    StepKey key = {};
    const Planned* plan = nullptr;
  };
  bool passes(std::span<const Row> rows) const;
  Status submit_pass(std::span<Piece> pieces, uint32_t* flight);
  Status prepare_pass(std::span<Piece> pieces);
  Status run_pass(std::span<const Piece> pieces);
  Status run_piece(std::span<const Piece> pieces, size_t piece, size_t segment);
  void note_step(uint32_t rows, const Row& last, SpanEvent* recorded);
  void take_off(uint32_t rows, uint32_t* flight);
  void note_wants(std::span<const Row> rows);
  Status prepare(std::span<const Row> rows, const Planned** out);
  Status know_tokens(std::span<const Row>* rows);
  Status log_tokens(std::span<const Row> rows);
  template <class Wait>
  Status wait_for(uint64_t step, Wait&& wait);
  Status wait_left(size_t segment);
  Status land(uint32_t flight);
  Status land_all();
  Slice residual_between(uint32_t device, bool goes, uint32_t tokens) const;
  Status receive(const Segment& segment, uint32_t tokens);
  Status send(const Segment& segment, uint32_t tokens);
  void hand_on(const Segment& from, const Segment& to, uint32_t tokens);
  Status cross(const Segment& from, const Segment& to, uint32_t tokens);
  Status cross_behind(std::span<const Segment> segments, size_t index, uint32_t tokens);
  Status open_brought();
  Status measure_bringing();
  Status time_experts(const Segment& segment, const Weights& weights, uint32_t tokens, uint64_t* ns);
  Status begin_to_bring(std::span<const Segment> segments);
  Status bring(const Segment& segment);
  std::span<const Segment> segments(const StepKey& key) const {
    return key.brings ? brought_segments_ : segments_;
  }
  Status wait_for_idle(std::span<const Segment> segments);
  Status run(const Planned& plan, std::span<const Row> rows);
  Status run_segments(const Planned& plan);
  Status run_in_advance(const Planned& plan, std::span<const Row> rows);
  Status submit_segment(const Planned& plan, size_t index, std::span<const Row> rows);
  Status end_segment(const Segment& segment);
  Status await_tokens(std::span<const Row> rows);
  void tell_drawn(std::span<const Row> rows);
  // Whether the segments of a step are submitted before it is known what they read.
  bool in_advance() const { return !gates_.empty(); }
  Status run_last(const GretaGraph& graph, Stream& stream);
  void tell_step(Flight& flight);
  Status choose_plan(std::span<const Row> rows, StepKey* out) const;
  void write_rows(std::span<const Row> rows);
  Status upload_step(std::span<const Row> rows, const Planned& plan);
  Status upload_sequences();
  Status upload_rows(const Planned& plan, uint32_t lone);
  void find_prefixes(std::span<const Row> rows, StepKey* key);
  void follow_draws();
  void forget_uploads();
  // Copies `bytes` at `from` in the host's StepState to a device's, or to those of all devices.
  Status upload(uint32_t device, const void* from, uint64_t bytes);
  Status upload(const void* from, uint64_t bytes);
  // Each group has a StepState. Only that of group 0 is whole; of others the host writes the page tables.
  uint64_t state_bytes() const { return on_[0].step.buffer().bytes / plan_.groups.count; }
  Device& device(uint32_t index) const { return *model_.devices[index].device; }
  OnDevice& ends() { return on_[model_.placement.output()]; }
  const OnDevice& ends() const { return on_[model_.placement.output()]; }
  bool apart() const { return model_.placement.embedding() != model_.placement.output(); }
  const StepBuffers::Cache& cache_of(uint32_t layer) const {
    return on_[model_.placement.layer(layer)].buffers.cache[layer];
  }
  StepState& host_state(uint32_t group = 0) {
    return *reinterpret_cast<StepState*>(reinterpret_cast<uint8_t*>(host_step_.data()) +
                                         group * state_bytes());
  }
  uint32_t* host_tables(uint32_t group = 0) { return reinterpret_cast<uint32_t*>(&host_state(group) + 1); }
  SamplePenalties* host_penalties() {
    return reinterpret_cast<SamplePenalties*>(host_tables() +
                                              uint64_t(options_.sequences) * plan_.pages_per_sequence);
  }

  SharedPrefixes* host_prefixes() {
    return reinterpret_cast<SharedPrefixes*>(host_penalties() + options_.sequences);
  }

  Model& model_;
  ExecutorOptions options_;
  ExecutorPlan plan_;
  std::vector<PagePool> pools_;  // by group
  // Whose pages are states: a sequence has one at most, and one that it shares is copied before a step.
  std::optional<PagePool> states_;
  std::vector<uint32_t> state_ends_;        // by sequence: the position behind the last row in its state
  std::vector<Row> kept_inputs_;            // rows of which StepBuffers::Cache::inputs are there
  RowCounts row_counts_;
  std::optional<Checkpoints> checkpoints_;  // of states, else of the group with a window
  std::function<bool()> spare_pages_;
  // By sequence, how many pages at its beginning lack layers with a window, since it was restored without
  // them.
  std::vector<uint32_t> not_there_;
  uint32_t window_;  // of most layers with a window; 0: there is none
  std::vector<bool> sequence_used_;
  // By sequence, up to where the head has had rows, and of which positions hidden states are kept.
  struct HeadEnd {
    uint32_t position = 0;
    uint32_t kept_from = 0, kept_end = 0;
  };
  std::vector<HeadEnd> head_ends_;
  std::vector<HeadRow> head_rows_, kept_rows_;
  uint64_t submitted_ = 0;
  uint32_t states_rows_ = 0;  // rows of the last step whose hidden states are there
  std::vector<bool> sampling_changed_;
  std::vector<std::atomic<bool>> cancelled_;  // by sequence
  bool takes_lone_rows_;  // some kernel of the device takes rows that are alone in their sequences
  bool takes_prefixes_;   // some kernel of the device takes pages that such rows share
  std::vector<PagePool::Want> wants_;
  std::vector<PagePool::Copy> copies_[kMaxCacheGroups], state_copies_;

  std::vector<uint64_t> host_step_;  // the StepState as the devices will have it
  std::vector<StepRow> rows_there_;  // its rows as the devices have them; empty if that is not known
  uint32_t first_drawn_there_ = 0;
  std::optional<StepRuns> runs_there_;       // as the device has them
  bool prefixes_there_ = false;              // the device has the host's SharedPrefixes
  std::vector<SharingRow> sharing_;          // of the step that is being prepared
  std::vector<uint32_t> output_rows_there_;  // the beginning of its output_row as the device has it
  Flight flights_[kFlights];
  uint32_t flight_ = 0;  // the flight that is being recorded or comes next
  uint64_t steps_ = 0;   // that were told to a listener
  uint64_t waited_ns_ = 0;
  std::optional<LaunchClock> clock_;  // where launches are listened to
  std::vector<Row> known_rows_;
  std::vector<std::shared_ptr<const AdapterList>> adapters_;  // by sequence
  std::vector<AdapterSet> sets_;                              // the one that was used last comes last
  uint32_t last_set_ = 0, outputs_there_ = 0;
  std::vector<float> scales_, scales_there_;  // of the step's rows for its adapters; as the devices have them
  const std::vector<Segment> segments_;
  uint32_t bring_from_ = kNeverBring;      // Model::bring_from, or as measured
  std::vector<Segment> brought_segments_;  // of steps that bring experts
  Weights with_brought_;                   // what these steps read
  std::vector<OnDevice> on_;               // by device
  std::vector<Planned> plans_;             // destroyed before the streams and the kernels

  // Where residuals cross on a device, for each flight: host memory from which they come and to which they
  // go. `goes` is empty where it is the same as `comes`.
  struct Between {
    DeviceMemory comes, goes;
    uint64_t gate = 0;  // the last number of Stream::wait_for_host
  };
  MappedPages shared_;            // which devices share
  std::vector<Between> between_;  // by device
  std::vector<uint64_t> gates_;   // in_advance(): of each segment, what opens the gate before it; 0: nothing
  std::vector<Event> left_;       // and what it has signalled behind it, but for the last one
};

}  // namespace greta
