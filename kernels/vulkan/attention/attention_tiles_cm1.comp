// attention_tiles_cm1: attention of many tokens with the cooperative matrices of subgroups (KHR). Queries,
// keys, weights and values are float16, sums are float32 (tiles_cm1.h).
//   y[t][h] = softmax over s of (scale * q[t][h] . k[s]) times v[s]
//   grid    (blocks of kQueries queries * KV heads). A query is a token and one of the query heads of a KV
//           head
//   group   kThreads threads. kQuerySubgroups subgroups have the same kM queries. The group goes through the
//           cache in tiles of kTile positions that all its queries share
//   shared  attention_shared_bytes() of kernels/abi/attention_tile.h
//   moves   keys and values of all positions once for each group; queries once; y, and y as float16 where it
//           is wanted
// The argument block is AttentionBlock in kernels/abi/ops.h.
#include "kernels/vulkan/attention/tiles_cm1.h"

uint row_at(uint t) { return t; }

// Attention of the group's tokens first .. end - 1, a run of one sequence; `whole`: the group has no others.
void attend(StepState_address step, uint first, uint end, bool whole) {
  const uint sequence = token_sequence[first];
  uint until = 0, from = ~0u, seen_until = ~0u, seen_from = 0;  // seen_*: by all queries
  for (uint t = first; t < end; ++t) {
    const uint seen = token_position[t] + 1, begin = p.window != 0 && p.window < seen ? seen - p.window : 0;
    until = max(until, seen);
    from = min(from, begin);
    seen_until = min(seen_until, seen);
    seen_from = max(seen_from, begin);
  }
  from = from / kTile * kTile;
  barrier();
  for (uint query = gl_LocalInvocationIndex; query < kQueries; query += kThreads) {
    const uint t = token_of(query) - token_of(0);
    query_position[query] = t >= first && t < end ? int(token_position[t]) : -1;
  }
  attend_positions(step, sequence, from, until, whole, seen_from, seen_until);
}

// Stores y = sums / (total + the sink's weight) of tokens begin .. end - 1.
void store(uint begin, uint end) {
  if (!has_queries) return;
  MatrixSum factors;
  uint to[kComponents];  // in y, or ~0 where no token lives
  [[unroll]] for (uint c = 0; c < kComponents; ++c) {
    const uint query = own_query + row_of(c), t = token_of(query);
    float factor = 1, sum = query_total[query];
    if (uint64_t(p.sinks) != 0) {
      const float sink = p.sinks.at[head_of(query)] * kLog2e, after = max(maximum[c], sink);
      factor = exp2(maximum[c] - after);
      sum = sum * factor + exp2(sink - after);
    }
    factors[c] = factor / sum;
    to[c] = t >= begin && t < end ? (t * kHeads + head_of(query)) * kValueWidth : ~0;
  }
  [[unroll]] for (uint n = 0; n < kValueMatrices; ++n) {
    const MatrixSum y = sums[n] * factors;
    [[unroll]] for (uint c = 0; c < kComponents; ++c) {
      const uint column = column_at((share * kValueMatrices + n) * kN + column_of(c));
      if (to[c] == ~0 || column >= kValueWidth) continue;
      p.y.at[to[c] + column] = y[c];
      store_half(p.halves, to[c] + column, y[c]);
    }
  }
}

void main() {
  StepState_address step = step_of(p.step);
  kv_head = gl_WorkGroupID.x % kKvHeads;
  // The last queries come first, since they see the most positions.
  first_query = (gl_NumWorkGroups.x - 1 - gl_WorkGroupID.x) / kKvHeads * kQueries;
  begin_group();
  const uint first = token_of(0), end = min(live_rows(step, kRowsTokens), token_of(kQueries - 1) + 1);
  const uint begin = max(first, step.state.lone_count);  // rows before have an attention of their own
  if (begin >= end) return;
  const uint tokens = end - first;
  for (uint i = gl_LocalInvocationIndex; i < kQueries; i += kThreads) {
    if (i < kQueries / kM) raise_count[i] = 0;
    query_raised[i] = ordered(kNone);
    const StepRow row = step.state.row[min(first + i, end - 1)];
    token_position[i] = row.position;
    token_sequence[i] = row.sequence;
  }
  begin_queries(end);
  for (uint t = begin - first; t < tokens;) {
    uint run_end = t + 1;
    while (run_end < tokens && token_sequence[run_end] == token_sequence[t]) ++run_end;
    attend(step, t, run_end, t == 0 && run_end == tokens);
    t = run_end;
  }
  barrier();
  find_totals();
  store(begin, end);
}
