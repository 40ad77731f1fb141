// A tile of kScanTile columns of one head by a group, over all rows of a run, kScanChunk rows at a time. The
// state stays in registers: a thread has four columns, and one of kScanSlices slices of their keys. With
// k, q, v of row r, the decay from row s to row r d(r, s), that from the state before the chunk d(r), and the
// change u of a row:
//   S k_r and S q_r of all rows
//   u_r = strength (v_r - d(r) S k_r - sum over s < r of d(r, s) (k_s k_r) u_s), or u_r = rate v_r
//   y_r = d(r) S q_r + sum over s <= r of d(r, s) (k_s q_r) u_s
//   S = d(last) S + sum over r of d(last, r) u_r k_r
// All decays are products of those of single rows, so none is divided by one that has become 0. Rows that a
// chunk lacks have no keys, no change and a decay of 1. What the next chunk reads is loaded meanwhile.
// Before it stands what kernels/gpu/scan.h wants; kScanWidth, a constant and at least key_width; and two
// loops over blocks of keys: FOR_BLOCKS(b) over those of kScanWidth values, and FOR_BLOCKS_THERE(b), which
// leaves out those that key_width lacks. These are zeros everywhere.
#include "kernels/gpu/scan.h"

#define kScanTile 32   // as in kernels/vulkan/CMakeLists.txt
#define kScanSlices 8  // of the keys: GROUP / kScanQuads
#define kScanQuads 8   // kScanTile / 4
#define kScanChunk 8   // rows, each finished by a slice of the threads
#define kScanBlock (kScanSlices * 4)             // keys, of which a slice has four
#define kScanBlocks (kMaxScanKeys / kScanBlock)  // the most
#define kScanRowVectors (kScanWidth / 4 + 1)     // one more, so that rows begin in different banks
#define FOR_ROWS(r) UNROLL for (uint r = 0; r < kScanChunk; ++r)
// Where four keys or queries of a row lie: block b and slice s.
#define scan_four(row, b, s) ((row) * kScanRowVectors + (b) * kScanSlices + (s))
#define kScanQueries kScanChunk  // the row of the first query

// scan_chunk_bytes in kernels/abi/scan_chunk.h.
shared vec4 scan_vectors[2 * kScanChunk * kScanRowVectors];    // keys, then queries
shared vec4 scan_sums[kScanSlices * kScanChunk * kScanQuads];  // parts of S k, then of S q
shared vec4 scan_known[kScanChunk * kScanQuads];               // u without the changes of other rows
shared float scan_squares[2][kScanChunk * kScanQuads];         // parts of k k and q q
shared float scan_change_of[kScanChunk * kScanChunk];          // [r][s]: how u_r follows from u_s
shared float scan_y_of[kScanChunk * kScanChunk];               // [r][s]: and y_r
shared float scan_decays[kScanChunk], scan_to_last[kScanChunk];

struct ScanPlace {
  uint slice, quad, head;
  uint column;  // the first of the thread's, which are kScanQuads from one to the next
  uint value;   // that column among those of its head
  float a, dt_bias, skip;
  bool delta;
};

// What a thread loads of a chunk: of row `slice` the keys and queries that `quad` stands for, and its values.
struct ScanAhead {
  vec4 key[kScanBlocks], query[kScanBlocks], value;
  float dt, strength;
  bool lives;
};

// What a thread knows of row `slice`.
struct ScanOfRow {
  float strength, of_key, of_query;  // the latter two multiply S k and S q
  float decay;                       // of the whole chunk
};

ScanPlace scan_place(ScanBlock p, uint first_column) {
  ScanPlace at;
  at.slice = gl_LocalInvocationIndex / kScanQuads;
  at.quad = gl_LocalInvocationIndex % kScanQuads;
  at.head = first_column / p.value_width;
  at.column = first_column + at.quad;
  at.value = at.column % p.value_width;
  at.a = AT(p.a, at.head);
  at.dt_bias = IS(p.dt_bias) ? AT(p.dt_bias, at.head) : 0.0f;
  at.skip = skip_of(p, at.head);
  at.delta = scan_form(p.form) == kScanDelta;
  return at;
}

// Where key j of block b and of the thread's slice lies in the state, for the thread's first column.
uint scan_state_at(ScanBlock p, ScanPlace at, uint b, uint j) {
  return (at.head * p.key_width + b * kScanBlock + at.slice * 4 + j) * p.value_width + at.value;
}

