// What attention kernels with the cooperative matrices of subgroups (KHR) have in common: a group takes
// kQueries queries of one KV head through positions that they all share, in tiles of kTile:
//   scores = queries . keys,   weights = exp2(scores - maximum),   sums = sums + weights . values
// The driver chooses which query and position a component of a matrix belongs to, so each lane looks that up
// in a matrix that holds the index of each component. Maxima need not be exact: the `maximum` of a query
// rises only where a score is above it by more than kSlack, which is rare after the first tile, and only then
// the sums are scaled. Each query is judged by itself, so that its bits do not depend on its neighbours.
//
// Behind this file the kernel defines row_at(t), the row of the step whose queries are those of token t. In
// attention_tiles_cm1 tokens are rows, in attention_prefix_cm1 they are the members of prefixes.
#ifndef GRETA_VULKAN_ATTENTION_TILES_CM1_H
#define GRETA_VULKAN_ATTENTION_TILES_CM1_H
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
#ifndef QUERIES
#define QUERIES 64
#endif

layout(push_constant, scalar) uniform Push { AttentionBlock p; };
layout(constant_id = 0) const uint kThreads = 128;
layout(constant_id = 2) const uint kHeads = 1;
layout(constant_id = 3) const uint kKvHeads = 1;
layout(constant_id = 4) const uint kKeyWidth = 64;
layout(constant_id = 5) const uint kValueWidth = 64;
layout(constant_id = 6) const uint kKeyType = 1;
layout(constant_id = 7) const uint kValueType = 1;
layout(constant_id = 8) const uint kSoftcap = 0;  // its bits

// The device's shape of float16 x float16 -> float32.
layout(constant_id = 100) const uint kM = 16;
layout(constant_id = 101) const uint kN = 16;
layout(constant_id = 102) const uint kK = 16;

GRETA_ABI_BUFFER(vec4, vec4, 16)

const uint kHeadsPerKv = kHeads / kKvHeads;  // query heads that share a KV head
const uint kQueries = QUERIES;            // TILE of the kernel in CMakeLists.txt
const uint kTile = kAttentionTile;
// Subgroups that have the same queries: 1, 2 or 4. Each multiplies a share of the keys' columns, weighs a
// part of the positions and sums a share of the values' columns. A tile has two parts, so of four subgroups
// two have the same one.
const uint kQuerySubgroups = SUBGROUPS_OF_QUERIES;
const uint kParts = kQuerySubgroups < 2 ? 1 : 2;
// With four the keys of a tile lie where its values will be, since both need too much shared memory.
const bool kValuesOverKeys = kQuerySubgroups > 2;
const uint kKeyMatrices = (kKeyWidth + kK * kQuerySubgroups - 1) / (kK * kQuerySubgroups);
const uint kValueMatrices = (kValueWidth + kN * kQuerySubgroups - 1) / (kN * kQuerySubgroups);
const uint kTileMatrices = kTile / kN;              // of scores, for all positions of a tile
const uint kScoreMatrices = kTileMatrices / kParts;  // for those of a part
const uint kColumns = kValueMatrices * kQuerySubgroups * kN;
const uint kComponents = kM * kN / kLanes;  // components of a matrix of sums that a lane holds
const float kNone = -3e38;        // of a hidden position: its weight is 0 even against kMinMaximum
const float kMinMaximum = -1e30;  // the first `maximum`
const float kSlack = 8;           // weights are at most 2^8
const float kLog2e = 1.44269504;
const float kMaxHalf = 65504;

