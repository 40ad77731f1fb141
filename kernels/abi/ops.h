// The argument blocks of all ops. Activations are float32 and row-major, unless a comment says otherwise. The
// letters t, n, k and h are the indices of a token, an output row, a column (of `depth`) and a head. `step`
// has the counts of live tokens and outputs: a launch has groups for a whole bucket, and those past the
// counts return at once. An address of 0 means that an optional operand is absent. `rounded` is y in the
// activation format q8x16 (kernels/abi/q8.h), for the product that follows.
#ifndef GRETA_ABI_OPS_H
#define GRETA_ABI_OPS_H
#include "kernels/abi/step_state.h"

// The rows that an op runs over (field `rows_of`).
#define kRowsTokens 0    // x row t -> y row t, t < token_count
#define kRowsGather 1    // x row output_row[i] -> y row i, i < output_count
#define kRowsOutputs 2   // x row i -> y row i, i < output_count

#define kMaxHeadWidth 1024  // widest head of attention and of matvec kernels with rope or kv_write
// The plain kernels multiply weights with more columns: a CPU worker's memory holds x in two formats.
#define kMaxRankedDepth 98304

// y[t] = scale * weight[token of t]. It also writes the token into its page of the log, where sample looks
// back. Where the table lies in several pieces, each piece has a launch, for the tokens whose rows it has.
struct EmbedBlock {
  ADDRESS(byte) weight;    // [rows][width] of tokens first .. first + rows - 1, in the kernel's type
  ADDRESS(float) y;        // [tokens][width]
  ADDRESS(byte) step;      // StepState
  ADDRESS(uint) token_log; // [pages][kPageTokens]
  ADDRESS(byte) rounded;     // y * next_gain in q8x16 as well, or 0; always 0 where the table lies in pieces
  ADDRESS(float) next_gain;  // [width] of the norm that follows, or 0
  uint width, vocab;
  float scale;
  uint first, rows;
};

// y[t][h] = x[t][h] / rms(x[t][h]) * gain, over heads of `width` values. With a residual there is one head,
// and y[t] = residual[t] + scale * x[t] / rms(x[t]) * gain.
struct NormBlock {
  ADDRESS(float) x;     // [rows] of x_stride values, [heads][width] at the start of each
  ADDRESS(float) gain;  // [width]
  ADDRESS(float) y;     // [rows] of y_stride values, likewise; may be x
  ADDRESS(byte) step;
  ADDRESS(float) residual;   // [rows][width] or 0; may be y
  ADDRESS(byte) rounded;     // y * next_gain in q8x16 as well, or 0
  ADDRESS(float) next_gain;  // [width] of the norm that follows, or 0
  ADDRESS(byte) halves;      // [rows][width], y as float16 as well, saturated, or 0; not with a residual
  uint width, heads;
  uint x_stride, y_stride;
  float epsilon, scale;
  uint rows_of;
};

