// attention_tiles_cm1: many tokens, with the cooperative matrices of subgroups (KHR): float16 queries, keys, weights and
// values, sums in float32. Group i takes kQueries queries, each a token and one of the query heads of a KV head, kM of
// them to kParts subgroups, and goes through the cache in tiles of kTile positions that all of them share:
//   scores = queries . keys,   weights = exp2(scores - most),   sums = sums + weights . values
// Which query and position a component of a matrix belongs to is the driver's to choose, so each lane looks it up in a
// matrix that holds places. Maxima need not be exact: `most` of a query rises where a score is above it by more than
// kSlack, which after the first tile is rare, and only then sums are scaled. Each query for itself, so that its bits do
// not depend on its neighbours.
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#include "kernels/abi/attention_tile.h"
#include "kernels/vulkan/attention/cache_chunk.h"
#include "kernels/vulkan/halves.h"

#ifndef SUBGROUPS_OF_QUERIES
#define SUBGROUPS_OF_QUERIES 1
#endif

layout(push_constant, scalar) uniform Push { AttentionBlock p; };
layout(constant_id = 0) const uint kThreads = 128;
layout(constant_id = 2) const uint kHeads = 1;
layout(constant_id = 3) const uint kKvHeads = 1;
layout(constant_id = 4) const uint kKeyWidth = 64;
layout(constant_id = 5) const uint kValueWidth = 64;
layout(constant_id = 6) const uint kKeyType = 1;
layout(constant_id = 7) const uint kValueType = 1;
layout(constant_id = 8) const uint kSoftcap = 0;  // the bits of it

// The device's shape of float16 x float16 -> float32.
layout(constant_id = 100) const uint kM = 16;
layout(constant_id = 101) const uint kN = 16;
layout(constant_id = 102) const uint kK = 16;

GRETA_ABI_BUFFER(vec4, vec4, 16)

const uint kSharing = kHeads / kKvHeads;  // query heads of a KV head
const uint kQueries = 64;                 // TILE of the kernel's line
const uint kTile = kAttentionTile;
// Subgroups that have the same queries, 1 or 2: each multiplies a part of the keys' columns, weighs a part of the positions and
// sums a part of the values' columns.
const uint kParts = SUBGROUPS_OF_QUERIES;
const uint kKeySteps = (kKeyWidth + kK * kParts - 1) / (kK * kParts);
const uint kValueParts = (kValueWidth + kN * kParts - 1) / (kN * kParts);
const uint kTileParts = kTile / (kN * kParts);
const uint kColumns = kValueParts * kParts * kN;
const uint kComponents = kM * kN / kLanes;  // of a matrix of sums that a lane holds
const float kNone = -3e38;   // the score of a position that is not seen: its weight is 0 even against kLeast
const float kLeast = -1e30;  // where `most` begins
const float kSlack = 8;      // weights are at most 2^8
const float kLog2e = 1.44269504;
const float kMaxHalf = 65504;

// In shared memory, in words of 8 float16 values: keys [kTile][kKeyPitch], values [kTile][kValuePitch] and weights
// [kQueries][kWeightPitch]; before the first tile queries lie where keys and values do. A row is a word longer than its
// values, which puts 8 neighbouring rows into different banks.
const uint kKeyPitch = (kKeySteps * kParts * kK + 7) / 8 + 1;
// Values lie as [kTile][columns], or turned, as [columns][kTile]: AMD's loads of a matrix take neighbouring values of
// a column, NVIDIA's turn them.
const bool kTurned = kLanes == 64;
const uint kValueChunks = (kColumns + 7) / 8;
const uint kWeightPitch = kTile / 8 + 1;
const uint kValuePitch = kTurned ? kWeightPitch : kValueChunks + 1;
const uint kValuesAt = kTile * kKeyPitch;
const uint kValueWords = (kTurned ? kColumns : kTile) * kValuePitch;
const uint kScoreWords = kParts == 1 ? 0 : kQueries * kTile / 4;  // on their way between subgroups, where values will be
const uint kBehindValues = kValuesAt + (kValueWords > kScoreWords ? kValueWords : kScoreWords);
const uint kBehindQueries = kQueries * kKeyPitch;
const uint kWeightsAt = kBehindValues > kBehindQueries ? kBehindValues : kBehindQueries;
shared uvec4 tile[kWeightsAt + kQueries * kWeightPitch];
shared uint token_position[kQueries], token_sequence[kQueries];  // from the group's first token on
shared int query_position[kQueries];   // -1: not of this run
shared int query_best[kQueries];       // of the scores that were found far above a maximum, in the order of integers
shared uint risen[kQueries / kM];      // how often subgroups have found some
shared float query_total[kQueries];

