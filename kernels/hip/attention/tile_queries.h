// Which queries a group of the attention kernels for many tokens has, and what they see of the cache.
#pragma once
#include "kernels/hip/grid.h"
#include "kernels/hip/matrix.h"
#include "kernels/hip/step.h"

namespace {
constexpr uint kWaves = GROUP / kWave;
static_assert(kWaves == kQueries / 16 * kSharing);

// value, which is the same in all lanes, as a scalar.
template <class T>
DEVICE T uniform(T value) {
  return broadcast(value, 0);
}

// The group's tokens, and the lane's query. Queries past the last repeat its token; their results are not
// stored.
struct Queries {
  Step step;
  uint kv_head, first, begin, end;  // tokens begin .. end - 1; `first` is that of the first query
  uint token, head;                 // of the lane's query
  uint share;                       // which of the waves with these queries this is
  // Of token first + i * kWave + lane().
  uint positions[kQueries / kWave], sequences[kQueries / kWave];
};

// The last queries come first, since they see the most positions. The step's first rows may have an attention
// of their own.
DEVICE Queries find_queries(const AttentionBlock& p) {
  Queries q;
  q.step = step_of(p.step);
  const uint each = p.heads / p.kv_heads;
  q.kv_head = group_x() % p.kv_heads;
  const uint first_query = (group_count_x() - 1 - group_x()) / p.kv_heads * kQueries;
  q.first = first_query / each;
  q.begin = max(q.first, q.step->lone_count);
  q.end = min(live_rows(q.step, kRowsTokens), (first_query + kQueries - 1) / each + 1);
  const uint query = first_query + wave_index() / kSharing * 16 + lane() % 16;
  q.token = query / each;
  q.head = q.kv_head * each + query % each;
  q.share = wave_index() % kSharing;
  return q;
}

// Returns false where no token of the group lives.
DEVICE bool load_rows(Queries& q) {
  if (q.begin >= q.end) return false;
#pragma unroll
  for (uint i = 0; i < kQueries / kWave; ++i) {
    const auto row = &q.step->row[min(q.first + i * kWave + lane(), q.end - 1)];
    q.positions[i] = row->position;
    q.sequences[i] = row->sequence;
  }
  return true;
}

// Neighbouring tokens first .. end - 1 of one sequence. They see positions from .. until - 1 of it, and all
// of them see seen_from .. seen_until - 1.
struct Run {
  uint first, end, sequence;
  uint from, until, seen_from, seen_until;
  int position;  // of the lane's query, -1 where it is not of this run
};

DEVICE Run find_run(const Queries& q, uint first, uint window) {
  Run run = {first, q.end, q.step->row[first].sequence, ~0u, 0, 0, ~0u, -1};
#pragma unroll
  for (uint i = 0; i < kQueries / kWave; ++i) {
    const uint token = q.first + i * kWave + lane();
    if (token > first && token < q.end && q.sequences[i] != run.sequence) run.end = min(run.end, token);
  }
  run.end = uniform(wave_min(run.end));
#pragma unroll
  for (uint i = 0; i < kQueries / kWave; ++i) {
    const uint token = q.first + i * kWave + lane(), seen = q.positions[i] + 1;
    if (token < first || token >= run.end) continue;
    const uint begin = window != 0 && window < seen ? seen - window : 0;
    run.from = min(run.from, begin), run.seen_from = max(run.seen_from, begin);
    run.until = max(run.until, seen), run.seen_until = min(run.seen_until, seen);
  }
  run.from = uniform(wave_min(run.from)) / kAttentionTile * kAttentionTile;
  run.until = uniform(wave_max(run.until));
  run.seen_from = uniform(wave_max(run.seen_from));
  run.seen_until = uniform(wave_min(run.seen_until));
  const uint token = min(q.token, q.end - 1);
  if (token >= first && token < run.end) run.position = int(q.step->row[token].position);
  return run;
}
}  // namespace
