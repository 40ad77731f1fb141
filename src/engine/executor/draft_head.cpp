#include "engine/executor/draft_head.h"

#include <algorithm>

namespace greta {

void DraftHead::truncate(uint32_t sequence, uint32_t position) {
  End& end = ends_[sequence];
  end.position = std::min(end.position, position);
  end.kept_end = std::min(end.kept_end, position);
}

void DraftHead::note_read(const HeadPart& part) {
  const uint32_t known = uint32_t(part.tokens.size()), last = part.begin + part.count;
  uint32_t& position = ends_[part.sequence].position;
  position = std::max(position, std::min(last, known - 1));
}

Slice DraftHead::hidden_state(HeadRow::From from, uint32_t index, uint64_t count) const {
  const StepBuffers& b = on_.ends().buffers;
  const uint64_t bytes = model_.shape.width * sizeof(float);
  const Slice& all = from == HeadRow::From::Step   ? b.step_states
                     : from == HeadRow::From::Head ? b.head_states
                                                   : b.kept_states;
  return {all.buffer, all.offset + index * bytes, count * bytes};
}

Status DraftHead::copy_states(std::span<const HeadRow> rows) {
  ExecutorOnDevice& on = on_.ends();
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

void DraftHead::note_states(std::span<const TokenRow> rows) {
  kept_rows_.clear();
  if (!is_there()) return;
  for (size_t first = 0, end = 0; first < rows.size(); first = end) {
    const uint32_t sequence = rows[first].sequence, begin = rows[first].position;
    while (end < rows.size() && rows[end].sequence == sequence) ++end;
    const uint32_t last = begin + uint32_t(end - first);
    End& head = ends_[sequence];
    if (begin > head.kept_end || begin < head.kept_from) head.kept_from = begin;
    head.kept_from = std::max(head.kept_from, last - std::min(last, kKeptStates));
    head.kept_end = last;
    for (uint32_t p = std::max(begin, head.kept_from); p < last; ++p)
      kept_rows_.push_back({0, p, sequence, HeadRow::From::Step, uint32_t(first) + p - begin, false});
  }
}

// The places of a sequence's hidden states are taken in turn.
Status DraftHead::keep_states() {
  if (kept_rows_.empty()) return {};
  Stream& stream = *on_.ends().stream;
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

bool DraftHead::waits(const HeadPart& part) const {
  const uint32_t last = part.begin + part.count, position = ends_[part.sequence].position;
  return part.count && !part.depth && part.count <= kWaitingStates && last <= position + kWaitingStates;
}

bool DraftHead::list_rows(const HeadPart& part, bool fresh, std::vector<HeadRow>* rows) const {
  const End end = ends_[part.sequence];
  const size_t listed = rows->size();
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
      rows->resize(listed);
      return false;
    }
    rows->push_back(row);
  }
  if (rows->size() > listed)
    rows->back().output = part.depth && rows->back().position + 2 == known;
  return true;
}

}  // namespace greta
