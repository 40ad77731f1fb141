#include "api/compute/fusing.h"

#include <algorithm>

namespace greta {

namespace {

constexpr Slot kWritten[] = {kY, kY2};
constexpr Slot kOwn[] = {kStep, kCounters, kScratch};  // which every call has for itself, or only reads

template <class Slots>
bool among(const Slots& slots, uint32_t slot) {
  return std::any_of(std::begin(slots), std::end(slots), [&](Slot each) { return each == slot; });
}

bool reads(const GraphCall& of, const Slice& slice) {
  if (!of.bucket) return overlaps(of.from, slice);
  for (uint32_t s = 0; s < kSlotCount; ++s)
    if (!among(kWritten, s) && !among(kOwn, s) && overlaps(of.call.slot[s], slice)) return true;
  return overlaps(of.call.weight.slice, slice);
}

bool writes(const GraphCall& of, const Slice& slice) {
  if (!of.bucket) return overlaps(of.to, slice);
  return overlaps(of.call.slot[kY], slice) || overlaps(of.call.slot[kY2], slice) ||
         (of.call.op == Op::KvWrite && overlaps(of.call.slot[kPool], slice));
}

bool together(const GraphCall& a, const GraphCall& b) {
  return a.bucket && a.bucket == b.bucket && a.call.slot[kStep] == b.call.slot[kStep];
}

// Whether only this operand of the call lies in the slice.
bool reads_as_x_alone(const GraphCall& of, const Slice& slice) {
  if (!of.bucket || !multiplies(of.call.op) || of.call.slot[kX] != slice) return false;
  GraphCall without = of;
  without.call.slot[kX] = {};
  return !reads(without, slice);
}

}  // namespace

// Whether products alone read what the norm makes, before anything else changes it or what it is made of.
bool Fusing::is_norm_of_products(size_t i) const {
  const GraphCall& norm = calls_[i];
  const Call& call = norm.call;
  const Slice& y = call.slot[kY];
  if (!norm.bucket || call.op != Op::Norm || call.norm.heads != 1 || !is_temporary_(y) ||
      overlaps(y, call.slot[kX]) || call.rows_of != kRowsTokens)
    return false;
  bool changed = false, read = false;
  for (size_t j = i + 1; j < calls_.size(); ++j) {
    const GraphCall& later = calls_[j];
    if (reads(later, y)) {
      if (changed || !together(norm, later) || !reads_as_x_alone(later, y)) return false;
      read = true;
    }
    if (later.bucket && later.call.slot[kY] == y) return read;  // made anew, for others
    changed |= writes(later, y) || writes(later, call.slot[kX]) || writes(later, call.weight.slice);
  }
  return read;
}

// The norm that goes before call i.
const Call* Fusing::held_norm_of(size_t i) const {
  for (size_t j = i; j-- > 0;)
    if (calls_[j].bucket && calls_[j].call.slot[kY] == calls_[i].call.slot[kX] &&
        calls_[j].call.slot[kY].buffer)
      return held_[j] ? &calls_[j].call : nullptr;
  return nullptr;
}

// Whether nobody misses what call `maker` makes, where it is in one launch with those up to `last`.
bool Fusing::is_lost_by(size_t maker, size_t last) const {
  const Slice &y = calls_[maker].call.slot[kY], &kept = calls_[last].call.slot[kY];
  if (!y.buffer || y == kept) return true;
  if (!is_temporary_(y) || overlaps(y, kept)) return false;
  for (size_t j = last + 1; j < calls_.size(); ++j) {
    if (reads(calls_[j], y)) return false;
    if (calls_[j].bucket && calls_[j].call.slot[kY] == y) return true;
  }
  return true;
}

// How many calls from `first` on one launch can take; `out` gets them, with a norm that was held before.
size_t Fusing::longest_run(size_t first, const GretaGraph& plan, std::vector<Call>* out) const {
  const Call* const norm = held_norm_of(first);
  size_t most = 1;
  while (first + most < calls_.size() && most + (norm != nullptr) < kMaxFused && !held_[first + most] &&
         together(calls_[first], calls_[first + most])) {
    const Call* const other = held_norm_of(first + most);
    if (other && other != norm) break;
    ++most;
  }
  for (size_t taken = most; taken > 0; --taken) {
    const size_t last = first + taken - 1;
    out->clear();
    if (norm) out->push_back(*norm);
    const Slice& kept = calls_[last].call.slot[kY];
    bool can = !norm || !overlaps(norm->slot[kX], kept);
    for (size_t i = first; i <= last; ++i) {
      out->push_back(calls_[i].call);
      // A group of the launch must not write what another one has still to read.
      const bool in_place = calls_[i].call.slot[kY] == kept;
      can = can && (i == last || (is_lost_by(i, last) && (in_place || !reads(calls_[i], kept))));
    }
    if (taken == 1 || (can && plan.covers(*out, calls_[first].bucket))) return taken;
  }
  return 1;
}

Status Fusing::add_to(GretaGraph& plan) {
  for (size_t i = 0; i < calls_.size(); ++i) held_[i] = is_norm_of_products(i);
  std::vector<Call> run;
  for (size_t i = 0; i < calls_.size();) {
    const GraphCall& next = calls_[i];
    if (!next.bucket) {
      GRETA_TRY(plan.copy(next.to, next.from));
      ++i;
    } else if (held_[i]) {
      ++i;
    } else {
      i += longest_run(i, plan, &run);
      GRETA_TRY(plan.add(run, next.bucket));
    }
  }
  return {};
}

}  // namespace greta