// What a thread brings of a tile.
const uint kKeyChunks = kKeyPitch - 1;
const uint kQueriesEach = (kQueries * kKeyChunks + kThreads - 1) / kThreads;
const uint kKeysEach = (kTile * kKeyChunks + kThreads - 1) / kThreads;
const uint kValuesEach = (kTile * kValueChunks / 2 + kThreads - 1) / kThreads * 2;  // two neighbouring positions each
Chunk keys[kKeysEach], values[kValuesEach];

#define MatrixA coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define MatrixB coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define MatrixSum coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>
#define MatrixHalf coopmat<float16_t, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

MatrixA queries[kKeySteps];
MatrixSum scores[kTileParts * kParts], sums[kValueParts];
MatrixSum place, most, total;  // by component: row * kN + column; the row's maximum; a part of the sum of its weights

uint kv_head, first_query, own, part;  // own: the subgroup's first query, `part` of whose work it does
bool busy;                             // it has some
bool raised;                           // a maximum has to rise
uint risen_before;

uint token_of(uint query) { return (first_query + query) / kSharing; }
uint head_of(uint query) { return kv_head * kSharing + (first_query + query) % kSharing; }
uint row_of(uint c) { return uint(place[c]) / kN; }
uint column_of(uint c) { return uint(place[c]) % kN; }

uvec4 halves_of(float x[kChunk]) {
  uvec4 words;
  [[unroll]] for (int i = 0; i < 4; ++i)
    words[i] = packFloat2x16(f16vec2(clamp(vec2(x[i * 2], x[i * 2 + 1]), vec2(-kMaxHalf), vec2(kMaxHalf))));
  return words;
}

uvec4 halves_of(uint type, Chunk chunk) {
  if (type == kCacheF16) return chunk.low;
  float x[kChunk];
  decode_chunk(type, chunk, x);
  return halves_of(x);
}

// Queries, scaled for exp2 and rounded once. Those past the last repeat it: what they give is not stored.
void load_queries(uint end) {
  const float scale = kSoftcap != 0 ? p.scale : p.scale * kLog2e;
  [[unroll]] for (uint i = 0; i < kQueriesEach; ++i) {
    const uint at = i * kThreads + gl_LocalInvocationIndex, query = at / kKeyChunks, chunk = at % kKeyChunks;
    float x[kChunk];
    [[unroll]] for (uint j = 0; j < kChunk; ++j) x[j] = 0;
    if (chunk * kChunk < kKeyWidth) {
      const uint from = ((min(token_of(query), end - 1) * kHeads + head_of(query)) * kKeyWidth + chunk * kChunk) / 4;
      const vec4 low = scale * vec4_address(p.q).at[from], high = scale * vec4_address(p.q).at[from + 1];
      [[unroll]] for (uint j = 0; j < 4; ++j) x[j] = low[j], x[j + 4] = high[j];
    }
    if (query < kQueries) tile[query * kKeyPitch + chunk] = halves_of(x);
  }
  barrier();
  if (busy)
    [[unroll]] for (uint k = 0; k < kKeySteps; ++k)
      coopMatLoad(queries[k], tile, own * kKeyPitch + (part * kKeySteps + k) * kK / 8, kKeyPitch, gl_CooperativeMatrixLayoutRowMajor);
  barrier();
}

// A matrix of a busy subgroup in shared memory, where there are no keys or values yet, or no longer.
uint matrix_at() { return gl_SubgroupID * kM * kN / 4; }

void find_places() {
  if (busy)
    for (uint i = gl_SubgroupInvocationID; i < kM * kN / 4; i += kLanes)
      tile[matrix_at() + i] = floatBitsToUint(vec4(i * 4) + vec4(0, 1, 2, 3));
  barrier();
  if (busy) coopMatLoad(place, tile, matrix_at(), kN / 4, gl_CooperativeMatrixLayoutRowMajor);
  barrier();
}

// Positions from `live` on are none.
void load_keys(uint64_t head, uint live) {
  [[unroll]] for (uint i = 0; i < kKeysEach; ++i) {
    const uint at = i * kThreads + gl_LocalInvocationIndex, s = at / kKeyChunks, chunk = at % kKeyChunks;
    keys[i] = Chunk(uvec4(0), uvec4(0));
    if (s < live && s < kTile && chunk * kChunk < kKeyWidth)
      keys[i] = load_chunk(kKeyType, head + s * cache_head_bytes(kKeyType, kKeyWidth), chunk);
  }
}

