// GretaGraph: a forward step as a static list of launches, planned once and replayed.
//
// Nothing in a plan changes from step to step. What does change - tokens, positions, page tables -
// lives in a StepState in device memory that the kernels read. So a captured plan is never patched.
//
// Planning: add() takes sequences of calls and gives them to the kernel rows that cover most of them;
// finish() derives barriers from what the launches read and write and packs the temporaries into one
// arena by their lifetimes; bind() fixes addresses; run() replays.
#pragma once
#include <list>
#include <memory>
#include <vector>

#include "tune/tune.h"

namespace greta {

// What one submission may ask of each compute unit. Systems take a device for hung that does not answer for
// seconds and share it with what draws the screen; weak units do 5e10 a second: a tenth of a second.
constexpr uint64_t kSubmitFlops = 5'000'000'000;

constexpr uint32_t kMaxCompilers = 16;  // threads for which a driver compiles kernels at once

// Loaded kernels of one device, by code and constants. Not thread-safe: one for each executor.
class KernelSet {
 public:
  explicit KernelSet(Device& device) : device_(device) {}
  ~KernelSet();
  KernelSet(const KernelSet&) = delete;
  KernelSet& operator=(const KernelSet&) = delete;
  // One for each set of specialization constants, which are fields of the launch's block. Usable after
  // compile().
  const Kernel* want(const KernelRow& row, std::span<const uint8_t> block);
  // All that is wanted and not there yet, side by side; `progress` hears of it some 20 times a second, and
  // last of all kernels if it heard of any. Where it fails, or is cancelled, those that are not there are
  // wanted no more.
  Status compile(const Progress& progress = {});
  std::span<const KernelRow* const> refused() const {
    return refused_;
  }  // by the driver, at the last compile()
  Status load(const KernelRow& row, std::span<const uint8_t> block, const Kernel** out);  // both
  Device& device() { return device_; }

 private:
  struct Entry {
    const KernelRow* row;  // rows of one code share a kernel
    std::vector<uint32_t> constants;
    Kernel kernel;
    bool there = false;
  };
  struct Compilers;
  Status compile(Entry& entry);
  Status compile(std::span<Entry* const> missing, const Progress& progress);

  Device& device_;
  std::list<Entry> entries_;  // addresses of kernels stay
  std::vector<const KernelRow*> refused_;
};

class GretaGraph {
 public:
  explicit GretaGraph(const RowFilter& filter) : filter_(filter) {}
  ~GretaGraph();
  GretaGraph(const GretaGraph&) = delete;
  GretaGraph& operator=(const GretaGraph&) = delete;

  // Memory that lives from its first to its last use in this plan.
  Slice temporary(uint64_t bytes);

  // A sequence of calls over `bucket` rows that one kernel row may cover. Where none does, the longest
  // covered beginning is split off, and so on. Results between the calls need not be kept.
  Status add(std::span<const Call> calls, uint32_t bucket);
  // The same of sequences that do not need each other's results: the first launches of all, then the second
  // ones, so that they wait at the same barriers. What the spans still have afterwards, one row takes
  // together with `last`, which reads their results: to be added with it.
  Status add_beside(std::span<std::span<const Call>> sequences, const Call& last, uint32_t bucket);
  Status copy(const Slice& to, const Slice& from);

  // What was added since the last call is this part of the step, for profiles: "attention".
  void name_part(const char* name) {
    for (; named_ < commands_.size(); ++named_) commands_[named_].part = name;
  }

  Status finish();
  uint64_t arena_bytes() const { return arena_bytes_; }

  // `arena` has at least arena_bytes(); all other buffers of the calls have their addresses. Then the kernels
  // are to be compiled.
  Status bind(KernelSet& kernels, const Slice& arena);
  Status capture(Stream& stream, Device& device);
  Status run(Stream& stream) const;  // replays if captured, else records each launch
  // Runs each command alone, after what was before it, and waits: nanoseconds of each on the device.
  Status time_commands(Stream& stream, Device& device, std::vector<uint64_t>* ns) const;

  // A launch or a copy of the plan.
  struct Command {
    std::vector<Call> calls;  // empty: a copy
    const KernelRow* row = nullptr;
    uint32_t bucket = 0;
    Slice to, from;  // of a copy
    Launch launch;
    bool barrier_before = false;
    bool split_before = false;  // a device is not kept busy too long without a break
    uint32_t stage = 0;         // commands of one stage may overlap
    const char* part = "";
  };
  std::span<const Command> commands() const { return commands_; }
  uint32_t barriers() const;
  void remove_barrier(uint32_t index);  // tests: the plan must then be reported by the checked device

 private:
  struct Temporary {
    uint64_t bytes, place, offset;  // place: unique while planning; offset: in the arena
    uint32_t first_stage, last_stage;
  };
  Status add_first(std::span<const Call>* calls, uint32_t bucket);
  Status add_launch(std::span<const Call> calls, const KernelRow& row, uint32_t bucket);
  Status convert_input(Call& call, Form form, uint32_t depth, uint32_t bucket);
  void split_columns(Call& call, const KernelRow& row, uint32_t bucket);
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
  size_t named_ = 0;  // how many of the commands have a part
  uint64_t next_place_ = 0, arena_bytes_ = 0;
  uint32_t next_counter_ = 0;  // of those that split matmuls have
  Graph captured_;
  Device* captured_on_ = nullptr;
};

}  // namespace greta