// y[t][n] = sum over k of weight[n][k] * x[t][k], with optional ops fused around it.
// Group g makes rows g * tile .. of y for every live t. The op sequence in the kernel table says which ops
// may be fused. `bias` is added to the sum before anything else; a gate has none.
//   norm      x is normalised first (gain, epsilon)
//   rope      y is rotated by the position; tile is then the head width
//   kv_write  y is stored in the page pool only; tile is then the head width
//   add       residual[t][n] is added
//   matmul matmul gate   y = activation(weight . x) * (weight2 . x)
struct MatmulBlock {
  ADDRESS(byte) weight;    // [n][depth], type and layout of the kernel
  ADDRESS(byte) weight2;   // [n][depth], the `up` of gate, or 0
  ADDRESS(byte) x;         // [tokens][depth] in float32, float16 or the activation format q8
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

// A GEMM in tiles of y, with split-K. Group (i, j, k) makes tokens i * tile_tokens .. and rows j * tile .. of
// y over the k-th of `parts` ranges of the columns, which begin at multiples of kTileColumns. Where there are
// several ranges, the last group of a tile adds the partial sums, in the order of the columns.
struct MatmulTileBlock {
  ADDRESS(byte) weight;    // [n][depth]
  ADDRESS(byte) x;         // [tokens][depth] float16
  ADDRESS(float) y;        // [tokens][n]
  ADDRESS(byte) step;
  ADDRESS(float) residual; // [tokens][n] or 0; may be y
  ADDRESS(float) bias;     // [n] or 0
  ADDRESS(float) parts;    // partial sums [tiles][ranges][tile x tile_tokens]; 0 without split-K
  ADDRESS(uint) counters;  // one for each tile, 0 before and after
  uint n, depth, rows_of;
  uint tile, tile_tokens;
};

#define kTileColumns 256  // columns of the largest block of weights; a range is a multiple

// A matvec whose x is rounded already, with the ops of MatmulBlock fused around it. Group (i, g) makes
// results g * kGroupResults .. of the tokens from i * MatmulRows.tokens on. A result is a row of y, or a pair
// of rows that are rotated together (kPairing).
struct MatmulRowBlock {
  ADDRESS(byte) weight;    // [n][depth]
  ADDRESS(byte) weight2;   // the `up` of a gate, or 0
  ADDRESS(byte) x;         // [tokens][depth] in q8x16
  ADDRESS(float) y;        // [tokens][n]; with page_bytes the page pool of this layer, as in KvWriteBlock
  ADDRESS(byte) rounded;   // y * gain in q8x16 as well, or 0; always 0 with rope and kv_write
  ADDRESS(float) gain;     // [n] of the norm that follows, or 0
  ADDRESS(byte) step;
  ADDRESS(float) residual; // [tokens][n] or 0; may be y
  ADDRESS(float) rope;     // as in MatmulBlock
  ADDRESS(float) bias;     // [n] or 0
  ADDRESS(uint) chain;     // the stage's cell of the chain, which the backend sets (kernels/abi/chain.h)
  uint n, depth;
  uint pairing;      // what a result is: kPairing*
  uint threads;      // threads of a group
  float epsilon;     // of the norm whose factor x still lacks; negative: none
  uint rope_width, head_width, cache_type, page_bytes;
  uint activation;
};

struct MatmulRows {
  MatmulRowBlock block;
  uint tokens;       // tokens for which a group makes results; a constant of the kernel
};

// A matvec followed by a norm: y[t] = residual[t] + scale * norm(weight . x[t] + bias) * norm_gain. The last
// group of a token takes the norm.
struct MatmulNormBlock {
  ADDRESS(byte) weight;      // [n][depth]
  ADDRESS(byte) x;           // [tokens][depth] in q8x16; float32 for weights that are floats
  ADDRESS(float) product;    // [tokens][n], any contents; weight . x[t] + bias
  ADDRESS(float) norm_gain;  // [n]
  ADDRESS(float) residual;   // [tokens][n]; may be y
  ADDRESS(float) y;          // [tokens][n]
  ADDRESS(byte) rounded;     // as in MatmulRowBlock
  ADDRESS(float) gain;       // [n] of the norm that follows, or 0
  ADDRESS(byte) step;
  ADDRESS(float) bias;       // [n] or 0
  ADDRESS(uint) counters;    // [tokens], 0 before and after
  ADDRESS(uint) chain;
  uint n, depth;             // n is a multiple of 4
  uint threads;
  float epsilon, scale;
  uint tokens;               // as in MatmulRows
};

// A matvec whose weights and x are floats, over rows_of rows. Group (0, g) makes results g * kGroupResults ..
// of all tokens, one after the other.
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
  uint pairing;      // what a result is: kPairing*
  uint threads;      // threads of a group
  float epsilon;     // of the norm before; negative: none
  uint rope_width, head_width, cache_type, page_bytes;
  uint activation;
};

#define kGroupResults 16  // results of a group of a matvec kernel
#define kPairingNone 0    // a result is a row
#define kPairingGate 1    // a row of each of two weights
#define kPairingNext 2    // rows 2i and 2i + 1
#define kPairingHalves 3  // rows i and i + rope_width / 2 of a head

// The first rope_width values of each head are rotated by the position of the token; nothing else of y is
// written. Heads begin x_stride and y_stride values apart.
struct RopeBlock {
  ADDRESS(float) x;      // [tokens][heads] of x_stride values
  ADDRESS(float) y;      // [tokens][heads] of y_stride values; may be x
  ADDRESS(byte) step;
  ADDRESS(float) table;  // [context][rope_width / 2][cos, sin]
  uint heads, rope_width, rope_halves;
  uint x_stride, y_stride;
};

// Heads of queries or keys in one launch: each is normalised, its first rope_width values are rotated, and it
// is stored. Group (t, j) makes heads j * tile .. of token t.
struct RopeHeadsBlock {
  ADDRESS(float) x;      // [tokens][heads][head_width]
  ADDRESS(float) y;      // likewise, may be x; with page_bytes the page pool, as in KvWriteBlock
  ADDRESS(float) gain;   // [norm_width] or 0: no norm
  ADDRESS(byte) step;
  ADDRESS(float) table;  // as in RopeBlock
  uint heads, head_width, tile;
  uint norm_width;       // values that a norm takes together: of a head, or of all heads of a token
  float epsilon;
  uint rope_width, rope_halves;
  uint page_bytes, cache_type;
};

