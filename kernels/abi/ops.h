// Argument blocks of all ops. Activations are float32, row-major; t is a token row, n an output
// row, k depth, h a head. `step` gives the live row counts; surplus groups return at once.
// An address of 0 means that the optional part is absent.
#ifndef GRETA_ABI_OPS_H
#define GRETA_ABI_OPS_H
#include "kernels/abi/step_state.h"

// Which rows an op runs over (field `rows_of`).
#define kRowsTokens 0    // x row t -> y row t, t < token_count
#define kRowsGather 1    // x row output_row[i] -> y row i, i < output_count
#define kRowsOutputs 2   // x row i -> y row i, i < output_count

#define kMaxHeadWidth 1024  // values of a head that attention and the fused matmul rows hold at once
// Rows of a weight longer than this go to the plain kernels: a worker's memory holds x in two forms.
#define kMaxRankedDepth 98304

// y[t] = scale * weight[token of t]; also logs the token into its page, where sample looks back. Where the table lies
// in parts, a launch for each does so for the tokens of its part.
struct EmbedBlock {
  ADDRESS(byte) weight;    // [rows][width], layout and type of the kernel row: tokens first .. first + rows - 1
  ADDRESS(float) y;        // [tokens][width]
  ADDRESS(byte) step;      // StepState
  ADDRESS(uint) token_log; // [pages][kPageTokens]
  ADDRESS(byte) rounded;     // y in the form q8x16 as well, times `next_gain`, or 0; not where the table lies in parts
  ADDRESS(float) next_gain;  // [width] of the norm that follows, or 0
  uint width, vocab;
  float scale;
  uint first, rows;
};

// y[t][h] = x[t][h] / rms(x[t][h]) * gain, over heads of `width` values. With a residual, of one head,
// y[t] = residual[t] + scale * that.
struct NormBlock {
  ADDRESS(float) x;     // [rows] of x_stride values, [heads][width] at the start of each
  ADDRESS(float) gain;  // [width]
  ADDRESS(float) y;     // [rows] of y_stride values, likewise; may be x
  ADDRESS(byte) step;
  ADDRESS(float) residual;   // [rows][width] or 0; may be y
  ADDRESS(byte) rounded;     // y in the form q8x16 as well, times `next_gain`, or 0
  ADDRESS(float) next_gain;  // [width] of the norm that follows, or 0
  ADDRESS(byte) halves;      // [rows][width], y as float16 as well, saturated, or 0; not with a residual
  uint width, heads;
  uint x_stride, y_stride;
  float epsilon, scale;
  uint rows_of;
};

// y[t][n] = sum over k of weight[n][k] * x[t][k], with optional parts fused around it.
// Group g makes rows g * tile .. of y for every live t. A kernel row's op sequence says which parts
// may be present. `bias` goes to the sum at once, before all else; a gate has none.
//   norm      x is normalised first (gain, epsilon)
//   rope      rotates y by position; tile is then the head width
//   kv_write  y goes to the page pool instead of y; tile is then the head width
//   add       residual[t][n] is added
//   matmul matmul gate   y = activation(weight . x) * (weight2 . x)
struct MatmulBlock {
  ADDRESS(byte) weight;    // [n][depth] in the kernel row's type and layout
  ADDRESS(byte) weight2;   // [n][depth], the `up` of gate, or 0
  ADDRESS(byte) x;         // [tokens][depth] float32, or float16, or the q8 form of kernels/abi/q8.h
  ADDRESS(float) y;        // [tokens][n]
  ADDRESS(byte) step;
  ADDRESS(float) gain;     // [depth] or 0
  ADDRESS(float) residual; // [tokens][n] or 0; may be y
  ADDRESS(float) rope;     // [context][rope_width / 2][cos, sin] or 0
  ADDRESS(byte) pool;      // page pool of this layer, as in KvWriteBlock, or 0
  ADDRESS(float) bias;     // [n] or 0
  uint n, depth, tile;
  uint rows_of;
  float epsilon;
  uint rope_width;   // rotated values at the start of each head
  uint rope_halves;  // 0: pairs (2i, 2i+1); 1: pairs (i, i + rope_width / 2)
  uint head_width;
  uint cache_type;   // index in kernels/abi/cache_types.def
  uint page_bytes;   // stride of a page in the pool
  uint activation;
};