// The position of a thread's i-th chunk of values, and which chunk of it.
uvec2 value_at(uint i) {
  const uint at = i / 2 * kThreads + gl_LocalInvocationIndex;
  return uvec2(at / kValueChunks * 2 + i % 2, at % kValueChunks);
}

void load_values(uint64_t head, uint live) {
  [[unroll]] for (uint i = 0; i < kValuesEach; ++i) {
    const uvec2 at = value_at(i);
    values[i] = Chunk(uvec4(0), uvec4(0));
    if (at.x < live && at.x < kTile && at.y * kChunk < kValueWidth)
      values[i] = load_chunk(kValueType, head + at.x * cache_head_bytes(kValueType, p.value_stride), at.y);
  }
}

void store_keys() {
  [[unroll]] for (uint i = 0; i < kKeysEach; ++i) {
    const uint at = i * kThreads + gl_LocalInvocationIndex, s = at / kKeyChunks, chunk = at % kKeyChunks;
    if (s < kTile) tile[s * kKeyPitch + chunk] = halves_of(kKeyType, keys[i]);
  }
}

// Column c of a head lies in row c % 8 * kValueChunks + c / 8 of turned values: threads side by side store to
// neighbouring rows.
void store_turned(uvec2 at, uvec4 even, uvec4 odd) {
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const uint to = kValuesAt + (i * 2 * kValueChunks + at.y) * kValuePitch + at.x / 8;
    tile[to][at.x / 2 % 4] = even[i] & 0xffff | odd[i] << 16;
    tile[to + kValueChunks * kValuePitch][at.x / 2 % 4] = even[i] >> 16 | odd[i] & 0xffff0000;
  }
}
uint column_at(uint i) { return kTurned ? i % kValueChunks * 8 + i / kValueChunks : i; }

void store_values() {
  [[unroll]] for (uint i = 0; i < kValuesEach; i += 2) {
    const uvec2 at = value_at(i);
    if (at.x >= kTile) break;
    const uvec4 even = halves_of(kValueType, values[i]), odd = halves_of(kValueType, values[i + 1]);
    if (kTurned) {
      store_turned(at, even, odd);
    } else {
      tile[kValuesAt + at.x * kValuePitch + at.y] = even;
      tile[kValuesAt + (at.x + 1) * kValuePitch + at.y] = odd;
    }
  }
}

void score() {
  [[unroll]] for (uint j = 0; j < kTileParts * kParts; ++j) scores[j] = MatrixSum(0);
  [[unroll]] for (uint k = 0; k < kKeySteps; ++k)
    [[unroll]] for (uint j = 0; j < kTileParts * kParts; ++j) {
      MatrixB key;
      coopMatLoad(key, tile, j * kN * kKeyPitch + (part * kKeySteps + k) * kK / 8, kKeyPitch,
                  gl_CooperativeMatrixLayoutColumnMajor);
      scores[j] = coopMatMulAdd(queries[k], key, scores[j]);
    }
}

// Matrix j of the scores that subgroup `from` gives to the other one that has its queries.
uint given_at(uint from, uint j) { return kValuesAt + (from * kTileParts + j) * kM * kN / 4; }

// Of two subgroups, the second weighs the second half of the positions.
void give_scores() {
  [[unroll]] for (uint j = 0; j < kTileParts; ++j) {
    const uint at = given_at(gl_SubgroupID, j), second = j + kTileParts;
    coopMatStore(part == 0 ? scores[second] : scores[j], tile, at, kN / 4, gl_CooperativeMatrixLayoutRowMajor);
    if (part != 0) scores[j] = scores[second];
  }
}
void take_scores() {
  [[unroll]] for (uint j = 0; j < kTileParts; ++j) {
    MatrixSum given;
    coopMatLoad(given, tile, given_at(gl_SubgroupID ^ 1, j), kN / 4, gl_CooperativeMatrixLayoutRowMajor);
    scores[j] = scores[j] + given;
  }
}

void cap_scores() {
  [[unroll]] for (uint j = 0; j < kTileParts; ++j)
    [[unroll]] for (uint c = 0; c < kComponents; ++c)
      scores[j][c] = kLog2e * softcap_f32(p.softcap, scores[j][c]);
}