ScanAhead scan_fetch(ScanBlock p, ScanPlace at, uint t, uint rows) {
  ScanAhead next;
  UNROLL for (uint b = 0; b < kScanBlocks; ++b) next.key[b] = next.query[b] = vec4(0.0f);
  next.value = vec4(0.0f);
  next.dt = next.strength = 0.0f;
  next.lives = at.slice < rows;
  if (!next.lives) return next;
  t += at.slice;
  float_address keys = MOVED(p.key, key_at(p, t, at.head) + at.quad * 4);
  float_address queries = MOVED(keys, p.query_at), values = MOVED(p.value, t * p.value_stride + at.column);
  FOR_BLOCKS_THERE(b) {
    UNROLL for (uint j = 0; j < 4; ++j) {
      next.key[b][j] = keys.at[b * kScanBlock + j];
      next.query[b][j] = queries.at[b * kScanBlock + j];
    }
  }
  UNROLL for (uint e = 0; e < 4; ++e) next.value[e] = values.at[e * kScanQuads];
  next.dt = AT(p.dt, t * p.dt_stride + at.head) + at.dt_bias;
  if (at.delta) next.strength = AT(p.with_value, t * p.dt_stride + at.head);
  return next;
}

// The chunk to shared memory, and the decays of its rows. Returns the thread's row without what others know.
ScanOfRow scan_stage(ScanPlace at, ScanAhead now) {
  vec4 key_squares = vec4(0.0f), query_squares = vec4(0.0f);
  FOR_BLOCKS(b) {
    scan_vectors[scan_four(at.slice, b, at.quad)] = now.key[b];
    scan_vectors[scan_four(kScanQueries + at.slice, b, at.quad)] = now.query[b];
    key_squares += now.key[b] * now.key[b];
    query_squares += now.query[b] * now.query[b];
  }
  scan_squares[0][at.slice * kScanQuads + at.quad] = dot(key_squares, vec4(1.0f));
  scan_squares[1][at.slice * kScanQuads + at.quad] = dot(query_squares, vec4(1.0f));
  const float rate = softplus(now.dt);
  if (at.quad == 0) scan_decays[at.slice] = now.lives ? exp_f32(at.a * rate) : 1.0f;
  ScanOfRow row;
  row.strength = !now.lives ? 0.0f : at.delta ? if_finite(now.strength, logistic(now.strength)) : rate;
  row.of_key = row.of_query = row.decay = 1.0f;
  return row;
}

// What the keys or queries of a row are multiplied by.
float scan_factor(ScanBlock p, uint which, uint row, uint rows) {
  float squares = 0.0f;
  UNROLL for (uint i = 0; i < kScanQuads; ++i) squares += scan_squares[which][row * kScanQuads + i];
  return row < rows ? length_factor(p, squares) : 0.0f;
}

// A thread multiplies the keys of row s = quad with the key and the query of row r = slice.
ScanOfRow scan_pair(ScanBlock p, ScanPlace at, uint rows, ScanOfRow row) {
  const uint r = made_anew(at.slice), s = made_anew(at.quad);
  vec4 of_keys = vec4(0.0f), of_queries = vec4(0.0f);
  ROLLED for (uint b = 0; b < p.key_width / kScanBlock; ++b) {
    UNROLL for (uint i = 0; i < kScanSlices; ++i) {
      const vec4 key = scan_vectors[scan_four(s, b, i)];
      of_keys = fma(key, scan_vectors[scan_four(r, b, i)], of_keys);
      of_queries = fma(key, scan_vectors[scan_four(kScanQueries + r, b, i)], of_queries);
    }
  }
  float from_s = 1.0f;
  FOR_ROWS(i) {
    const float decay = scan_decays[i];
    row.decay *= decay;
    row.of_query *= i <= r ? decay : 1.0f;
    from_s *= i > s && i <= r ? decay : 1.0f;
  }
  const float key = scan_factor(p, 0, r, rows), query = scan_factor(p, 1, r, rows) * query_factor(p);
  from_s *= scan_factor(p, 0, s, rows);
  scan_change_of[r * kScanChunk + s] = row.strength * key * from_s * dot(of_keys, vec4(1.0f));
  scan_y_of[r * kScanChunk + s] = query * from_s * dot(of_queries, vec4(1.0f));
  if (r == kScanChunk - 1) scan_to_last[s] = from_s;
  row.of_key = row.strength * row.of_query * key;
  row.of_query *= query;
  return row;
}

// What the thread adds to S times the keys or queries of `count` rows. SCAN_SHARE gives it to the others.
#define SCAN_MULTIPLY_ROWS(sums, own, first_row, count)                     \
  FOR_BLOCKS(b) {                                                           \
    UNROLL for (uint r = 0; r < count; ++r) {                               \
      const vec4 x = scan_vectors[scan_four(first_row + r, b, at.slice)];   \
      UNROLL for (uint j = 0; j < 4; ++j)                                   \
        sums[r] = fma(own[b * 4 + j], vec4(x[j]), sums[r]);                 \
    }                                                                       \
  }