// A matmul in tiles: group (i, j, k) takes tokens i * tile_tokens .. and rows j * tile .. over part k of the columns, whole
// kTileColumns. Where there are several parts, the last group of a tile adds their sums up, in order.
struct MatmulTileBlock {
  ADDRESS(byte) weight;    // [n][depth]
  ADDRESS(byte) x;         // [tokens][depth] float16
  ADDRESS(float) y;        // [tokens][n]
  ADDRESS(byte) step;
  ADDRESS(float) residual; // [tokens][n] or 0; may be y
  ADDRESS(float) bias;     // [n] or 0
  ADDRESS(float) parts;    // [tiles][parts][tile x tile_tokens], any contents; 0 where there is one part
  ADDRESS(uint) counters;  // one for each tile, 0 before and after
  uint n, depth, rows_of;
  uint tile, tile_tokens;
};

#define kTileColumns 256  // of a part: as many as the largest block of weights has

// A matmul of a few tokens whose x is rounded already, with the same parts around it. Group (t, g) makes results
// g * kGroupResults .. of token t: rows of y, or pairs of rows that are rotated together.
struct MatmulRowBlock {
  ADDRESS(byte) weight;    // [n][depth]
  ADDRESS(byte) weight2;   // the `up` of a gate, or 0
  ADDRESS(byte) x;         // [tokens] rows of the form q8x16
  ADDRESS(float) y;        // [tokens][n]; with page_bytes the page pool of this layer, as in KvWriteBlock
  ADDRESS(byte) rounded;   // y in the form q8x16 as well, times `gain`, or 0; never of rotated or stored rows
  ADDRESS(float) gain;     // [n] of the norm that follows, or 0
  ADDRESS(byte) step;
  ADDRESS(float) residual; // [tokens][n] or 0; may be y
  ADDRESS(float) rope;     // as in MatmulBlock
  ADDRESS(float) bias;     // [n] or 0
  ADDRESS(uint) chain;     // where the backend puts the stage's cell (kernels/abi/chain.h)
  uint n, depth;
  uint pairing;      // what a result is
  uint threads;      // of a group
  float epsilon;     // of the norm by whose factor x is still to be multiplied; negative: none
  uint rope_width, head_width, cache_type, page_bytes;
  uint activation;
};

// The same without parts but a bias, followed by a norm: y[t] = residual[t] + scale * norm(weight . x[t] + bias). The last
// group of a token to arrive takes the norm.
struct MatmulNormBlock {
  ADDRESS(byte) weight;      // [n][depth]
  ADDRESS(byte) x;           // [tokens] rows of the form q8x16
  ADDRESS(float) product;    // [tokens][n], any contents: what is normed
  ADDRESS(float) norm_gain;  // [n]
  ADDRESS(float) residual;   // [tokens][n]; may be y
  ADDRESS(float) y;          // [tokens][n]
  ADDRESS(byte) rounded;     // as in MatmulRowBlock
  ADDRESS(float) gain;
  ADDRESS(byte) step;
  ADDRESS(float) bias;       // [n] or 0
  ADDRESS(uint) counters;    // [tokens] that are 0 before and after
  ADDRESS(uint) chain;
  uint n, depth;             // n is a multiple of 4
  uint threads;
  float epsilon, scale;
};

// The same where weights and x are floats, for rows of a step of any kind. Group (0, g) makes results g * kGroupResults ..
// of all of them, one after the other.
struct MatmulFloatRowBlock {
  ADDRESS(byte) weight;    // [n][depth]
  ADDRESS(byte) weight2;   // the `up` of a gate, or 0
  ADDRESS(float) x;        // [tokens][depth]
  ADDRESS(float) y;        // as in MatmulRowBlock
  ADDRESS(float) gain;     // [depth] of the norm before, or 0
  ADDRESS(byte) step;
  ADDRESS(float) residual; // [tokens][n] or 0; may be y
  ADDRESS(float) rope;     // as in MatmulBlock
  ADDRESS(float) bias;     // [n] or 0
  ADDRESS(uint) chain;     // as in MatmulRowBlock
  uint n, depth, rows_of;
  uint pairing;      // what a result is
  uint threads;      // of a group
  float epsilon;     // of the norm before; negative: none
  uint rope_width, head_width, cache_type, page_bytes;
  uint activation;
};

#define kGroupResults 16
#define kPairingNone 0    // a row
#define kPairingGate 1    // a row of each of two weights
#define kPairingNext 2    // rows 2i and 2i + 1
#define kPairingHalves 3  // rows i and i + rope_width / 2 of a head

// The first rope_width values of each head, rotated by the position of the token; nothing else of y is
// written. Heads begin x_stride and y_stride values apart.
struct RopeBlock {
  ADDRESS(float) x;      // [tokens][heads] of x_stride values
  ADDRESS(float) y;      // [tokens][heads] of y_stride values; may be x
  ADDRESS(byte) step;
  ADDRESS(float) table;  // [context][rope_width / 2][cos, sin]
  uint heads, rope_width, rope_halves;
  uint x_stride, y_stride;
};

