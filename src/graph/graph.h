// GretaGraph: a forward step as a static list of launches, planned once and replayed.
//
// A captured plan is never patched. What changes from step to step (tokens, positions, page tables) lies in
// a StepState in device memory, which the kernels read.
//
// add() takes sequences of calls and gives each to the kernel row that covers most of it. finish() derives
// barriers from what the launches read and write, and lays the temporaries out in one arena by their
// lifetimes. bind() fixes addresses, and run() replays.
#pragma once
#include <memory>
#include <vector>

#include "graph/device_kernels.h"

namespace greta {

// The most operations that one submission gives to each compute unit. A weak unit does 5e10 a second, so they
// take it a tenth of a second. A GPU that is busy for seconds is reset, and draws no screen.
constexpr uint64_t kSubmitFlops = 5'000'000'000;

class GretaGraph {
 public:
  explicit GretaGraph(const RowFilter& filter) : filter_(filter) {}
  ~GretaGraph();
  GretaGraph(const GretaGraph&) = delete;
  GretaGraph& operator=(const GretaGraph&) = delete;

  // Reserves memory that lives from its first to its last use in this plan.
  Slice temporary(uint64_t bytes);

  // Adds a sequence of calls over `bucket` rows. The longest beginning that a kernel row covers becomes a
  // launch, and so on with the rest. Results between the calls need not be kept.
  Status add(std::span<const Call> calls, uint32_t bucket);
  // Adds sequences that do not need each other's results: the first launch of each, then the second of each,
  // so that they wait at the same barriers. `last` reads their results. If one row covers all that is left
  // together with `last`, that rest stays in the spans, for the caller to add with `last`.
  Status add_beside(std::span<std::span<const Call>> sequences, const Call& last, uint32_t bucket);
  Status copy(const Slice& to, const Slice& from);
  // Whether one row covers exactly these calls.
  bool covers(std::span<const Call> calls, uint32_t bucket) const { return best_row(calls, bucket, filter_); }

  // Names the part of the step ("attention") to which all belongs that was added since the last call.
  void name_part(const char* name) {
    for (; named_ < commands_.size(); ++named_) commands_[named_].part = name;
  }

  Status finish();
  uint64_t arena_bytes() const { return arena_bytes_; }

  // Fixes all addresses. `arena` has at least arena_bytes(), and all other buffers of the calls have their
  // addresses already. The caller then compiles the kernels.
  Status bind(KernelSet& kernels, const Slice& arena);
  Status capture(Stream& stream, Device& device);
  Status run(Stream& stream) const;  // replays if captured, else records each launch
  // Records each launch, and signals an event where each barrier stands and at the end: `events` has
  // barriers() + 1 of them.
  Status run(Stream& stream, std::span<Event> events) const;
  // Runs each launch by itself and waits for it. `ns` gets the nanoseconds that each took on the device.
  Status time_commands(Stream& stream, Device& device, std::vector<uint64_t>* ns) const;

  // A launch or a copy of the plan.
  struct Command {
    std::vector<Call> calls;  // empty if this is a copy
    const KernelRow* row = nullptr;
    uint32_t bucket = 0;
    Slice to, from;  // of a copy
    Launch launch;
    bool barrier_before = false;
    bool split_before = false;  // a new submission begins here (kSubmitFlops)
    uint32_t stage = 0;         // launches of one stage may overlap
    const char* part = "";
    // What it must move and compute if so many tokens and outputs are live, with `depth` cached positions.
    Cost cost(uint32_t tokens, uint32_t outputs, uint32_t depth) const;
  };
  std::span<const Command> commands() const { return commands_; }
  uint32_t barriers() const;
  void remove_barrier(uint32_t index);  // for tests, in which the checked device must then report the plan

 private:
  struct Temporary {
    uint64_t bytes, place, offset;  // `place` is unique while planning, and `offset` lies in the arena
    uint32_t first_stage, last_stage;
  };
  Status add_first(std::span<const Call>* calls, uint32_t bucket);
  Status add_launch(std::span<const Call> calls, const KernelRow& row, uint32_t bucket);
  Status convert_input(Call& call, Form form, uint32_t depth, uint32_t bucket);
  void split_columns(std::span<const Call> calls, Call& call, const KernelRow& row, uint32_t bucket);
  bool fuse_convert(Call convert, uint32_t bucket);
  bool already_there(std::span<const Call> calls) const;
  Temporary* temporary_of(const Slice& slice);
  void note_lifetimes();
  void place_temporaries();
  Slice bound(const Slice& slice, const Slice& arena);
  static Status record(const Command& command, Stream& stream);
  Status record(Stream& stream) const;

  RowFilter filter_;
  Buffer planning_;                     // stands for the arena until bind()
  std::vector<Temporary> temporaries_;  // by place
  std::vector<Command> commands_;
  size_t named_ = 0;  // how many of commands_ have a part
  uint64_t next_place_ = 0, arena_bytes_ = 0;
  uint32_t next_counter_ = 0;  // the counter that the next split-K product gets
  Graph captured_;
  Device* captured_on_ = nullptr;
};

}  // namespace greta