// Writes the keys or values of the step's tokens into their pages.
// A page is [heads][kPageTokens][head_width] of the cache type.
struct KvWriteBlock {
  ADDRESS(float) x;     // [tokens][heads][head_width]
  ADDRESS(byte) pool;   // [pages] x page_bytes: the keys or the values of one layer
  ADDRESS(byte) step;
  uint heads, head_width, page_bytes, cache_type;
};

// y[t][h] = softmax over s <= position(t) of (scale * q[t][h] . k[s]) times v[s]; query head h reads KV head
// h / (heads / kv_heads). Positions are taken in order, so the result's bits do not depend on the bucket.
struct AttentionBlock {
  ADDRESS(float) q;       // [tokens][heads][key_width]
  ADDRESS(float) y;       // [tokens][heads][value_width]
  ADDRESS(byte) keys;     // page pool of this layer
  ADDRESS(byte) values;
  ADDRESS(byte) step;
  ADDRESS(float) sinks;   // [heads] extra logits without a value, or 0
  // For kernels with a KV split, where several groups share the positions of a token and KV head.
  // attention_scratch_bytes() or attention_lone_scratch_bytes(), any contents; with shared prefixes
  // (kernels/abi/shared_prefix.h) also the partial results of these
  ADDRESS(byte) scratch;
  ADDRESS(uint) counters;  // [kCounterCount], 0 before and after
  ADDRESS(byte) rounded;   // y in q8x16 as well, or 0
  ADDRESS(byte) halves;    // y as float16 as well, or 0
  // A backend with chains replaces heads and kv_heads by the address of the stage's cell; its kernels have
  // both as constants.
  uint heads, kv_heads, key_width, value_width;
  uint key_page_bytes, value_page_bytes, key_type, value_type;
  float scale, softcap;   // softcap 0: none
  uint window;            // positions seen, counting the token's own; 0: all
  uint value_stride;      // values from one position to the next in a page of values: value_width, or
                          // more where the values are the beginning of the keys
};

// Attention whose heads are as the matmuls have made them: the kernel normalises and rotates queries and
// keys, and stores keys and values in their pages. There is one token, or each is the only one of its
// sequence. Fields are as in AttentionBlock and RopeHeadsBlock.
struct AttentionHeadsBlock {
  ADDRESS(float) q;       // [tokens][heads][head_width]
  ADDRESS(float) k;       // [tokens][kv_heads][head_width]
  ADDRESS(float) v;       // likewise, or 0 where it lies in its page already
  ADDRESS(float) y;
  ADDRESS(byte) keys;
  ADDRESS(byte) values;
  ADDRESS(byte) step;
  ADDRESS(byte) scratch;
  ADDRESS(uint) counters;
  ADDRESS(byte) rounded;  // y in q8x16 as well, or as float16 with AttentionHeadsConstants.halves; or 0
  ADDRESS(float) q_gain;  // [head_width], with kNormsAllHeads [heads][head_width]; or 0
  ADDRESS(float) k_gain;
  ADDRESS(float) table;
  uint heads, kv_heads;   // as in AttentionBlock, replaced by the stage's cell
  uint key_page_bytes, value_page_bytes;
  float scale;
  uint window;
};

// What else is fixed for a model. Kernels of Vulkan have it as specialization constants, not in the block.
struct AttentionHeadsConstants {
  uint head_width, key_type, value_type;
  float softcap, epsilon;
  uint rope_width, rope_halves;
  uint norms;
  uint halves;
};

struct AttentionHeads {
  AttentionHeadsBlock block;
  AttentionHeadsConstants constants;
};

// The norms of heads before attention; 0: none.
#define kNormsEachHead 1
#define kNormsAllHeads 2  // of a token together
// Shared memory of a group holds so many values: the queries of a KV head, its key and its value.
#define kMaxHeadsMade 2304

#define kMaxSplitTokens 8
#define kMaxAttentionSplits 64
// The most groups of a KV split, one for each range of positions: about 256 groups for all KV heads of a
// token.
#define attention_splits(kv_heads) \
  ((kv_heads) <= 4 ? kMaxAttentionSplits : (kv_heads) >= 32 ? 8 : 256 / (kv_heads))