// Heads of queries or keys in one launch: normed, the first rope_width values of each rotated, then stored. Group (t, j) makes
// heads j * tile .. of token t.
struct RopeHeadsBlock {
  ADDRESS(float) x;      // [tokens][heads][head_width]
  ADDRESS(float) y;      // likewise, may be x; with page_bytes the page pool of this layer, as in KvWriteBlock
  ADDRESS(float) gain;   // [norm_width] or 0: no norm
  ADDRESS(byte) step;
  ADDRESS(float) table;  // as in RopeBlock
  uint heads, head_width, tile;
  uint norm_width;       // values that are normed together: of a head, or of all heads of a token
  float epsilon;
  uint rope_width, rope_halves;
  uint page_bytes, cache_type;
};

// Writes keys or values of the step's tokens into their pages.
// A page is [heads][kPageTokens][head_width] of the cache type.
struct KvWriteBlock {
  ADDRESS(float) x;     // [tokens][heads][head_width]
  ADDRESS(byte) pool;   // [pages] x page_bytes, of one layer, keys or values
  ADDRESS(byte) step;
  uint heads, head_width, page_bytes, cache_type;
};

// y[t][h] = softmax over s <= position(t) of (scale * q[t][h] . k[s]) times v[s]; query head h reads
// KV head h / (heads / kv_heads). Positions are taken in order, so the bits do not depend on the bucket.
struct AttentionBlock {
  ADDRESS(float) q;       // [tokens][heads][key_width]
  ADDRESS(float) y;       // [tokens][heads][value_width]
  ADDRESS(byte) keys;     // page pool of this layer
  ADDRESS(byte) values;
  ADDRESS(byte) step;
  ADDRESS(float) sinks;   // [heads] extra logits without a value, or 0
  // For rows that split the positions of a token and KV head among groups, with at most kMaxSplitTokens tokens.
  ADDRESS(byte) scratch;   // attention_scratch_bytes(), any contents
  ADDRESS(uint) counters;  // kCounterCount that are 0 before and after
  ADDRESS(byte) rounded;   // y in the form q8x16 as well, or 0
  ADDRESS(byte) halves;    // y as float16 as well, or 0
  // A backend with chains puts the address of the stage's cell over heads and kv_heads, which its kernels have as constants.
  uint heads, kv_heads, key_width, value_width;
  uint key_page_bytes, value_page_bytes, key_type, value_type;
  float scale, softcap;   // softcap 0: none
  uint window;            // positions seen, counting the token's own; 0: all
  uint value_stride;      // values from one position to the next in a page of values, at least value_width:
                          // more where the values are the beginning of the keys
};

// Attention of one token whose heads are as the matmuls have made them: queries and key are normed and rotated, key and
// value stored in their page. Fields as in AttentionBlock and RopeHeadsBlock.
struct AttentionHeadsBlock {
  ADDRESS(float) q;       // [heads][head_width]
  ADDRESS(float) k;       // [kv_heads][head_width]
  ADDRESS(float) v;       // likewise, or 0 where it is in its page already
  ADDRESS(float) y;
  ADDRESS(byte) keys;
  ADDRESS(byte) values;
  ADDRESS(byte) step;
  ADDRESS(byte) scratch;
  ADDRESS(uint) counters;
  ADDRESS(byte) rounded;
  ADDRESS(float) q_gain;  // [head_width], with kNormsAllHeads [heads][head_width]; or 0
  ADDRESS(float) k_gain;
  ADDRESS(float) table;
  uint heads, kv_heads;   // likewise under the stage's cell
  uint key_page_bytes, value_page_bytes;
  float scale;
  uint window;
};

// What more of it is fixed for a model: kernels have it as constants alone.
struct AttentionHeadsConstants {
  uint head_width, key_type, value_type;
  float softcap, epsilon;
  uint rope_width, rope_halves;
  uint norms;
};

#define kNormsNone 0
#define kNormsEachHead 1
#define kNormsAllHeads 2  // of a token together
// Values of the queries of a KV head, its key and its value that a group has room for.
#define kMaxHeadsMade 2304

#define kMaxSplitTokens 8
#define kMaxAttentionSplits 64
// Parts of a sequence that are worth it with so many KV heads: a group each, about 256 for a token.
#define attention_splits(kv_heads) ((kv_heads) <= 4 ? kMaxAttentionSplits : (kv_heads) >= 32 ? 8 : 256 / (kv_heads))
#define attention_scratch_bytes(tokens, heads, value_width) \
  ((tokens) * (heads) * kMaxAttentionSplits * ((value_width) + 4) * 4)