// A step that writes many texts has runs of one row. They do an eighth of the work.
#define SCAN_MULTIPLY(sums, own, first_row, rows)          \
  FOR_ROWS(r) sums[r] = vec4(0.0f);                        \
  if (rows == 1)                                           \
    SCAN_MULTIPLY_ROWS(sums, own, first_row, 1)            \
  else                                                     \
    SCAN_MULTIPLY_ROWS(sums, own, first_row, kScanChunk)
#define SCAN_CHANGE(own, change, decay, count)                                \
  FOR_BLOCKS(b)                                                               \
    UNROLL for (uint j = 0; j < 4; ++j) {                                     \
      own[b * 4 + j] *= decay;                                                \
      UNROLL for (uint r = 0; r < count; ++r) {                               \
        const float key = scan_vectors[scan_four(r, b, at.slice)][j];         \
        own[b * 4 + j] = fma(change[r], vec4(key), own[b * 4 + j]);           \
      }                                                                       \
    }
#define SCAN_SHARE(sums) \
  FOR_ROWS(r) scan_sums[(at.slice * kScanChunk + r) * kScanQuads + at.quad] = sums[r];

// The sum for row `slice` and the thread's columns.
vec4 scan_sum(ScanPlace at) {
  vec4 sum = vec4(0.0f);
  UNROLL for (uint i = 0; i < kScanSlices; ++i)
    sum += scan_sums[(i * kScanChunk + at.slice) * kScanQuads + at.quad];
  return sum;
}

void scan_tile(ScanBlock p, StepRun run, bool begins, float_address state, uint first_column) {
  const ScanPlace at = scan_place(p, first_column);
  const uint end = run.first + run.count;
  vec4 own[kScanBlocks * 4], sums[kScanChunk], change[kScanChunk];
  UNROLL for (uint i = 0; i < kScanBlocks * 4; ++i) own[i] = vec4(0.0f);
  if (!begins) {
    FOR_BLOCKS_THERE(b)
      UNROLL for (uint j = 0; j < 4; ++j)
        UNROLL for (uint e = 0; e < 4; ++e)
          own[b * 4 + j][e] = STATE_AT(state, scan_state_at(p, at, b, j) + e * kScanQuads);
  }
  ScanAhead ahead = scan_fetch(p, at, run.first, min(run.count, uint(kScanChunk)));
  for (uint t = run.first; t < end; t += kScanChunk) {
    const uint rows = min(end - t, uint(kScanChunk));
    const vec4 value = ahead.value;
    barrier();  // all have read the chunk before
    ScanOfRow row = scan_stage(at, ahead);
    barrier();
    if (end - t > kScanChunk)
      ahead = scan_fetch(p, at, t + kScanChunk, min(end - t - kScanChunk, uint(kScanChunk)));
    row = scan_pair(p, at, rows, row);
    vec4 known = row.strength * value;
    if (at.delta) {
      SCAN_MULTIPLY(sums, own, 0, rows)
      SCAN_SHARE(sums)
      barrier();
      known -= row.of_key * scan_sum(at);
    }
    scan_known[at.slice * kScanQuads + at.quad] = known;
    SCAN_MULTIPLY(sums, own, kScanQueries, rows)
    barrier();
    SCAN_SHARE(sums)
    FOR_ROWS(r) {
      change[r] = scan_known[r * kScanQuads + at.quad];
      if (at.delta)
        UNROLL for (uint s = 0; s < r; ++s)
          change[r] = fma(vec4(-scan_change_of[r * kScanChunk + s]), change[s], change[r]);
    }
    barrier();
    vec4 y = row.of_query * scan_sum(at) + at.skip * value;
    FOR_ROWS(s) {
      if (s <= at.slice) y = fma(vec4(scan_y_of[at.slice * kScanChunk + s]), change[s], y);
      change[s] *= scan_to_last[s];
    }
    if (at.slice < rows) {
      float_address to = MOVED(p.y, (t + at.slice) * p.heads * p.value_width + at.column);
      UNROLL for (uint e = 0; e < 4; ++e) to.at[e * kScanQuads] = y[e];
    }
    if (rows == 1)
      SCAN_CHANGE(own, change, row.decay, 1)
    else
      SCAN_CHANGE(own, change, row.decay, kScanChunk)
  }
  FOR_BLOCKS_THERE(b)
    UNROLL for (uint j = 0; j < 4; ++j)
      UNROLL for (uint e = 0; e < 4; ++e)
        STATE_AT(state, scan_state_at(p, at, b, j) + e * kScanQuads) = own[b * 4 + j][e];
}
