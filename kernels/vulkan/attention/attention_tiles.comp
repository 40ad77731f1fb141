// attention_tiles: attention of many tokens on a device without cooperative matrices, in float32.
//   y[t][h] = softmax over s of (scale * q[t][h] . k[s]) times v[s]
//   grid    (blocks of kQueries queries * KV heads, blocks of kGroupValues values). A query is a token and
//           one of the query heads of a KV head
//   group   GROUP threads. The group goes through the cache in tiles of kTile positions that all its queries
//           share: scores, online softmax, weighted sums. The tokens may belong to several sequences:
//           neighbours of one sequence form a run, and runs are taken one by one
//   shared  about 24 KiB: tiles of queries or values, of keys, of scores; position, maximum and sum of each
//           query
//   moves   keys and values of all positions once for each group; queries once for each tile of positions,
//           from the caches; y
// The argument block is AttentionBlock in kernels/abi/ops.h.
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "kernels/abi/attention_tile.h"
#include "kernels/vulkan/attention/cache_chunk.h"

layout(push_constant, scalar) uniform Push { AttentionBlock p; };
layout(constant_id = 2) const uint kHeads = 1;
layout(constant_id = 3) const uint kKvHeads = 1;
layout(constant_id = 4) const uint kKeyWidth = 64;
layout(constant_id = 5) const uint kValueWidth = 64;
layout(constant_id = 6) const uint kKeyType = 1;
layout(constant_id = 7) const uint kValueType = 1;
layout(constant_id = 8) const uint kSoftcap = 0;  // its bits

GRETA_ABI_BUFFER(vec4, vec4, 16)

const uint kHeadsPerKv = kHeads / kKvHeads;  // query heads that share a KV head
const uint kQueries = 64;     // TILE of the kernel in CMakeLists.txt
const uint kTile = 32;        // positions of a tile, which lies within a page
const uint kTileDepth = 32;   // columns of queries and keys in shared memory at a time
const uint kTileValues = 64;  // columns of values in shared memory at a time
const uint kGroupValues = kValueWidth < kAttentionValues ? kValueWidth : kAttentionValues;
const uint kValueTiles = (kGroupValues + kTileValues - 1) / kTileValues;
const uint kThreadQueries = 4;  // a thread makes the scores of 4 queries x 2 positions
const float kNone = -3e38;      // below every score

// Rows of float32, padded so that neighbouring rows lie in different banks.
shared vec4 query_tile[kQueries][kTileDepth / 4 + 1];  // later the values [kTile][kTileValues]
shared vec4 key_tile[kTile][kTileDepth / 4 + 1];
shared vec4 score_tile[kQueries][kTile / 4 + 1];   // scores, then weights
shared int query_position[kQueries];  // -1: the query is not of this run
shared float query_max[kQueries], query_sum[kQueries], query_rescale[kQueries];

uint kv_head, first_query, first_value;
uint query_index, column_index;  // the thread's place among 16 x 16
vec4 sums[kThreadQueries * kValueTiles];

uint token_of(uint query) { return (first_query + query) / kHeadsPerKv; }
uint head_of(uint query) { return kv_head * kHeadsPerKv + (first_query + query) % kHeadsPerKv; }

// Values 4 i .. 4 i + 3 of position s of the tile.
vec4 value_quad(uint s, uint i) { return query_tile[s * 2 + i / 8][i % 8]; }

// Decodes a chunk of the cache; zeros where it is not `live`.
void store_chunk(uint type, uint64_t head, uint chunk, bool live, out vec4 low, out vec4 high) {
  low = high = vec4(0);
  if (!live) return;
  float values[kChunk];
  decode_chunk(type, load_chunk(type, head, chunk), values);
  low = vec4(values[0], values[1], values[2], values[3]);
  high = vec4(values[4], values[5], values[6], values[7]);
}