// Of positions `at` ..
void hide_scores(uint at) {
  [[unroll]] for (uint c = 0; c < kComponents; ++c) {
    const int position = query_position[own + row_of(c)], first = int(at + part * kTileParts * kN + column_of(c));
    const int window = p.window == 0 ? 0x7fffffff : int(p.window);
    [[unroll]] for (uint j = 0; j < kTileParts; ++j) {
      const int s = first + int(j * kN);
      if (s > position || position - s >= window) scores[j][c] = kNone;
    }
  }
}

// Integers in the order of floats.
int ordered(float x) {
  const int bits = floatBitsToInt(x);
  return bits ^ (bits >> 31 & 0x7fffffff);
}
float from_ordered(int bits) { return intBitsToFloat(bits ^ (bits >> 31 & 0x7fffffff)); }

// Scores of positions `at` ..; where one is far above its query's maximum, all that have the query hear of it.
void judge(uint at, bool all_seen) {
  if (kSoftcap != 0) cap_scores();
  if (!all_seen) hide_scores(at);
  MatrixSum top = scores[0];
  bool above = false;
  [[unroll]] for (uint c = 0; c < kComponents; ++c) {
    [[unroll]] for (uint j = 1; j < kTileParts; ++j) top[c] = max(top[c], scores[j][c]);
    above = above || top[c] > most[c] + kSlack;
  }
  raised = subgroupAny(above);
  if (!raised) return;
  [[unroll]] for (uint c = 0; c < kComponents; ++c) atomicMax(query_best[own + row_of(c)], ordered(top[c]));
  if (kParts == 1) subgroupBarrier();
  else if (subgroupElect()) atomicAdd(risen[own / kM], 1);
}

// Maxima rise to the best that was found, if that is far above.
void raise() {
  MatrixSum factors;
  [[unroll]] for (uint c = 0; c < kComponents; ++c) {
    const float best = from_ordered(query_best[own + row_of(c)]), after = best > most[c] + kSlack ? best : most[c];
    factors[c] = exp2(most[c] - after);
    most[c] = after;
  }
  if (kParts == 1) subgroupBarrier();
  total = total * factors;
  [[unroll]] for (uint n = 0; n < kValueParts; ++n) sums[n] = sums[n] * factors;
}

// Scores become weights, in shared memory.
void weigh() {
  if (kParts > 1) {
    const uint now = risen[own / kM];
    raised = now != risen_before;
    risen_before = now;
  }
  if (raised) raise();
  [[unroll]] for (uint j = 0; j < kTileParts; ++j) {
    MatrixSum weights = scores[j] - most;
    [[unroll]] for (uint c = 0; c < kComponents; ++c) weights[c] = exp2(weights[c]);
    total = total + weights;
    coopMatStore(MatrixHalf(weights), tile, kWeightsAt + own * kWeightPitch + (part * kTileParts + j) * kN / 8, kWeightPitch,
                 gl_CooperativeMatrixLayoutRowMajor);
  }
}

void add_values() {
  [[unroll]] for (uint k = 0; k < kTile; k += kK) {
    MatrixA weights;
    coopMatLoad(weights, tile, kWeightsAt + own * kWeightPitch + k / 8, kWeightPitch,
                gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint n = 0; n < kValueParts; ++n) {
      MatrixB value;
      const uint column = (part * kValueParts + n) * kN;
      if (kTurned)
        coopMatLoad(value, tile, kValuesAt + column * kValuePitch + k / 8, kValuePitch,
                    gl_CooperativeMatrixLayoutColumnMajor);
      else
        coopMatLoad(value, tile, kValuesAt + k * kValuePitch + column / 8, kValuePitch,
                    gl_CooperativeMatrixLayoutRowMajor);
      sums[n] = coopMatMulAdd(weights, value, sums[n]);
    }
  }
}