// Shared memory, in words of 8 float16 values, has keys [kTile][kKeyPitch], values [kTile][kValuePitch] and
// weights [kQueries][kWeightPitch]. Before the first tile the queries lie where keys and values will be. A
// row is a word longer than its values, which puts 8 neighbouring rows into different banks.
const uint kKeyPitch = (kKeyMatrices * kQuerySubgroups * kK + 7) / 8 + 1;
// Values lie as [kTile][columns], or transposed as [columns][kTile]: AMD's loads of a matrix take
// neighbouring values of a column, while NVIDIA's can transpose.
const bool kTransposed = kLanes == 64;
const uint kValueChunks = (kColumns + 7) / 8;
const uint kWeightPitch = kTile / 8 + 1;
const uint kValuePitch = kTransposed ? kWeightPitch : kValueChunks + 1;
const uint kValuesAt = kValuesOverKeys ? 0 : kTile * kKeyPitch;
const uint kValueWords = (kTransposed ? kColumns : kTile) * kValuePitch;
// Scores that subgroups exchange, where values will be: of two each gives half of them, of four all.
const uint kScoreWords = (kQuerySubgroups == 1 ? 0 : kValuesOverKeys ? 4 : 1) * kQueries * kTile / 4;
const uint kEndOfValues = kValuesAt + (kValueWords > kScoreWords ? kValueWords : kScoreWords);
const uint kEndOfQueries = (kQueries > kTile ? kQueries : kTile) * kKeyPitch;  // and of a tile's keys
const uint kWeightsAt = kEndOfValues > kEndOfQueries ? kEndOfValues : kEndOfQueries;
shared uvec4 tile[kWeightsAt + kQueries * kWeightPitch];
shared uint token_position[kQueries], token_sequence[kQueries];  // of the group's tokens
shared int query_position[kQueries];      // -1: the query is not of this run
shared int query_raised[kQueries];        // the highest score found far above a maximum, as ordered()
shared uint raise_count[kQueries / kM];   // how often subgroups have found such scores
shared float query_total[kQueries];

// The chunks that a thread brings to shared memory.
const uint kKeyChunks = kKeyPitch - 1;
const uint kThreadQueryChunks = (kQueries * kKeyChunks + kThreads - 1) / kThreads;
const uint kThreadKeyChunks = (kTile * kKeyChunks + kThreads - 1) / kThreads;
// Of two neighbouring positions.
const uint kThreadValueChunks = (kTile * kValueChunks / 2 + kThreads - 1) / kThreads * 2;
Chunk keys[kThreadKeyChunks], values[kThreadValueChunks];

#define MatrixA coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define MatrixB coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define MatrixSum coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>
#define MatrixHalf coopmat<float16_t, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

MatrixA queries[kKeyMatrices];
MatrixSum scores[kTileMatrices], sums[kValueMatrices];
// By component: row * kN + column; the maximum of the row's query; a share of the sum of its weights.
MatrixSum component_index, maximum, total;

uint row_at(uint token);
uint kv_head, first_query;
// The subgroup's first query, which share of its columns the subgroup has, and which part of the positions.
uint own_query, share, part;
bool has_queries;       // the subgroup has queries
bool raised;            // a maximum has to rise
uint raises_seen;

uint token_of(uint query) { return (first_query + query) / kHeadsPerKv; }
uint head_of(uint query) { return kv_head * kHeadsPerKv + (first_query + query) % kHeadsPerKv; }
uint row_of(uint c) { return uint(component_index[c]) / kN; }
uint column_of(uint c) { return uint(component_index[c]) % kN; }

// Saturated halves, or NaN where not all is finite.
uvec4 halves_of(float x[kChunk], bool finite) {
  const uint nan = finite ? 0 : 0x7e007e00;
  uvec4 words;
  [[unroll]] for (int i = 0; i < 4; ++i)
    words[i] = nan |
        packFloat2x16(f16vec2(clamp(vec2(x[i * 2], x[i * 2 + 1]), vec2(-kMaxHalf), vec2(kMaxHalf))));
  return words;
}
uvec4 halves_of(float x[kChunk]) {
  bool finite = true;
  [[unroll]] for (int i = 0; i < kChunk; ++i) finite = finite && is_finite(x[i]);
  return halves_of(x, finite);
}

