// Which positions a group of attention_split, attention_heads and their forms for lone rows attends to.
//
// The kernel defines kLone and kBehind. Where kLone is false, the grid is (tokens * KV heads,
// attention_splits(KV heads)), and group (., j) takes the j-th range of its token's positions. How these are
// split depends only on the sequence and the model.
//
// Where kLone is true, the tokens are the first rows of the step, each of which is the only one of its
// sequence (StepState.lone_count), and the grid is (KV heads, ranges). All rows together have as many pages
// as the step has to read. They are cut into ranges of equal length, the last one of a row excepted, so that
// there are about as many ranges as the grid has groups for a KV head, whatever the lengths are. Group (h, i)
// takes range i, counted through the rows in order.
//
// Where kBehind is true too, a row's positions are those behind the pages that it shares with others. The
// results of these pages are its first ranges, which attention_prefix has made (prefix.h).
#pragma once
#include "kernels/hip/attention/prefix.h"
#include "kernels/hip/grid.h"
#include "kernels/hip/step.h"

namespace {

// Fewest pages of a range: to merge ranges takes as long as to read some pages.
constexpr uint kMinSplitPages = kLone ? 4 : 2;
constexpr uint kMaxSplits =  // ranges of a token
    (kLone ? kMaxLoneSplits : kMaxAttentionSplits) + (kBehind ? kMaxPrefixRanges : 0);

// What a group takes: positions begin .. end - 1 of a sequence, one of `splits` ranges, for a token and a KV
// head. The page of `begin` may begin earlier.
struct Range {
  uint t, kv_head, split, splits, sequence, begin, end;
  bool newest;       // whether the token's own position is among them
  uint first_range;  // of the token, among the ranges of all lone rows
  uint prefix_ranges;  // of the pages before, whose results are there
};

// The same in pages: the split-th of `splits` ranges of token t, of `each` pages.
struct Share {
  uint t, split, splits, each, first_range;
};

// Row t of the step takes positions from begin_of() to its own, and parts of pages_of() pages.
DEVICE uint begin_of(const AttentionBlock& p, Step step, uint t) {
  if constexpr (kBehind) return prefixes_of(step)->row[t].pages * kPageTokens;
  const uint end = step->row[t].position + 1;
  return p.window != 0 && p.window < end ? end - p.window : 0;
}
DEVICE uint pages_of(const AttentionBlock& p, Step step, uint t) {
  return step->row[t].position / kPageTokens + 1 - begin_of(p, step, t) / kPageTokens;
}

DEVICE uint ranges_of(uint pages, uint each) { return (pages + each - 1) / each; }

// The sum over this lane and those before it.
DEVICE uint sum_to_lane(uint value) {
  for (uint d = 1; d < kWave; d *= 2) {
    const uint before = shuffle(value, lane() >= d ? lane() - d : 0);
    if (lane() >= d) value += before;
  }
  return value;
}

// Pages of a range of lone rows, so that no more ranges are needed than there are groups. A row has at most
// kMaxLoneSplits.
DEVICE uint pages_each(const AttentionBlock& p, Step step, uint rows) {
  uint total = 0, most = 0;
  for (uint first = 0; first < rows; first += kWave) {
    const uint i = first + lane(), pages = i < rows ? pages_of(p, step, i) : 0;
    total += pages;
    most = max(most, pages);
  }
  total = broadcast(wave_sum(total), 0), most = broadcast(wave_max(most), 0);
  const uint each = ranges_of(total, group_count_y() - rows);
  return max(max(each, ranges_of(most, kMaxLoneSplits)), kMinSplitPages);
}

// Each wave finds the share of the group.
DEVICE bool find_share_of_rows(const AttentionBlock& p, Step step, Share& share) {
  const uint rows = min(step->lone_count, group_count_y() - 1);
  share.each = pages_each(p, step, rows);
  uint before = 0;
  for (uint first = 0; first < rows; first += kWave) {
    const uint i = first + lane();
    const uint ranges = i < rows ? ranges_of(pages_of(p, step, i), share.each) : 0;
    const uint end = before + sum_to_lane(ranges);
    const uint found = broadcast(wave_min(end > group_y() ? lane() : kWave), 0);
    if (found < kWave) {
      share.t = first + found;
      share.splits = broadcast(ranges, found);
      share.first_range = broadcast(end, found) - share.splits;
      share.split = group_y() - share.first_range;
      return true;
    }
    before = broadcast(end, kWave - 1);
  }
  return false;
}

DEVICE bool find_share_of_token(const AttentionBlock& p, Step step, Share& share) {
  const uint t = group_x() / p.kv_heads;
  if (t >= live_rows(step, kRowsTokens)) return false;
  const uint pages = pages_of(p, step, t);
  const uint each = max(ranges_of(pages, attention_splits(p.kv_heads)), kMinSplitPages);
  share = {t, group_y(), ranges_of(pages, each), each, 0};
  return share.split < share.splits;
}

DEVICE uint prefix_ranges_of(const AttentionBlock& p, Step step, uint t) {
  const auto& row = prefixes_of(step)->row[t];
  return row.pages == 0 ? 0 : ranges_of(row.pages, cut_prefixes(step, p.heads, p.kv_heads).each);
}

// The range of this group; false if there is none.
DEVICE bool find_range(const AttentionBlock& p, Range& range) {
  const Step step = step_of(p.step);
  Share share;
  if (!(kLone ? find_share_of_rows(p, step, share) : find_share_of_token(p, step, share))) return false;
  const auto& row = step->row[share.t];
  const uint begin = begin_of(p, step, share.t), end = row.position + 1;
  const uint from = (begin / kPageTokens + share.split * share.each) * kPageTokens;
  range = {share.t,      group_x() % p.kv_heads, share.split,
           share.splits, row.sequence,           max(begin, from),
           min(end, from + share.each * kPageTokens), false, share.first_range, 0};
  range.newest = range.end == end;
  if constexpr (kBehind) {
    range.prefix_ranges = prefix_ranges_of(p, step, share.t);
    range.split += range.prefix_ranges, range.splits += range.prefix_ranges;
  }
  return true;
}

// The counter of the groups that share a token and KV head.
DEVICE uint counter_of(const AttentionBlock& p, const Range& range) {
  return range.t * p.kv_heads + range.kv_head;
}

}  // namespace