// Tokens first .. end - 1 of the group's, all of one sequence; `whole`: there are no others.
void attend(StepState_address step, uint first, uint end, bool whole) {
  const uint sequence = token_sequence[first];
  uint until = 0, from = ~0u, seen_until = ~0u, seen_from = 0;  // seen_: by all queries
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
  const uint key_bytes = cache_head_bytes(kKeyType, kKeyWidth);
  const uint value_bytes = cache_head_bytes(kValueType, p.value_stride);
  uint page = page_of(step, sequence, from), next_page = page;
  load_keys(uint64_t(p.keys) + uint64_t(page) * p.key_page_bytes + (kv_head * kPageTokens + from % kPageTokens) * key_bytes,
            until - from);
  for (uint s = from; s < until; s += kTile) {
    const uint next = s + kTile;
    next_page = page_of(step, sequence, min(next, until - 1));
    store_keys();
    barrier();  // all have added the values before
    load_values(uint64_t(p.values) + uint64_t(page) * p.value_page_bytes +
                    (kv_head * kPageTokens + s % kPageTokens) * value_bytes,
                until - s);
    if (busy) score();
    if (kParts > 1) {
      if (busy) give_scores();
      barrier();
      if (busy) take_scores();
    }
    if (busy) judge(s, whole && s >= seen_from && next <= seen_until);
    if (kParts > 1) barrier();  // all have judged their scores
    if (busy) weigh();
    store_values();
    barrier();  // all have multiplied the keys
    page = next_page;
    if (next < until)
      load_keys(uint64_t(p.keys) + uint64_t(page) * p.key_page_bytes +
                    (kv_head * kPageTokens + next % kPageTokens) * key_bytes,
                until - next);
    if (busy) add_values();
  }
}

// Sums of all weights of a query, over what each lane of its subgroups has.
void find_totals() {
  if (busy) coopMatStore(total, tile, matrix_at(), kN / 4, gl_CooperativeMatrixLayoutRowMajor);
  barrier();
  for (uint query = gl_LocalInvocationIndex; query < kQueries; query += kThreads) {
    float sum = 0;
    for (uint i = 0; i < kParts * kN; ++i) {
      const uint matrix = query / kM * kParts + i / kN, at = matrix * kM * kN + query % kM * kN + i % kN;
      sum += uintBitsToFloat(tile[at / 4][at % 4]);
    }
    query_total[query] = sum;
  }
  barrier();
}

// y = sums / (total + the sink's weight)
void store(uint end) {
  if (!busy) return;
  MatrixSum factors;
  uint to[kComponents];  // in y, or ~0 where no token lives
  [[unroll]] for (uint c = 0; c < kComponents; ++c) {
    const uint query = own + row_of(c), t = token_of(query);
    float factor = 1, sum = query_total[query];
    if (uint64_t(p.sinks) != 0) {
      const float sink = p.sinks.at[head_of(query)] * kLog2e, after = max(most[c], sink);
      factor = exp2(most[c] - after);
      sum = sum * factor + exp2(sink - after);
    }
    factors[c] = factor / sum;
    to[c] = t < end ? (t * kHeads + head_of(query)) * kValueWidth : ~0;
  }
  [[unroll]] for (uint n = 0; n < kValueParts; ++n) {
    const MatrixSum y = sums[n] * factors;
    [[unroll]] for (uint c = 0; c < kComponents; ++c) {
      const uint column = column_at((part * kValueParts + n) * kN + column_of(c));
      if (to[c] == ~0 || column >= kValueWidth) continue;
      p.y.at[to[c] + column] = y[c];
      store_half(p.halves, to[c] + column, y[c]);
    }
  }
}

void main() {
  StepState_address step = step_of(p.step);
  kv_head = gl_WorkGroupID.x % kKvHeads;
  // The last first, which have the most positions.
  first_query = (gl_NumWorkGroups.x - 1 - gl_WorkGroupID.x) / kKvHeads * kQueries;
  own = gl_SubgroupID / kParts * kM;
  part = gl_SubgroupID % kParts;
  busy = own < kQueries;
  risen_before = 0;
  const uint first = token_of(0), end = min(live_rows(step, kRowsTokens), token_of(kQueries - 1) + 1);
  if (first >= end) return;
  const uint tokens = end - first;
  for (uint i = gl_LocalInvocationIndex; i < kQueries; i += kThreads) {
    if (i < kQueries / kM) risen[i] = 0;
    query_best[i] = ordered(kNone);
    const StepRow row = step.state.row[min(first + i, end - 1)];
    token_position[i] = row.position;
    token_sequence[i] = row.sequence;
  }
  find_places();
  load_queries(end);
  most = MatrixSum(kLeast);
  total = MatrixSum(0);
  [[unroll]] for (uint n = 0; n < kValueParts; ++n) sums[n] = MatrixSum(0);
  for (uint t = 0; t < tokens;) {
    uint run_end = t + 1;
    while (run_end < tokens && token_sequence[run_end] == token_sequence[t]) ++run_end;
    attend(step, t, run_end, t == 0 && run_end == tokens);
    t = run_end;
  }
  barrier();
  find_totals();
  store(end);
}