#define attention_scratch_bytes(tokens, heads, value_width) \
  ((tokens) * (heads) * kMaxAttentionSplits * ((value_width) + 4) * 4)

// Attention of rows that are each the only one of their sequence: their pages are cut into ranges, at least
// one of each row and kLoneGroups / kv_heads more, so that about kLoneGroups groups share the work of a step.
#define kLoneGroups 1024
#define kMaxLoneSplits 128  // ranges of a row
#define attention_lone_ranges(tokens, kv_heads) \
  ((tokens) + ((kv_heads) < kLoneGroups ? kLoneGroups / (kv_heads) : 1))
#define attention_lone_scratch_bytes(tokens, heads, kv_heads, value_width) \
  (attention_lone_ranges(tokens, kv_heads) * (heads) * ((value_width) + 4) * 4)

// Counters by which a group finds out that it is the last of several; no launch needs more.
#define kCounterCount 16384

#define kActivationSilu 0
#define kActivationGelu 1   // the tanh approximation
// g sigmoid(1.702 g) (u + 1), with g clamped to 7 at most and u to -7 .. 7: gpt-oss
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

// Chooses `used` experts of each token, the best first (ties: the lower index). An expert's weight is its
// probability by `gating`; it is chosen by probability + bias. With groups, only experts of the `groups_used`
// best groups can be chosen. A group is `experts` / `groups` neighbours; its score is that of its best
// expert, or with a bias the sum of its two best. With `normalise`, the chosen weights are divided by their
// sum. Then they are multiplied by `scale`.
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

// Route of one token, with the router's matmul and the norm before that: logits[e] = logit_bias[e] +
// weight[e] . norm(x). Group e makes logit e; the last group chooses the experts.
struct RouteMatmulBlock {
  ADDRESS(byte) weight;      // [experts][depth] float32
  ADDRESS(byte) x;           // [depth] float32
  ADDRESS(float) gain;       // [depth] or 0: no norm
  ADDRESS(float) logit_bias; // [experts] or 0
  ADDRESS(float) logits;     // this and all that follow are as in RouteBlock, but counters, depth and epsilon
  ADDRESS(uint) ids;
  ADDRESS(float) weights;
  ADDRESS(byte) step;
  ADDRESS(float) bias;
  ADDRESS(uint) counters;    // [kCounterCount], 0 before and after
  uint experts, used, normalise, gating;
  uint groups, groups_used;
  float scale;
  uint depth;
  float epsilon;
};

// y[t][j][n] = bias[e][n] + sum over k of weight[e][n][k] * x[t][j or 0][k], e = ids[t][j]. Without ids e =
// j, which multiplies each head by its own matrix. Where the weights lie in several pieces, each piece has a
// launch, which makes y of its experts.
struct MatmulExpertBlock {
  ADDRESS(byte) weight;  // [experts][n][depth] of experts first .. first + experts - 1
  ADDRESS(byte) x;       // [tokens][x_slots] of x_stride values, float32 or float16, x_slots 1 or used
  ADDRESS(uint) ids;     // [tokens][used] or 0
  ADDRESS(float) y;      // [tokens][used] of y_stride values
  ADDRESS(byte) step;
  ADDRESS(float) bias;   // [all experts][n] or 0
  uint n, depth, experts, used, x_slots, tile;
  uint x_stride, y_stride;
  uint first;
  uint tile_tokens;      // 0: a group makes rows of one slot; else rows of so many slots of an expert at once
};

// A matvec with experts whose x is rounded already: y = weight . x + bias, or with weight2 y =
// activation(weight . x + bias) * (weight2 . x + bias2). Group (i, slot) makes results i * kGroupResults ..
// of one slot of a token.
struct MatmulExpertRowBlock {
  ADDRESS(byte) weight;    // as in MatmulExpertBlock
  ADDRESS(byte) weight2;   // the `up` of a gate, or 0
  ADDRESS(byte) x;         // [tokens] rows of q8x16, each [x_slots] of x_stride values
  ADDRESS(uint) ids;       // [tokens][used] or 0
  ADDRESS(float) y;        // [tokens][used] of y_stride values
  ADDRESS(byte) rounded;   // y in q8x16 as well, a row for each token, or 0
  ADDRESS(byte) step;
  ADDRESS(float) bias;     // [all experts][n] or 0
  ADDRESS(float) bias2;
  uint n, depth, experts, used, x_slots, x_stride, y_stride;
  uint first;
  uint pairing;      // kPairingNone or kPairingGate
  uint activation;
  float epsilon;     // as in MatmulRowBlock; negative where x_slots is not 1
};

