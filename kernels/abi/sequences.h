// The argument blocks of kernels that cover several small ops, and of no op alone. Other words are as in
// kernels/abi/ops.h.
#ifndef GRETA_ABI_SEQUENCES_H
#define GRETA_ABI_SEQUENCES_H
#include "kernels/abi/multiply.h"

// Of AttentionHeadsConstants.norms, beside kNormsEachHead: values are normalised too, without a gain.
#define kNormsValues 4

// y[t][h] = activation(gate[t][h]) * x[t][h] / rms(x[t][h]) * gain, over heads of `width` values
struct NormGateBlock {
  ADDRESS(float) x;       // [tokens][heads][width]
  ADDRESS(float) gain;    // [width]
  ADDRESS(float) gate;    // [tokens][heads][width]
  ADDRESS(float) y;       // likewise; may be x or gate
  ADDRESS(byte) step;
  ADDRESS(byte) rounded;  // y in q8x16 as well, or 0
  ADDRESS(byte) halves;   // y as float16 as well, saturated, or 0
  uint width, heads;      // width is a multiple of 4, and with `rounded` of 16
  uint activation;
  float epsilon;
};

struct MultiplyRounded {
  MultiplyBlock block;
  ADDRESS(byte) rounded;  // y in q8x16 as well, or 0
  ADDRESS(byte) halves;   // y as float16 as well, saturated, or 0
};

// Widest head that is normalised and gated at once.
#define kMaxGatedHead 512

// y[t][c] = gate[t][c] * (bias[c] + sum over j < width of weight[c][j] * u[t + 1 - width + j][c]), where
// u = x * by. The state has rows of u, as in Conv1dBlock (kernels/abi/scan.h).
struct Conv1dGatedBlock {
  ADDRESS(float) x;       // [tokens] of stride values, [channels] at the start of each
  ADDRESS(float) by;      // likewise
  ADDRESS(float) gate;    // likewise
  ADDRESS(float) weight;  // [channels][width]
  ADDRESS(float) bias;    // [channels] or 0
  ADDRESS(float) y;       // [tokens][channels]; none of the inputs
  ADDRESS(float) state;   // [states] of state_stride values, [width - 1][channels] at the start of each
  ADDRESS(byte) step;
  ADDRESS(byte) runs;     // StepRuns
  ADDRESS(byte) rounded;  // y in q8x16 as well, or 0
  ADDRESS(byte) halves;   // y as float16 as well, saturated, or 0
  uint channels, width;   // channels is a multiple of 4, and with `rounded` of 32
  uint stride, state_stride;
};

// y[t] = factor[0] * (residual[t] + scale * norm(s) * gain), where
// s = norm(a[t]) * a_gain + norm(b[t]) * b_gain
struct NormPairBlock {
  ADDRESS(float) a;          // [tokens][width]
  ADDRESS(float) a_gain;     // [width]
  ADDRESS(float) b;          // [tokens][width]
  ADDRESS(float) b_gain;     // [width]
  ADDRESS(float) gain;       // [width]
  ADDRESS(float) residual;   // [tokens][width]; may be y
  ADDRESS(float) y;          // [tokens][width]
  ADDRESS(float) factor;     // or 0
  ADDRESS(byte) step;
  ADDRESS(byte) rounded;     // y * next_gain in q8x16 as well, or 0
  ADDRESS(float) next_gain;  // [width] of the norm that follows, or 0
  uint width;                // a multiple of 4, and with `rounded` of 32
  float epsilon, scale;
};

// y[t] = residual[t] + scale * sum over j of weights[t][j] * x[t][j], in order of j
struct CombineAddBlock {
  ADDRESS(float) x;          // [tokens][used][width]
  ADDRESS(float) weights;    // [tokens][used]
  ADDRESS(float) residual;   // [tokens][width]; may be y
  ADDRESS(float) y;          // [tokens][width]
  ADDRESS(byte) step;
  ADDRESS(byte) rounded;     // y * next_gain in q8x16 as well, or 0
  ADDRESS(float) next_gain;  // [width] of the norm that follows, or 0
  uint width, used;          // width is a multiple of 4, and with `rounded` of 32
  float scale;
};

// conv1d with SiLU, the scan of the gated delta rule behind it (kernels/abi/scan.h), the norm of each head of
// its result, and the gate of that. Group (h, r) makes head h of run r.
struct ScanGatedBlock {
  ADDRESS(float) x;         // [tokens][channels]: [groups][key_width] of queries, of keys, then the values
  ADDRESS(float) weight;    // [channels][conv_width]
  ADDRESS(float) state;     // [states] of state_stride values: the state of the convolution, and that of the
                            // scan from value scan_at on
  ADDRESS(float) dt;        // [tokens][heads]
  ADDRESS(float) strength;  // [tokens][heads]
  ADDRESS(float) a;         // [heads]
  ADDRESS(float) dt_bias;   // [heads] or 0
  ADDRESS(float) gain;      // [value_width]
  ADDRESS(float) gate;      // [tokens][heads][value_width]
  ADDRESS(float) y;         // likewise
  ADDRESS(byte) rounded;    // y in q8x16 as well, or as float16 with ScanGatedConstants.halves; or 0
  ADDRESS(byte) step;
  ADDRESS(byte) runs;
  ADDRESS(uint) counters;   // [runs][groups], 0 before and after
  ADDRESS(uint) chain;      // the stage's cell of the chain, which the backend sets (kernels/abi/chain.h)
  uint state_stride, scan_at;
};

// What else is fixed for a model: specialization constants, as in AttentionHeadsConstants.
struct ScanGatedConstants {
  uint heads, groups, key_width, value_width, conv_width;
  uint form, activation;
  uint halves;
  float epsilon, norm_epsilon;
};

struct ScanGated {
  ScanGatedBlock block;
  ScanGatedConstants constants;
};

// A matvec followed by a norm whose residual is then multiplied: y[t] = factor[0] * (what MatmulNormBlock
// says).
struct MatmulNormScaled {
  MatmulNormBlock block;
  ADDRESS(float) factor;  // or 0
};

#endif
