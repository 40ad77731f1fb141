// attention_prefix_cm1: partial results of attention over pages with which several sequences begin, for all
// rows that share them (kernels/abi/shared_prefix.h). attention_behind adds the positions behind.
//   partial[item][KV head][query] = maximum of s, sum over s of w, sum over s of w * v[s]
//     where w = exp(scale * q . k[s] - maximum), s over the pages of the item's range, in float32
//   grid    (KV heads, items): group (h, i) takes item i, which has a block of kQueries queries and a range
//           of pages; groups for which there is no item return at once
//   group   as in attention_tiles_cm1. Keys, weights and values are float16, sums are float32 (tiles_cm1.h)
//   shared  attention_shared_bytes() of kernels/abi/attention_tile.h
//   moves   keys and values of the shared positions once for each block; queries once for each range; the
//           partial results
// All queries see all positions, so there is no window here. The argument block is AttentionBlock in
// kernels/abi/ops.h, where `scratch` is the address of the partial results.
#include "kernels/vulkan/attention/tiles_cm1.h"
#include "kernels/vulkan/attention/prefix.h"

SharedPrefixes_address prefixes;

uint row_at(uint member) { return prefixes.all.member[member]; }

// What a group takes: queries of members first .. end - 1, and pages.
struct Item {
  uint sequence, first, end, begin_page, end_page;
};

bool find_item(uint i, out Item item) {
  const uint each = prefix_pages_each(prefixes);
  for (uint at = 0; at < prefixes.all.count; ++at) {
    const SharedPrefix prefix = prefixes.all.prefix[at];
    const uint blocks = blocks_of(prefix), items = items_of(prefix, each);
    if (i < items) {
      // Blocks with the same pages stand side by side.
      first_query = prefix.first * kHeadsPerKv + i % blocks * kQueries;
      item = Item(prefix.sequence, prefix.first, prefix.first + prefix.count, i / blocks * each, 0);
      item.end_page = min(item.begin_page + each, prefix.pages);
      return true;
    }
    i -= items;
  }
  return false;
}

// Stores the partial results of the members below `end`.
void store(uint end) {
  if (!has_queries) return;
  const uint item = gl_WorkGroupID.y * kKvHeads + kv_head;
  uint64_t to[kComponents];  // 0 where there is no member
  [[unroll]] for (uint c = 0; c < kComponents; ++c) {
    const uint query = own_query + row_of(c);
    const uint64_t at = uint64_t(p.scratch) + uint64_t(item * kQueries + query) * (kValueWidth + 4) * 4;
    to[c] = token_of(query) < end ? at : 0;
    if (to[c] == 0 || column_of(c) != 0 || share != 0) continue;
    float_address(at).at[0] = maximum[c] / kLog2e;
    float_address(at).at[1] = query_total[query];
  }
  [[unroll]] for (uint n = 0; n < kValueMatrices; ++n)
    [[unroll]] for (uint c = 0; c < kComponents; ++c) {
      const uint column = column_at((share * kValueMatrices + n) * kN + column_of(c));
      if (to[c] != 0 && column < kValueWidth) float_address(to[c]).at[4 + column] = sums[n][c];
    }
}

void main() {
  StepState_address step = step_of(p.step);
  prefixes = prefixes_of(p.step, step);
  kv_head = gl_WorkGroupID.x;
  begin_group();
  Item item;
  if (!find_item(gl_WorkGroupID.y, item)) return;
  for (uint i = gl_LocalInvocationIndex; i < kQueries; i += kThreads) {
    if (i < kQueries / kM) raise_count[i] = 0;
    query_raised[i] = ordered(kNone);
  }
  begin_queries(item.end);
  attend_positions(step, item.sequence, item.begin_page * kPageTokens, item.end_page * kPageTokens, true, 0,
                   ~0u);
  barrier();
  find_totals();
  store(item.end);
}