uvec4 halves_of(uint type, Chunk chunk) {
  if (type == kCacheF16) return chunk.low;
  float x[kChunk];
  decode_chunk(type, chunk, x);
  return type == kCacheQ8 ? halves_of(x, (chunk.low.z & 0x7c00) != 0x7c00) : halves_of(x);
}

// Loads the queries, scaled for exp2 and rounded once. Those past the last repeat it, and their results are
// not stored.
void load_queries(uint end) {
  const float scale = kSoftcap != 0 ? p.scale : p.scale * kLog2e;
  [[unroll]] for (uint i = 0; i < kThreadQueryChunks; ++i) {
    const uint at = i * kThreads + gl_LocalInvocationIndex, query = at / kKeyChunks, chunk = at % kKeyChunks;
    float x[kChunk];
    [[unroll]] for (uint j = 0; j < kChunk; ++j) x[j] = 0;
    if (chunk * kChunk < kKeyWidth) {
      const uint row = row_at(min(token_of(query), end - 1));
      const uint from = ((row * kHeads + head_of(query)) * kKeyWidth + chunk * kChunk) / 4;
      const vec4 low = scale * vec4_address(p.q).at[from], high = scale * vec4_address(p.q).at[from + 1];
      [[unroll]] for (uint j = 0; j < 4; ++j) x[j] = low[j], x[j + 4] = high[j];
    }
    if (query < kQueries) tile[query * kKeyPitch + chunk] = halves_of(x);
  }
  barrier();
  if (has_queries)
    [[unroll]] for (uint k = 0; k < kKeyMatrices; ++k)
      coopMatLoad(queries[k], tile, own_query * kKeyPitch + (share * kKeyMatrices + k) * kK / 8, kKeyPitch,
                  gl_CooperativeMatrixLayoutRowMajor);
  barrier();
}

// Where a subgroup keeps a matrix in shared memory while there are no keys and values.
uint own_matrix_at() { return gl_SubgroupID * kM * kN / 4; }

void find_component_indices() {
  if (has_queries)
    for (uint i = gl_SubgroupInvocationID; i < kM * kN / 4; i += kLanes)
      tile[own_matrix_at() + i] = floatBitsToUint(vec4(i * 4) + vec4(0, 1, 2, 3));
  barrier();
  if (has_queries)
    coopMatLoad(component_index, tile, own_matrix_at(), kN / 4, gl_CooperativeMatrixLayoutRowMajor);
  barrier();
}

// Loads the keys of a tile; positions from `live` on get zeros.
void load_keys(uint64_t head, uint live) {
  [[unroll]] for (uint i = 0; i < kThreadKeyChunks; ++i) {
    const uint at = i * kThreads + gl_LocalInvocationIndex, s = at / kKeyChunks, chunk = at % kKeyChunks;
    keys[i] = Chunk(uvec4(0), uvec4(0));
    if (s < live && s < kTile && chunk * kChunk < kKeyWidth)
      keys[i] = load_chunk(kKeyType, head + s * cache_head_bytes(kKeyType, kKeyWidth), chunk);
  }
}

// The position of a thread's i-th chunk of values, and which chunk of that position it is.
uvec2 value_at(uint i) {
  const uint at = i / 2 * kThreads + gl_LocalInvocationIndex;
  return uvec2(at / kValueChunks * 2 + i % 2, at % kValueChunks);
}

void load_values(uint64_t head, uint live) {
  [[unroll]] for (uint i = 0; i < kThreadValueChunks; ++i) {
    const uvec2 at = value_at(i);
    values[i] = Chunk(uvec4(0), uvec4(0));
    if (at.x < live && at.x < kTile && at.y * kChunk < kValueWidth)
      values[i] = load_chunk(kValueType, head + at.x * cache_head_bytes(kValueType, p.value_stride), at.y);
  }
}

void store_keys() {
  [[unroll]] for (uint i = 0; i < kThreadKeyChunks; ++i) {
    const uint at = i * kThreads + gl_LocalInvocationIndex, s = at / kKeyChunks, chunk = at % kKeyChunks;
    if (s < kTile) tile[s * kKeyPitch + chunk] = halves_of(kKeyType, keys[i]);
  }
}

