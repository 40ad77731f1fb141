// attention_prefix_mfma and attention_prefix_wmma: partial results of attention over pages with which several
// sequences begin, for all rows that share them (kernels/abi/shared_prefix.h). attention_behind adds the
// positions behind.
//   partial[item][KV head][query] = maximum of s, sum over s of w, sum over s of w * v[s]
//     where w = exp(scale * q . k[s] - maximum), s over the pages of the item's range, in float32
//   grid    (KV heads, items): group (h, i) takes item i, which has a block of kQueries queries and a range
//           of pages; groups for which there is no item return at once
//   group   as in attention_tiles_* (tiles.h), and so is shared memory
//   moves   keys and values of the shared positions once for each block; queries once for each range; the
//           partial results
// All queries see all positions, so there is no window here. The argument block is AttentionBlock in
// kernels/abi/ops.h, where `scratch` is the address of the partial results.
#pragma once
#include "kernels/hip/attention/prefix.h"
#include "kernels/hip/attention/tiles.h"

namespace {
static_assert(kQueries == kPrefixQueries);

// What a group takes: queries from first_query on, of members below `end`, and pages of a sequence.
struct Item {
  uint first_query, end, sequence, begin_page, end_page;
};

DEVICE bool find_item(const PrefixCut& cut, Item& item) {
  uint i = group_y();
  for (uint at = 0; at < cut.all->count; ++at) {
    const auto& prefix = cut.all->prefix[at];
    const uint blocks = blocks_of(cut, at), items = items_of(cut, at);
    if (i < items) {
      // Blocks with the same pages stand side by side.
      const uint begin = i / blocks * cut.each;
      item = {prefix.first * cut.heads + i % blocks * kQueries, prefix.first + prefix.count, prefix.sequence,
              begin, min(begin + cut.each, prefix.pages)};
      return true;
    }
    i -= items;
  }
  return false;
}

// `own` is the place of the lane's query in the item's block, `member` that of its row among the members of
// all prefixes.
struct OwnQuery {
  uint own, member;
};

DEVICE Queries queries_of(const AttentionBlock& p, const PrefixCut& cut, const Item& item, OwnQuery& lanes) {
  lanes.own = wave_index() / kSharing * 16 + lane() % 16;
  const uint query = item.first_query + lanes.own;
  lanes.member = query / cut.heads;
  Queries q = {};
  q.step = step_of(p.step);
  q.kv_head = group_x();
  q.end = ~0u;
  q.share = wave_index() % kSharing;
  q.token = cut.all->member[min(lanes.member, item.end - 1)];
  q.head = q.kv_head * cut.heads + query % cut.heads;
  return q;
}

// Stores the partial results of the lane's query.
template <class T>
DEVICE void store_partial(T& t, const AttentionBlock& p, const Queries& q, uint own) {
  const uint64_t index = prefix_result(group_y(), p.kv_heads, q.kv_head, own);
  const auto to = (GLOBAL vec4*)(p.scratch + index * ((p.value_width + 4) * 4));
  if (lane() < 16 && q.share == 0) to[0] = vec4{t.maximum / kLog2e, t.total, 0, 0};
  for_each_sum(t, q, p.value_width, [&](uint column, vec4 sums) { to[1 + column / 4] = sums; });
}
}  // namespace

KERNEL(GROUP) void KERNEL_NAME(AttentionBlock p) {
  const PrefixCut cut = cut_prefixes(step_of(p.step), p.heads, p.kv_heads);
  Item item;
  if (!find_item(cut, item)) return;
  OwnQuery lanes;
  const Queries q = queries_of(p, cut, item, lanes);
  Run run = {};
  run.sequence = item.sequence;
  run.from = item.begin_page * kPageTokens, run.until = item.end_page * kPageTokens;
  run.seen_until = ~0u;
  const auto attend_item = [&](auto& t) {
    begin_sums(t, p, q);
    attend(t, p, q, run, true);
    add_totals(t);
    if (lanes.member < item.end) store_partial(t, p, q, lanes.own);
  };
  if constexpr (kSharing == 1)
    if (p.key_width <= kWidest / 2 && p.value_width <= kWidest / 2)
      return with_heads<kWidest / 2>(p, attend_item);
  with_heads<kWidest>(p, attend_item);
}