// A matvec with experts, followed by combine:
//   y[t] = residual[t] + sum over j of weights[t][j] * (weight[e] . x[t][j] + bias[e]), e = ids[t][j]
// Group (i, t) makes values i * kGroupResults .. of a token.
struct MatmulExpertSumBlock {
  ADDRESS(byte) weight;    // [experts][n][depth]
  ADDRESS(byte) x;         // [tokens] rows of q8x16, each [used][depth]
  ADDRESS(uint) ids;       // [tokens][used]
  ADDRESS(float) weights;  // [tokens][used]
  ADDRESS(float) y;        // [tokens][n]
  ADDRESS(byte) rounded;   // as in MatmulRowBlock
  ADDRESS(float) gain;     // [n] of the norm that follows, or 0
  ADDRESS(float) residual; // [tokens][n] or 0; may be y
  ADDRESS(byte) step;
  ADDRESS(float) bias;     // [experts][n] or 0
  uint n, depth, used, experts;
  uint threads;      // threads of a group
};

struct CombineBlock {  // y[t] = sum over j of weights[t][j] * x[t][j], in order of j
  ADDRESS(float) x;        // [tokens][used][width]
  ADDRESS(float) weights;  // [tokens][used]
  ADDRESS(float) y;        // [tokens][width]
  ADDRESS(byte) step;
  uint width, used;
};

// Converts data, value for value. Activations (step is given): float32 rows to the activation format that a
// matmul kernel reads, for q8x16 times `gain`. Weights (step is 0, `rows` is given): GGUF order to the layout
// of the kernel.
struct ConvertBlock {
  ADDRESS(byte) x;
  ADDRESS(byte) y;
  ADDRESS(byte) step;
  ADDRESS(float) gain;  // [depth] of the norm that follows, or 0
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

// y[i][j] = scales[e] * y[i][j] + bias[e], for the expert e = ids[i][j] of a slot, or 0 without ids: what a
// file has beside a matrix, and the bias that then comes after it.
struct ScaleBlock {
  ADDRESS(float) y;       // [rows][slots][width / slots]
  ADDRESS(float) scales;  // [experts]
  ADDRESS(float) bias;    // [experts][width / slots] or 0
  ADDRESS(uint) ids;      // [rows][slots] or 0
  ADDRESS(byte) step;
  uint width, slots, experts;
  uint rows_of;
};

// Draws the next token of each output from first_drawn on: penalties, top-k, top-p, min-p, temperature, then
// one Philox4x32-10 draw keyed by (seed, position). The last draw of a sequence is its last_token too. Its
// row in StepState becomes that of the token drawn, one position further, so that the next step can go on
// without the host.
struct SampleBlock {
  ADDRESS(float) logits;    // [outputs][vocab]
  ADDRESS(byte) step;
  ADDRESS(uint) token_log;  // [pages][kPageTokens], for penalties
  ADDRESS(byte) scratch;    // [outputs] of sample_scratch_bytes(vocab), any contents
  ADDRESS(uint) counters;   // [kCounterCount], 0 before and after
  ADDRESS(uint) drawn;      // [kMaxStepSequences][position % kDrawnPositions]: the token drawn, for the host
  uint vocab;
};

// y[i] = sum over j of x[i][j], modulo 2^32. It does nothing but read, and measures a device's bandwidth.
struct SumBlock {
  ADDRESS(uint) x;  // [pieces][width], 16 bytes aligned
  ADDRESS(uint) y;  // [pieces]
  uint width;       // a multiple of 16
};

// y[i] = the sum over m, n and k of w[m][k] * x[n][k], `steps` times, modulo 2^32. It does nothing but
// multiply operands in registers, and measures a device's arithmetic. m and n are the two sizes of TILE in
// the kernel table. w and x are float16 and whole numbers from 0 to 7, so that all kernels have the same sums
// while sums in float32 stay below 2^24.
struct ProductsBlock {
  ADDRESS(byte) operands;  // w[m][kProductsDepth], x[n][kProductsDepth], 16 bytes aligned
  ADDRESS(uint) y;         // [groups]
  uint steps;              // repetitions, which the threads of a group share
};
#define kProductsDepth 32

// {float, uint} for each value of the vocabulary. GPUs need less for a value, and some bytes more for an
// output.
#define sample_scratch_bytes(vocab) (((vocab) * 8 + 79) / 16 * 16)

#endif