// Column c of a head lies in row c % 8 * kValueChunks + c / 8 of transposed values: neighbouring threads then
// store to neighbouring rows.
void store_transposed(uvec2 at, uvec4 even, uvec4 odd) {
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const uint to = kValuesAt + (i * 2 * kValueChunks + at.y) * kValuePitch + at.x / 8;
    tile[to][at.x / 2 % 4] = even[i] & 0xffff | odd[i] << 16;
    tile[to + kValueChunks * kValuePitch][at.x / 2 % 4] = even[i] >> 16 | odd[i] & 0xffff0000;
  }
}
uint column_at(uint i) { return kTransposed ? i % kValueChunks * 8 + i / kValueChunks : i; }

void store_values() {
  [[unroll]] for (uint i = 0; i < kThreadValueChunks; i += 2) {
    const uvec2 at = value_at(i);
    if (at.x >= kTile) break;
    const uvec4 even = halves_of(kValueType, values[i]), odd = halves_of(kValueType, values[i + 1]);
    if (kTransposed) {
      store_transposed(at, even, odd);
    } else {
      tile[kValuesAt + at.x * kValuePitch + at.y] = even;
      tile[kValuesAt + (at.x + 1) * kValuePitch + at.y] = odd;
    }
  }
}

void score() {
  [[unroll]] for (uint j = 0; j < kTileMatrices; ++j) scores[j] = MatrixSum(0);
  [[unroll]] for (uint k = 0; k < kKeyMatrices; ++k)
    [[unroll]] for (uint j = 0; j < kTileMatrices; ++j) {
      MatrixB key;
      coopMatLoad(key, tile, j * kN * kKeyPitch + (share * kKeyMatrices + k) * kK / 8, kKeyPitch,
                  gl_CooperativeMatrixLayoutColumnMajor);
      scores[j] = coopMatMulAdd(queries[k], key, scores[j]);
    }
}

// Where matrix j of the scores lies that subgroup `from` gives to others with its queries.
uint given_at(uint from, uint j) {
  return kValuesAt + (from * (kValuesOverKeys ? kTileMatrices : kScoreMatrices) + j) * kM * kN / 4;
}

// Two subgroups exchange scores over their columns: the second weighs the second half of the positions. Four
// give all of them.
void give_scores() {
  if (kValuesOverKeys) {
    [[unroll]] for (uint j = 0; j < kTileMatrices; ++j)
      coopMatStore(scores[j], tile, given_at(gl_SubgroupID, j), kN / 4, gl_CooperativeMatrixLayoutRowMajor);
    return;
  }
  [[unroll]] for (uint j = 0; j < kScoreMatrices; ++j) {
    const uint at = given_at(gl_SubgroupID, j), second = j + kScoreMatrices;
    coopMatStore(share == 0 ? scores[second] : scores[j], tile, at, kN / 4,
                 gl_CooperativeMatrixLayoutRowMajor);
    if (share != 0) scores[j] = scores[second];
  }
}
// Adds up a part's scores of four subgroups, in an order that does not depend on which of them does it.
void take_all_scores() {
  [[unroll]] for (uint j = 0; j < kScoreMatrices; ++j)
    [[unroll]] for (uint i = 0; i < kQuerySubgroups; ++i) {
      MatrixSum given;
      coopMatLoad(given, tile, given_at(gl_SubgroupID - share + i, part * kScoreMatrices + j), kN / 4,
                  gl_CooperativeMatrixLayoutRowMajor);
      scores[j] = i == 0 ? given : scores[j] + given;
    }
}
void take_scores() {
  if (kValuesOverKeys) {
    take_all_scores();
    return;
  }
  [[unroll]] for (uint j = 0; j < kScoreMatrices; ++j) {
    MatrixSum given;
    coopMatLoad(given, tile, given_at(gl_SubgroupID ^ 1, j), kN / 4, gl_CooperativeMatrixLayoutRowMajor);
    scores[j] = scores[j] + given;
  }
}

