// A tile of kScanTile columns of one head by a group, over all rows of a run. The state stays in registers: a
// thread has one column and every kScanSlices-th value of its keys. So the state is read once and written
// once. Keys and queries of kScanRows rows at a time lie in shared memory. y follows from the state before a
// row: y = decay (S q) + change (k q), so threads meet once for each row.
// Before it stands what kernels/gpu/scan.h wants, and FOR_OWN(i), a loop over the key_width / kScanSlices
// values of a column that a thread has; `state` is that of the run.
#include "kernels/gpu/scan.h"

#define kScanTile 32    // as in kernels/{vulkan,hip}/CMakeLists.txt
#define kScanSlices 8  // GROUP / kScanTile
#define kScanRows 4     // of a chunk, each loaded by kScanTile threads
#define kScanOwn (kMaxScanKeys / kScanSlices)  // the most values of a column that a thread has
// Value i of the thread's own is this one of the column.
#define scan_own_at(i) ((i) * kScanSlices + slice)

shared float scan_keys[kScanRows][kMaxScanKeys];
shared float scan_queries[kScanRows][kMaxScanKeys];
shared float scan_squares[3][kScanRows][kScanTile];  // partial sums of k k, q q and k q
shared float scan_sums[2][2][kScanSlices][kScanTile];

// What a row has in common for all columns: the factors of k, q and S q, and k q of the divided ones.
struct ScanRow {
  float key, query, key_query, decay, strength;
};
shared ScanRow scan_of_row[kScanRows];

// Keys and queries of the rows t .. t + rows - 1 to shared memory.
void load_chunk(ScanBlock p, uint t, uint rows, uint h) {
  const uint row = gl_LocalInvocationIndex / kScanTile, i = gl_LocalInvocationIndex % kScanTile;
  if (row >= rows) return;
  const uint keys = key_at(p, t + row, h);
  float_address query_of = MOVED(p.key, p.query_at);
  float key_squares = 0.0f, query_squares = 0.0f, key_query = 0.0f;
  for (uint j = i; j < p.key_width; j += kScanTile) {
    const float key = AT(p.key, keys + j), query = query_of.at[keys + j];
    scan_keys[row][j] = key;
    scan_queries[row][j] = query;
    key_squares += key * key;
    query_squares += query * query;
    key_query += key * query;
  }
  scan_squares[0][row][i] = key_squares;
  scan_squares[1][row][i] = query_squares;
  scan_squares[2][row][i] = key_query;
}

void make_row(ScanBlock p, uint t, uint row, uint h) {
  float key_squares = 0.0f, query_squares = 0.0f, key_query = 0.0f;
  ROLLED for (uint i = 0; i < kScanTile; ++i) {
    key_squares += scan_squares[0][row][i];
    query_squares += scan_squares[1][row][i];
    key_query += scan_squares[2][row][i];
  }
  const float key = length_factor(p, key_squares);
  const float query = length_factor(p, query_squares) * query_factor(p);
  const float rate = rate_of(p, t + row, h);
  scan_of_row[row].key = key;
  scan_of_row[row].query = query;
  scan_of_row[row].key_query = key * query * key_query;
  scan_of_row[row].decay = exp_f32(AT(p.a, h) * rate);
  scan_of_row[row].strength = scan_form(p.form) == kScanDelta ? strength_of(p, t + row, h) : rate;
}

void scan_tile(ScanBlock p, StepRun run, bool begins, float_address state, uint first_column) {
  const uint slice = gl_LocalInvocationIndex / kScanTile, lane_of_tile = gl_LocalInvocationIndex % kScanTile;
  const uint column = first_column + lane_of_tile, h = first_column / p.value_width;
  const uint first = h * p.key_width * p.value_width + column % p.value_width;
  const bool delta = scan_form(p.form) == kScanDelta;
  const float skip = skip_of(p, h);
  float own[kScanOwn];
  UNROLL for (uint i = 0; i < kScanOwn; ++i) own[i] = 0.0f;
  if (!begins) {
    FOR_OWN(i) own[i] = STATE_AT(state, first + scan_own_at(i) * p.value_width);
  }
  for (uint t = run.first; t < run.first + run.count; ++t) {
    const uint row = (t - run.first) % kScanRows;
    if (row == 0) {
      const uint rows = min(uint(kScanRows), run.first + run.count - t);
      barrier();  // all have read the chunk before
      load_chunk(p, t, rows, h);
      barrier();
      if (gl_LocalInvocationIndex < rows) make_row(p, t, gl_LocalInvocationIndex, h);
      barrier();
    }
    float from_key = 0.0f, from_query = 0.0f;
    FOR_OWN(i) {
      from_key += own[i] * scan_keys[row][scan_own_at(i)];
      from_query += own[i] * scan_queries[row][scan_own_at(i)];
    }
    const uint turn = t & 1u;  // the sums of the row before may still be read
    scan_sums[turn][0][slice][lane_of_tile] = from_key;
    scan_sums[turn][1][slice][lane_of_tile] = from_query;
    const float value = AT(p.value, t * p.value_stride + column);
    const ScanRow r = scan_of_row[row];
    barrier();
    from_key = 0.0f;
    from_query = 0.0f;
    for (uint i = 0; i < kScanSlices; ++i) {
      from_key += scan_sums[turn][0][i][lane_of_tile];
      from_query += scan_sums[turn][1][i][lane_of_tile];
    }
    const float change = r.strength * (delta ? value - r.decay * r.key * from_key : value);
    if (slice == 0)
      AT(p.y, t * p.heads * p.value_width + column) =
          r.decay * r.query * from_query + change * r.key_query + skip * value;
    const float of_key = change * r.key;
    FOR_OWN(i) own[i] = own[i] * r.decay + of_key * scan_keys[row][scan_own_at(i)];
  }
  FOR_OWN(i) STATE_AT(state, first + scan_own_at(i) * p.value_width) = own[i];
}