// Brings columns first .. first + kTileDepth - 1 of all queries and of the tile's keys.
void load_queries_and_keys(uint64_t keys, uint first) {
  const uint key_bytes = cache_head_bytes(kKeyType, kKeyWidth);
  for (uint i = gl_LocalInvocationIndex; i < kQueries * kTileDepth / 4; i += GROUP) {
    const uint query = i / (kTileDepth / 4), quad = i % (kTileDepth / 4), k = first + quad * 4;
    const bool live = query_position[query] >= 0 && k < kKeyWidth;
    query_tile[query][quad] =
        live ? vec4_address(p.q).at[((token_of(query) * kHeads + head_of(query)) * kKeyWidth + k) / 4]
            : vec4(0);
  }
  for (uint i = gl_LocalInvocationIndex; i < kTile * kTileDepth / kChunk; i += GROUP) {
    const uint s = i / (kTileDepth / kChunk), chunk = i % (kTileDepth / kChunk);
    store_chunk(kKeyType, keys + s * key_bytes, first / kChunk + chunk, first + chunk * kChunk < kKeyWidth,
                key_tile[s][chunk * 2], key_tile[s][chunk * 2 + 1]);
  }
}

// score_tile = scale * queries . keys
void score(uint64_t keys) {
  vec2 scores[kThreadQueries];
  [[unroll]] for (uint r = 0; r < kThreadQueries; ++r) scores[r] = vec2(0);
  for (uint first = 0; first < kKeyWidth; first += kTileDepth) {
    barrier();
    load_queries_and_keys(keys, first);
    barrier();
    [[unroll]] for (uint quad = 0; quad < kTileDepth / 4; ++quad) {
      const vec4 a = key_tile[column_index][quad], b = key_tile[column_index + 16][quad];
      [[unroll]] for (uint r = 0; r < kThreadQueries; ++r) {
        const vec4 q = query_tile[query_index * kThreadQueries + r][quad];
        scores[r] += vec2(dot(q, a), dot(q, b));
      }
    }
  }
  [[unroll]] for (uint r = 0; r < kThreadQueries; ++r)
    [[unroll]] for (uint c = 0; c < 2; ++c) {
      const uint s = column_index + c * 16;
      const float x = p.scale * scores[r][c];
      score_tile[query_index * kThreadQueries + r][s / 4][s % 4] =
          kSoftcap != 0 ? softcap_f32(p.softcap, x) : x;
    }
}

// Turns the scores of positions `at` .. into weights against each query's new maximum. 4 threads take a
// query.
void weigh(uint at) {
  const uint query = gl_LocalInvocationIndex / 4, quarter = gl_LocalInvocationIndex % 4;
  const int position = query_position[query];
  vec4 scores[2];
  bvec4 seen[2];
  float maximum = kNone;
  [[unroll]] for (uint i = 0; i < 2; ++i) {
    scores[i] = score_tile[query][quarter * 2 + i];
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      const int s = int(at + (quarter * 2 + i) * 4 + j);
      seen[i][j] = s <= position && (p.window == 0 || position - s < int(p.window));
      if (seen[i][j]) maximum = max(maximum, scores[i][j]);
    }
  }
  maximum = max(maximum, subgroupShuffleXor(maximum, 1));
  maximum = max(max(maximum, subgroupShuffleXor(maximum, 2)), query_max[query]);
  float sum = 0;
  [[unroll]] for (uint i = 0; i < 2; ++i) {
    [[unroll]] for (uint j = 0; j < 4; ++j)
      scores[i][j] = seen[i][j] ? exp2((scores[i][j] - maximum) * 1.44269504) : 0;
    score_tile[query][quarter * 2 + i] = scores[i];
    sum += (scores[i].x + scores[i].y) + (scores[i].z + scores[i].w);
  }
  sum += subgroupShuffleXor(sum, 1);
  sum += subgroupShuffleXor(sum, 2);
  if (quarter == 0) {
    const float rescale = exp2((query_max[query] - maximum) * 1.44269504);
    query_rescale[query] = rescale;
    query_sum[query] = query_sum[query] * rescale + sum;
    query_max[query] = maximum;
  }
}