void cap_scores() {
  [[unroll]] for (uint j = 0; j < kScoreMatrices; ++j)
    [[unroll]] for (uint c = 0; c < kComponents; ++c)
      scores[j][c] = kLog2e * softcap_f32(p.softcap, scores[j][c]);
}

// Hides the positions from `at` on that a query does not see.
void hide_scores(uint at) {
  [[unroll]] for (uint c = 0; c < kComponents; ++c) {
    const int position = query_position[own_query + row_of(c)];
    const int first = int(at + part * kScoreMatrices * kN + column_of(c));
    const int window = p.window == 0 ? 0x7fffffff : int(p.window);
    [[unroll]] for (uint j = 0; j < kScoreMatrices; ++j) {
      const int s = first + int(j * kN);
      if (s > position || position - s >= window) scores[j][c] = kNone;
    }
  }
}

// Integers that have the order of floats.
int ordered(float x) {
  const int bits = floatBitsToInt(x);
  return bits ^ (bits >> 31 & 0x7fffffff);
}
float from_ordered(int bits) { return intBitsToFloat(bits ^ (bits >> 31 & 0x7fffffff)); }

// Judges the scores of positions from `at` on. Where one is far above its query's maximum, all subgroups with
// the query learn of it.
void judge(uint at, bool all_seen) {
  if (kSoftcap != 0) cap_scores();
  if (!all_seen) hide_scores(at);
  MatrixSum highest = scores[0];
  bool above = false;
  [[unroll]] for (uint c = 0; c < kComponents; ++c) {
    [[unroll]] for (uint j = 1; j < kScoreMatrices; ++j) highest[c] = max(highest[c], scores[j][c]);
    above = above || highest[c] > maximum[c] + kSlack;
  }
  raised = subgroupAny(above);
  if (!raised) return;
  [[unroll]] for (uint c = 0; c < kComponents; ++c)
    atomicMax(query_raised[own_query + row_of(c)], ordered(highest[c]));
  if (kQuerySubgroups == 1) subgroupBarrier();
  else if (subgroupElect()) atomicAdd(raise_count[own_query / kM], 1);
}

// Raises maxima to the highest score that was found, where that is far above.
void raise() {
  MatrixSum factors;
  [[unroll]] for (uint c = 0; c < kComponents; ++c) {
    const float best = from_ordered(query_raised[own_query + row_of(c)]);
    const float after = best > maximum[c] + kSlack ? best : maximum[c];
    factors[c] = exp2(maximum[c] - after);
    maximum[c] = after;
  }
  if (kQuerySubgroups == 1) subgroupBarrier();
  total = total * factors;
  [[unroll]] for (uint n = 0; n < kValueMatrices; ++n) sums[n] = sums[n] * factors;
}

// Turns scores into weights, in shared memory.
void weigh() {
  if (kQuerySubgroups > 1) {
    const uint now = raise_count[own_query / kM];
    raised = now != raises_seen;
    raises_seen = now;
  }
  if (raised) raise();
  [[unroll]] for (uint j = 0; j < kScoreMatrices; ++j) {
    MatrixSum weights = scores[j] - maximum;
    [[unroll]] for (uint c = 0; c < kComponents; ++c) weights[c] = exp2(weights[c]);
    total = total + weights;
    if (share < kParts)
      coopMatStore(MatrixHalf(weights), tile,
                   kWeightsAt + own_query * kWeightPitch + (part * kScoreMatrices + j) * kN / 8, kWeightPitch,
                   gl_CooperativeMatrixLayoutRowMajor);
  }
}

