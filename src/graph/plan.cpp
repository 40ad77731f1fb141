// Plans a step: which kernel row runs which calls, where barriers stand, and where temporaries lie.
#include <algorithm>

#include "graph/graph.h"
#include "graph/hazards.h"

namespace greta {

constexpr uint64_t kAlignment = 256;

Slice GretaGraph::temporary(uint64_t bytes) {
  const uint64_t size = round_up(bytes, kAlignment);
  temporaries_.push_back({size, next_place_, 0, ~0u, 0});
  const Slice slice{&planning_, next_place_, bytes};
  next_place_ += size;
  planning_.bytes = next_place_;
  return slice;
}

GretaGraph::Temporary* GretaGraph::temporary_of(const Slice& slice) {
  if (slice.buffer != &planning_) return nullptr;
  auto after = std::upper_bound(temporaries_.begin(), temporaries_.end(), slice.offset,
                                [](uint64_t offset, const Temporary& t) { return offset < t.place; });
  return &*(after - 1);
}

// A fused launch writes only what its last call makes. Returns true if a call after the `taken` first ones
// reads a result that such a launch would not write.
static bool loses_a_result(std::span<const Call> calls, size_t taken) {
  const Slice& kept = calls[taken - 1].slot[kY];
  for (const Call& made : calls.first(taken - 1)) {
    const Slice& y = made.slot[kY];
    if (overlaps(y, kept)) continue;
    for (const Call& later : calls.subspan(taken))
      for (const Slot input : {kX, kX2, kX3, kX4, kX5})
        if (overlaps(later.slot[input], y)) return true;
  }
  return false;
}

// Adds a launch of the longest beginning that one row covers, and takes it off the calls. Fails if no row
// covers even the first call.
Status GretaGraph::add_first(std::span<const Call>* calls, uint32_t bucket) {
  size_t taken = std::min<size_t>(calls->size(), kMaxFused);
  const KernelRow* row = nullptr;
  for (; taken > 1; --taken)
    if (!loses_a_result(*calls, taken) && (row = best_row(calls->first(taken), bucket, filter_))) break;
  if (!row) GRETA_TRY(choose_row(calls->first(1), bucket, filter_, &row));
  GRETA_TRY(add_launch(calls->first(taken), *row, bucket));
  *calls = calls->subspan(taken);
  return {};
}

Status GretaGraph::add(std::span<const Call> calls, uint32_t bucket) {
  while (!calls.empty()) GRETA_TRY(add_first(&calls, bucket));
  return {};
}

Status GretaGraph::add_beside(std::span<std::span<const Call>> sequences, const Call& last, uint32_t bucket) {
  const auto one_row_takes_the_rest = [&] {
    std::vector<Call> rest;
    for (const std::span<const Call> calls : sequences) rest.insert(rest.end(), calls.begin(), calls.end());
    rest.push_back(last);
    return rest.size() > 1 && best_row(rest, bucket, filter_);
  };
  for (bool more = true; more && !one_row_takes_the_rest();) {
    more = false;
    for (std::span<const Call>& calls : sequences) {
      if (calls.empty()) continue;
      GRETA_TRY(add_first(&calls, bucket));
      more = true;
    }
  }
  return {};
}

// Lets the launch that makes x also convert it. Returns false if no row does both.
bool GretaGraph::fuse_convert(Call convert, uint32_t bucket) {
  for (size_t i = commands_.size(); i-- > 0;) {
    Command& command = commands_[i];
    const std::span<const Access> accesses(command.launch.accesses, command.launch.access_count);
    const auto writes_x = [&](const Access& a) {
      return (a.mode & Access::kWrite) && overlaps(a.slice, convert.slot[kX]);
    };
    if (std::none_of(accesses.begin(), accesses.end(), writes_x)) continue;
    if (command.calls.empty() || command.bucket != bucket || command.calls.size() == kMaxFused) return false;
    // The row that is gathered from a single token is that token's.
    if (convert.rows_of == kRowsGather && bucket > 1) return false;
    convert.rows_of = command.calls[0].rows_of;
    std::vector<Call> calls = command.calls;
    calls.push_back(convert);
    const KernelRow* row = best_row(calls, bucket, filter_);
    if (!row) return false;
    command.calls = std::move(calls);
    command.row = row;
    make_launch(command.calls, *row, bucket, filter_.device, &command.launch);
    return true;
  }
  return false;
}

// Converts x to the activation format that the row reads, once for all launches that read the same x. If a
// norm leads the launch, the conversion also multiplies by its gain.
Status GretaGraph::convert_input(Call& call, Form form, uint32_t depth, uint32_t bucket) {
  Call convert = CallMaker{call.slot[kStep]}.convert(call.slot[kX], {}, form, depth);
  convert.rows_of = call.rows_of;
  if (call.op == Op::Norm) convert.weight = call.weight;
  const auto there = [&](const Command& command) {
    if (command.calls.empty() || command.calls.back().op != Op::Convert) return false;
    convert.slot[kY] = command.calls.back().slot[kY];
    return convert == command.calls.back() && already_there({&convert, 1});
  };
  if (std::none_of(commands_.begin(), commands_.end(), there)) {
    convert.slot[kY] = temporary(form_row_bytes(form, depth) * bucket);
    if (!fuse_convert(convert, bucket)) GRETA_TRY(add({&convert, 1}, bucket));
  }
  call.slot[kX] = convert.slot[kY];
  if (call.rows_of == kRowsGather) call.rows_of = kRowsOutputs;  // the convert has gathered
  return {};
}

// Returns true if an equal launch, or one that ends in this call, ran before, and nothing has since written
// what it read or made.
bool GretaGraph::already_there(std::span<const Call> calls) const {
  if (calls.size() != 1 || (calls[0].op != Op::Norm && calls[0].op != Op::Convert)) return false;
  for (size_t i = commands_.size(); i-- > 0;) {
    const Command& command = commands_[i];
    // A launch leaves the result of a convert at its end, and also that of a single call before the convert.
    const size_t count = command.calls.size();
    const bool converts = count && command.calls.back().op == Op::Convert;
    if (converts && command.calls.back() == calls[0]) return true;
    if (count && count <= 1u + converts && command.calls.front() == calls[0]) return true;
    for (uint32_t a = 0; a < command.launch.access_count; ++a) {
      const Access& access = command.launch.accesses[a];
      if ((access.mode & Access::kWrite) &&
          (overlaps(access.slice, calls[0].slot[kX]) || overlaps(access.slice, calls[0].slot[kY])))
        return false;
    }
  }
  return false;
}

// How many values of x a product reads for a token. A norm before it runs over as many.
static uint32_t width_of_x(const Call& call) {
  const uint32_t depth = call.weight.depth;
  return call.op == Op::MatmulExpert ? call.matmul_expert.x_slots * (call.x_stride ? call.x_stride : depth)
                                     : depth;
}

// Chooses split-K for a product. Groups that share a tile need memory for their sums, and each tile needs a
// counter that no other launch of the stage uses.
void GretaGraph::split_columns(std::span<const Call> calls, Call& call, const KernelRow& row,
                               uint32_t bucket) {
  const Slice all = call.slot[kCounters];
  const uint32_t tiles = tile_count(call, row, bucket);
  if (!all.buffer) return;
  call.matmul.splits = choose_splits(calls, row, bucket, filter_);
  if (call.matmul.splits == 1) return;
  if (next_counter_ + tiles > kCounterCount - kRouterCounters) next_counter_ = 0;
  call.slot[kCounters] = {all.buffer, all.offset + next_counter_ * sizeof(uint32_t),
                          tiles * sizeof(uint32_t)};
  call.slot[kScratch] = temporary(split_bytes(call, row, bucket));
  next_counter_ += tiles;
}

Status GretaGraph::add_launch(std::span<const Call> calls, const KernelRow& row, uint32_t bucket) {
  if (already_there(calls)) return {};
  Command command;
  command.calls.assign(calls.begin(), calls.end());
  command.row = &row;
  command.bucket = bucket;
  if (row.form != Form::F32 && calls[0].op != Op::Convert) {
    Call& first = command.calls[0];
    const bool norms = first.op == Op::Norm;
    GRETA_TRY(convert_input(first, row.form, width_of_x(calls[norms]), bucket));
    for (Call& call : command.calls) {  // gate and up of one sequence read the same x
      if (!multiplies(call.op)) continue;
      call.form = row.form;
      if (!norms) call.slot[kX] = first.slot[kX];
    }
  }
  if (row.splits > 1)
    for (Call& call : command.calls)
      if (call.op == Op::Matmul) split_columns(command.calls, call, row, bucket);
  make_launch(command.calls, row, bucket, filter_.device, &command.launch);
  commands_.push_back(std::move(command));
  return {};
}

Status GretaGraph::copy(const Slice& to, const Slice& from) {
  if (to.bytes != from.bytes)
    return fail(Code::Argument, "copy of %llu bytes to %llu", (unsigned long long)from.bytes,
                (unsigned long long)to.bytes);
  Command command;
  command.to = to;
  command.from = from;
  command.launch.read(from);
  command.launch.write(to);
  commands_.push_back(std::move(command));
  return {};
}

// Bytes of a page of the keys that attention reads, or of what kv_write writes; 0 for other ops.
static uint32_t page_bytes_of(const Call& call) {
  return call.op == Op::Attention ? call.attention.keys.bytes : call.kv_write.pages.bytes;
}

// The operations of a launch if the bucket and the cache are full.
static uint64_t flops_of(const GretaGraph::Command& command) {
  if (!command.row) return 0;
  uint64_t depth = 0;
  for (const Call& call : command.calls)
    if (const uint32_t bytes = page_bytes_of(call)) depth = call.slot[kPool].bytes / bytes * kPageTokens;
  return lead_of(command.calls).cost(command.calls, command.bucket, uint32_t(depth)).flops;
}

// A barrier stands before a launch that conflicts with one since the last barrier: both touch the same bytes,
// and one of them writes. The first launch always has one, since copies into the StepState precede it.
Status GretaGraph::finish() {
  size_t since = 0;
  uint32_t stage = 0;
  const uint64_t most = kSubmitFlops * (filter_.device ? filter_.device->unit_count : 1);
  uint64_t flops = 0;  // since the last split
  for (size_t i = 0; i < commands_.size(); ++i) {
    Command& command = commands_[i];
    bool hazard = i == 0;
    for (size_t j = since; j < i && !hazard; ++j)
      for (uint32_t a = 0; a < command.launch.access_count && !hazard; ++a)
        for (uint32_t b = 0; b < commands_[j].launch.access_count && !hazard; ++b)
          hazard = conflicts(command.launch.accesses[a], commands_[j].launch.accesses[b]);
    if (hazard) {
      since = i;
      stage += i > 0;
    }
    command.barrier_before = hazard;
    command.stage = stage;
    const uint64_t own = flops_of(command);
    command.split_before = i > 0 && flops + own > most;
    flops = own + (command.split_before ? 0 : flops);
  }
  note_lifetimes();
  place_temporaries();
  return {};
}

void GretaGraph::note_lifetimes() {
  for (const Command& command : commands_)
    for (uint32_t a = 0; a < command.launch.access_count; ++a)
      if (Temporary* t = temporary_of(command.launch.accesses[a].slice)) {
        t->first_stage = std::min(t->first_stage, command.stage);
        t->last_stage = std::max(t->last_stage, command.stage);
      }
}

// Places the largest temporary first, and each at the lowest offset that is free during its stages. Memory is
// reused only in a later stage, so the barrier between the stages orders the uses.
void GretaGraph::place_temporaries() {
  std::vector<Temporary*> order;
  for (Temporary& t : temporaries_)
    if (t.first_stage <= t.last_stage) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const Temporary* a, const Temporary* b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->place < b->place;
  });
  std::vector<Temporary*> placed;  // by offset
  for (Temporary* t : order) {
    uint64_t offset = 0;
    for (const Temporary* other : placed) {
      if (other->last_stage < t->first_stage || t->last_stage < other->first_stage) continue;
      if (offset + t->bytes <= other->offset) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    t->offset = offset;
    arena_bytes_ = std::max(arena_bytes_, offset + t->bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), t,
                         [](const Temporary* a, const Temporary* b) { return a->offset < b->offset; }),
        t);
  }
}

}  // namespace greta