// By which the groups of a launch find out that they are the last: more than any launch needs.
#define kCounterCount 4096

#define kActivationSilu 0
#define kActivationGelu 1   // the tanh approximation
// g sigmoid(1.702 g) (u + 1), with g at most 7 and u within -7 .. 7: gpt-oss
#define kActivationClamped 2

struct GateBlock {  // y = activation(gate) * up
  ADDRESS(float) gate;  // [tokens][width]
  ADDRESS(float) up;
  ADDRESS(float) y;     // may be gate or up
  ADDRESS(byte) halves; // y as float16 as well, saturated, or 0
  ADDRESS(byte) step;
  uint width, activation;
};

struct AddBlock {  // y = a + scale * b
  ADDRESS(float) a;  // [tokens][width]
  ADDRESS(float) b;
  ADDRESS(float) y;  // may be a or b
  ADDRESS(byte) step;
  uint width;
  float scale;
};

#define kGatingSoftmax 0  // over all logits
#define kGatingSigmoid 1  // each logit by itself

// Chooses `used` experts of each token, the best first (ties: the lower index). An expert's weight is
// its probability by `gating`; it is chosen by probability + bias. With groups, only experts of the
// `groups_used` best groups are chosen from: a group is `experts` / `groups` neighbours and as good as its
// best expert, or with a bias as the sum of its two best. `normalise` divides the chosen weights by
// their sum; then all are multiplied by `scale`.
struct RouteBlock {
  ADDRESS(float) logits;   // [tokens][experts]
  ADDRESS(uint) ids;       // [tokens][used]
  ADDRESS(float) weights;  // [tokens][used]
  ADDRESS(byte) step;
  ADDRESS(float) bias;     // [experts] or 0
  uint experts, used, normalise, gating;
  uint groups, groups_used;  // groups at most kMaxExpertGroups; 1: no groups
  float scale;
};

#define kMaxExperts 1024
#define kMaxExpertGroups 64

// The same of one token, after the router's matmul and the norm before that: logits[e] = logit_bias[e] +
// weight[e] . norm(x). Group g makes logit g, the last one to finish the choice.
struct RouteMatmulBlock {
  ADDRESS(byte) weight;      // [experts][depth] float32
  ADDRESS(byte) x;           // [depth] float32
  ADDRESS(float) gain;       // [depth] or 0: no norm
  ADDRESS(float) logit_bias; // [experts] or 0
  ADDRESS(float) logits;     // as in RouteBlock, and all that follow but counters, depth and epsilon
  ADDRESS(uint) ids;
  ADDRESS(float) weights;
  ADDRESS(byte) step;
  ADDRESS(float) bias;
  ADDRESS(uint) counters;    // kCounterCount that are 0 before and after
  uint experts, used, normalise, gating;
  uint groups, groups_used;
  float scale;
  uint depth;
  float epsilon;
};

// y[t][j][n] = bias[e][n] + sum over k of weight[e][n][k] * x[t][j or 0][k], e = ids[t][j]; without ids
// e = j, which multiplies each head by its own matrix. Where the weights lie in parts, a launch for each makes y of its
// experts.
struct MatmulExpertBlock {
  ADDRESS(byte) weight;  // [experts][n][depth]: of experts first .. first + experts - 1
  ADDRESS(byte) x;       // [tokens][x_slots] of x_stride values, float32 or float16, x_slots 1 or used
  ADDRESS(uint) ids;     // [tokens][used] or 0
  ADDRESS(float) y;      // [tokens][used] of y_stride values
  ADDRESS(byte) step;
  ADDRESS(float) bias;   // [all experts][n] or 0
  uint n, depth, experts, used, x_slots, tile;
  uint x_stride, y_stride;
  uint first;
  uint tile_tokens;      // 0: a group makes rows of a slot, else of all slots of an expert, so many at once
};

// A matmul_expert whose x is rounded already: rows of y, or with weight2 activation(weight . x) * (weight2 . x), each
// after its bias. Group (i, slot) makes results i * kGroupResults .. of one slot of a token.
struct MatmulExpertRowBlock {
  ADDRESS(byte) weight;    // as in MatmulExpertBlock
  ADDRESS(byte) weight2;   // the `up` of a gate, or 0
  ADDRESS(byte) x;         // [tokens] of the form q8x16: [x_slots] of x_stride values each
  ADDRESS(uint) ids;       // [tokens][used] or 0
  ADDRESS(float) y;        // [tokens][used] of y_stride values
  ADDRESS(byte) rounded;   // y in the form q8x16 as well, a row for each token, or 0
  ADDRESS(byte) step;
  ADDRESS(float) bias;     // [all experts][n] or 0
  ADDRESS(float) bias2;
  uint n, depth, experts, used, x_slots, x_stride, y_stride;
  uint first;
  uint pairing;      // kPairingNone or kPairingGate
  uint activation;
  float epsilon;     // as in MatmulRowBlock; of x_slots 1
};