// sums = sums * rescale + weights . values. Positions from `live` on have no values.
void add_values(uint64_t values, uint live) {
  const uint value_bytes = cache_head_bytes(kValueType, p.value_stride);
  [[unroll]] for (uint value_tile = 0; value_tile < kValueTiles; ++value_tile) {
    for (uint i = gl_LocalInvocationIndex; i < kTile * kTileValues / kChunk; i += GROUP) {
      const uint s = i / (kTileValues / kChunk), chunk = i % (kTileValues / kChunk), quad = chunk * 2;
      const uint first = first_value + value_tile * kTileValues + chunk * kChunk;
      store_chunk(kValueType, values + s * value_bytes, first / kChunk, s < live && first < kValueWidth,
                  query_tile[s * 2 + quad / 8][quad % 8], query_tile[s * 2 + quad / 8][quad % 8 + 1]);
    }
    barrier();
    [[unroll]] for (uint r = 0; r < kThreadQueries; ++r) {
      const uint query = query_index * kThreadQueries + r;
      vec4 sum = sums[value_tile * kThreadQueries + r] * query_rescale[query];
      [[unroll]] for (uint quad = 0; quad < kTile / 4; ++quad) {
        const vec4 weights = score_tile[query][quad];
        [[unroll]] for (uint j = 0; j < 4; ++j) sum += weights[j] * value_quad(quad * 4 + j, column_index);
      }
      sums[value_tile * kThreadQueries + r] = sum;
    }
    barrier();
  }
}

// Attention of tokens first .. end - 1, a run of one sequence.
void attend(StepState_address step, uint first, uint end) {
  const uint sequence = step.state.row[first].sequence;
  uint until = 0, from = ~0u;
  for (uint t = first; t < end; ++t) {
    const uint seen = step.state.row[t].position + 1;
    until = max(until, seen);
    from = min(from, p.window != 0 && p.window < seen ? seen - p.window : 0);
  }
  barrier();
  if (gl_LocalInvocationIndex < kQueries) {
    const uint t = token_of(gl_LocalInvocationIndex);
    query_position[gl_LocalInvocationIndex] = t >= first && t < end ? int(step.state.row[t].position) : -1;
  }
  const uint64_t key_head = kv_head * kPageTokens * cache_head_bytes(kKeyType, kKeyWidth);
  const uint64_t value_head = kv_head * kPageTokens * cache_head_bytes(kValueType, p.value_stride);
  for (uint s = from / kTile * kTile; s < until; s += kTile) {
    const uint64_t page = page_of(step, sequence, s);
    const uint slot = s % kPageTokens;
    score(uint64_t(p.keys) + page * p.key_page_bytes + key_head + slot *
          cache_head_bytes(kKeyType, kKeyWidth));
    barrier();
    weigh(s);
    add_values(uint64_t(p.values) + page * p.value_page_bytes + value_head +
                   slot * cache_head_bytes(kValueType, p.value_stride),
               until - s);
  }
}

void main() {
  StepState_address step = step_of(p.step);
  kv_head = gl_WorkGroupID.x % kKvHeads;
  first_query = gl_WorkGroupID.x / kKvHeads * kQueries;
  first_value = gl_WorkGroupID.y * kGroupValues;
  query_index = gl_LocalInvocationIndex / 16;
  column_index = gl_LocalInvocationIndex % 16;
  // The step's first rows may have an attention of their own.
  const uint first = max(token_of(0), step.state.lone_count);
  const uint end = min(live_rows(step, kRowsTokens), token_of(kQueries - 1) + 1);
  if (first >= end) return;
  if (gl_LocalInvocationIndex < kQueries) {
    const bool sinks = uint64_t(p.sinks) != 0;
    query_max[gl_LocalInvocationIndex] = sinks ? p.sinks.at[head_of(gl_LocalInvocationIndex)] : kNone;
    query_sum[gl_LocalInvocationIndex] = sinks ? 1 : 0;
  }
  [[unroll]] for (uint i = 0; i < kThreadQueries * kValueTiles; ++i) sums[i] = vec4(0);
  for (uint t = first; t < end;) {
    uint run_end = t + 1;
    while (run_end < end && step.state.row[run_end].sequence == step.state.row[t].sequence) ++run_end;
    attend(step, t, run_end);
    t = run_end;
  }
  barrier();
  [[unroll]] for (uint value_tile = 0; value_tile < kValueTiles; ++value_tile)
    [[unroll]] for (uint r = 0; r < kThreadQueries; ++r) {
      const uint query = query_index * kThreadQueries + r, t = token_of(query);
      const uint i = first_value + value_tile * kTileValues + column_index * 4;
      if (t < first || t >= end || i >= kValueWidth) continue;
      const uint to = (t * kHeads + head_of(query)) * kValueWidth + i;
      vec4_address(p.y).at[to / 4] = sums[value_tile * kThreadQueries + r] / query_sum[query];
    }
}