void add_values() {
  [[unroll]] for (uint k = 0; k < kTile; k += kK) {
    MatrixA weights;
    coopMatLoad(weights, tile, kWeightsAt + own_query * kWeightPitch + k / 8, kWeightPitch,
                gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint n = 0; n < kValueMatrices; ++n) {
      MatrixB value;
      const uint column = (share * kValueMatrices + n) * kN;
      if (kTransposed)
        coopMatLoad(value, tile, kValuesAt + column * kValuePitch + k / 8, kValuePitch,
                    gl_CooperativeMatrixLayoutColumnMajor);
      else
        coopMatLoad(value, tile, kValuesAt + k * kValuePitch + column / 8, kValuePitch,
                    gl_CooperativeMatrixLayoutRowMajor);
      sums[n] = coopMatMulAdd(weights, value, sums[n]);
    }
  }
}

// Attention over positions from .. until - 1 of a sequence, `from` being the first of a tile. The queries see
// all positions seen_from .. seen_until - 1, if `whole` is set.
void attend_positions(StepState_address step, uint sequence, uint from, uint until, bool whole,
                      uint seen_from, uint seen_until) {
  const uint key_bytes = cache_head_bytes(kKeyType, kKeyWidth);
  const uint value_bytes = cache_head_bytes(kValueType, p.value_stride);
  uint page = page_of(step, sequence, from), next_page = page;
  load_keys(uint64_t(p.keys) + uint64_t(page) * p.key_page_bytes +
            (kv_head * kPageTokens + from % kPageTokens) * key_bytes,
            until - from);
  for (uint s = from; s < until; s += kTile) {
    const uint next = s + kTile;
    next_page = page_of(step, sequence, min(next, until - 1));
    store_keys();
    barrier();  // all subgroups have added the previous values
    load_values(uint64_t(p.values) + uint64_t(page) * p.value_page_bytes +
                    (kv_head * kPageTokens + s % kPageTokens) * value_bytes,
                until - s);
    if (has_queries) score();
    if (kQuerySubgroups > 1) {
      if (kValuesOverKeys) barrier();  // all subgroups have multiplied the keys
      if (has_queries) give_scores();
      barrier();
      if (has_queries) take_scores();
    }
    if (has_queries) judge(s, whole && s >= seen_from && next <= seen_until);
    if (kQuerySubgroups > 1) barrier();  // all subgroups have judged their scores
    if (has_queries) weigh();
    store_values();
    barrier();  // all subgroups have multiplied the keys
    page = next_page;
    if (next < until)
      load_keys(uint64_t(p.keys) + uint64_t(page) * p.key_page_bytes +
                    (kv_head * kPageTokens + next % kPageTokens) * key_bytes,
                until - next);
    if (has_queries) add_values();
    if (kValuesOverKeys) barrier();
  }
}

// Adds up the weights of each query, over the columns and subgroups that have shares of them.
void find_totals() {
  if (has_queries) coopMatStore(total, tile, own_matrix_at(), kN / 4, gl_CooperativeMatrixLayoutRowMajor);
  barrier();
  for (uint query = gl_LocalInvocationIndex; query < kQueries; query += kThreads) {
    float sum = 0;
    for (uint i = 0; i < kParts * kN; ++i) {
      const uint matrix = query / kM * kQuerySubgroups + i / kN;
      const uint at = matrix * kM * kN + query % kM * kN + i % kN;
      sum += uintBitsToFloat(tile[at / 4][at % 4]);
    }
    query_total[query] = sum;
  }
  barrier();
}

// What a group does first, and what it does before its first positions. `end` is behind its last token.
void begin_group() {
  own_query = gl_SubgroupID / kQuerySubgroups * kM;
  share = gl_SubgroupID % kQuerySubgroups;
  part = share % kParts;
  has_queries = own_query < kQueries;
  raises_seen = 0;
}
void begin_queries(uint end) {
  find_component_indices();
  load_queries(end);
  maximum = MatrixSum(kMinMaximum);
  total = MatrixSum(0);
  [[unroll]] for (uint n = 0; n < kValueMatrices; ++n) sums[n] = MatrixSum(0);
}
#endif