// The same followed by combine: y[t] = residual[t] + sum over j of weights[t][j] * (weight[e] . x[t][j] + bias[e]).
// Group (i, t) makes values i * kGroupResults .. of a token.
struct MatmulExpertSumBlock {
  ADDRESS(byte) weight;    // [experts][n][depth]
  ADDRESS(byte) x;         // [tokens] of the form q8x16: [used][depth] each
  ADDRESS(uint) ids;       // [tokens][used]
  ADDRESS(float) weights;  // [tokens][used]
  ADDRESS(float) y;        // [tokens][n]
  ADDRESS(byte) rounded;   // as in MatmulRowBlock, a row for each token
  ADDRESS(float) gain;
  ADDRESS(float) residual; // [tokens][n] or 0; may be y
  ADDRESS(byte) step;
  ADDRESS(float) bias;     // [experts][n] or 0
  uint n, depth, used, experts;
  uint threads;      // of a group
};

struct CombineBlock {  // y[t] = sum over j of weights[t][j] * x[t][j], in order of j
  ADDRESS(float) x;        // [tokens][used][width]
  ADDRESS(float) weights;  // [tokens][used]
  ADDRESS(float) y;        // [tokens][width]
  ADDRESS(byte) step;
  uint width, used;
};

// Changes the form of data, value for value. Activations: float32 rows to the form that a matmul row wants (step
// given; `gain` of a norm for q8x16, or 0). Weights: GGUF order to the kernel row's packed layout (step 0, `rows` given).
struct ConvertBlock {
  ADDRESS(byte) x;
  ADDRESS(byte) y;
  ADDRESS(byte) step;
  ADDRESS(float) gain;  // [depth]
  uint rows, depth, rows_of;
};

struct SoftcapBlock {  // y = cap * tanh(scale * x / cap); cap 0: y = scale * x
  ADDRESS(float) x;    // [rows][width]
  ADDRESS(float) y;    // [rows] of y_stride values, `width` at the start of each; may be x
  ADDRESS(byte) step;
  uint width;
  float cap, scale;
  uint rows_of;
  uint y_stride;
};

// Draws the next token of each output row into last_token of its sequence: penalties, top-k, top-p,
// min-p, temperature, then one Philox4x32-10 draw keyed by (seed, position). The row then is that of the token drawn, a
// position further, so that a step which goes on from it needs nothing from the host.
struct SampleBlock {
  ADDRESS(float) logits;    // [outputs][vocab]
  ADDRESS(byte) step;
  ADDRESS(uint) token_log;  // [pages][kPageTokens], for penalties
  ADDRESS(byte) scratch;    // [outputs] of sample_scratch_bytes(vocab), any contents
  ADDRESS(uint) counters;   // kCounterCount that are 0 before and after
  ADDRESS(uint) drawn;      // [kMaxStepSequences][position % kDrawnPositions]: as last_token, for the host
  uint vocab;
};

// y[i] = sum over j of x[i][j], modulo 2^32: nothing but reads, by which a device's bandwidth is measured.
struct SumBlock {
  ADDRESS(uint) x;  // [pieces][width], 16 bytes aligned
  ADDRESS(uint) y;  // [pieces]
  uint width;       // a multiple of 16
};

// y[i] = sum over rows m, tokens n and columns k of w[m][k] * x[n][k], `steps` times, modulo 2^32: nothing but products of
// operands in registers, by which a device's arithmetic is measured. w and x are what a row of the table tiles, m and n
// of it, as float16: whole numbers from 0 to 7, so that every form of arithmetic has the same sums while those in
// float32 are below 2^24.
struct ProductsBlock {
  ADDRESS(byte) operands;  // w[m][kProductsDepth], x[n][kProductsDepth], 16 bytes aligned
  ADDRESS(uint) y;         // [groups]
  uint steps;              // that the threads of a group share
};
#define kProductsDepth 32

// {float, uint} for each value; GPUs keep less for each, but more for the row.
#define sample_scratch_bytes(vocab) (((vocab) * 8 + 79) / 16 * 16)

#endif
