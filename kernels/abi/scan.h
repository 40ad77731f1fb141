// The argument blocks of conv1d and scan, the ops that keep a state of each sequence. Both go over the runs
// of a step (kernels/abi/step_runs.h). Other words are as in kernels/abi/ops.h.
#ifndef GRETA_ABI_SCAN_H
#define GRETA_ABI_SCAN_H
#include "kernels/abi/ops.h"
#include "kernels/abi/step_runs.h"

#define kMaxConvWidth 8

// y[t][c] = activation(bias[c] + sum over j < width of weight[c][j] * x[t + 1 - width + j][c])
// Rows before the first one of a run are those of the state: its width - 1 last rows, the oldest first.
// Afterwards the state has the last ones of the run.
struct Conv1dBlock {
  ADDRESS(float) x;       // [tokens] of x_stride values, [channels] at the start of each
  ADDRESS(float) weight;  // [channels][width]
  ADDRESS(float) bias;    // [channels] or 0
  ADDRESS(float) y;       // [tokens] of y_stride values, likewise; not x
  ADDRESS(float) state;   // [states] of state_stride values, [width - 1][channels] at the start of each
  ADDRESS(byte) step;
  ADDRESS(byte) runs;     // StepRuns
  uint channels, width;
  uint silu;              // 1: y is multiplied by its logistic function; 0: it stays
  uint x_stride, y_stride, state_stride;
  uint rows;              // of the plan; group (i, t) makes channels i * tile .. of rows from t on
};

// What a scan does with its state S^T[key_width][value_width] of a head h, for each row of a run in turn. The
// key k, the query q and the value v are vectors of that row. Heads share keys and queries in groups.
//   rate = softplus(dt[h] + dt_bias[h])
//   kScanDelta      the gated delta rule (Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464)
//                   S = exp(a[h] rate) S;   S = S + sigmoid(strength[h]) (v - S k) k^T
//                   y = S q / sqrt(key_width)
//   kScanGroups     the state space of Mamba 2 (Dao, Gu 2024, arXiv 2405.21060)
//                   S = exp(a[h] rate) S + rate v k^T
//                   y = S q + skip[h] v
//   kScanSelective  the selective scan of Mamba 1 (Gu, Dao 2023, arXiv 2312.00752). A channel is a head with
//                   one value, and has a decay for each value of the key:
//                   S[j] = exp(a[h][j] rate) S[j] + rate v k[j]
//                   y = S q + skip[h] v
// If epsilon is not negative, k and q were divided by sqrt(sum of squares + epsilon) before.
#define kScanDelta 0
#define kScanGroups 1
#define kScanSelective 2
#define kScanTiled 4      // added: head h has group h % groups, and else h / (heads / groups)
#define scan_form(form) ((form) & 3)

#define kMaxScanKeys 256  // widest key

// Group (i, r) makes columns i * tile .. of run r, where column h * value_width + v is value v of head h.
struct ScanBlock {
  ADDRESS(float) key;        // [tokens] of key_stride values, [groups][key_width] at the start of each
  ADDRESS(float) value;      // [tokens] of value_stride values, [heads][value_width] at the start of each
  ADDRESS(float) dt;         // [tokens] of dt_stride values, [heads] at the start of each
  ADDRESS(float) with_value; // of kScanDelta strength, as dt; of the others skip, [heads] or 0
  ADDRESS(float) y;          // [tokens][heads][value_width]
  ADDRESS(float) state;      // [states] of state_stride values, [heads][key_width][value_width] at the start
  ADDRESS(float) a;          // [heads], of kScanSelective [heads][key_width]
  ADDRESS(float) dt_bias;    // [heads] or 0
  ADDRESS(byte) step;
  ADDRESS(byte) runs;        // StepRuns
  uint form;                 // kScan*
  uint heads, groups, key_width, value_width;
  uint query_at;             // from a row's keys to its queries, modulo 2^32 values
  uint key_stride, value_stride, dt_stride, state_stride;
  float epsilon;
  uint most_runs;            // of a step of the plan
};

#endif
