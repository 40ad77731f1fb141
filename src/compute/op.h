// An op with its operands, before a kernel has been chosen for it.
//
// Calls are plain data: a forward step is a list of them, the planner fuses neighbours for which the
// kernel table has one row, and each op's file (ops/<op>.cpp) says how a call becomes a launch. What
// each operand means for an op stands in kernels/abi/ops.h, at the block with the same field names.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "compute/quant_type.h"
#include "kernels/abi/cast.h"
#include "kernels/abi/gemm.h"
#include "kernels/abi/layer_norm.h"
#include "kernels/abi/multiply.h"
#include "kernels/abi/ops.h"
#include "kernels/abi/q8.h"
#include "kernels/abi/scan.h"
#include "kernels/abi/shared_prefix.h"
#include "kernels/abi/softmax.h"
#include "runtime/runtime.h"

namespace greta {

enum class Op : uint8_t {
#define OP(name, Name) Name,
#include "compute/ops.def"
#undef OP
  count
};

const char* op_name(Op op);  // "kv_write"

// How a weight's bytes lie in device memory. Two must suffice for each type and backend.
enum class Layout : uint8_t {
  Gguf,    // as in the file: [n][depth / block] blocks
  Packed,  // tiles of kPackRows rows, interleaved for one vector load; the type's packed decode header says
           // how
  Planes,  // in each row quants first, then scales, for loads of 16 bytes: kernels/gpu/quant.h
};
const char* layout_name(Layout layout);  // "planes"
constexpr uint32_t kPackRows = 16;

// What form of x a matmul row reads: float32, those of kernels/abi/q8.h, or float16 values saturated to
// +-65504.
enum class Form : uint8_t { F32, Q8, Q8X16, F16 };

uint64_t form_row_bytes(Form form, uint64_t depth);  // of a row of activations

struct Tensor {
  QuantType type = QuantType::f32;
  Layout layout = Layout::Gguf;
  uint32_t n = 0, depth = 0;  // rows and columns; a vector has n = 1
  uint32_t count = 1;         // matrices one after the other (experts)
  Slice slice = {};
  // Of a tensor that one buffer cannot hold, whose slice is empty: in order, whole matrices or rows of each.
  const std::vector<Tensor>* parts = nullptr;
  bool operator==(const Tensor&) const = default;
};

// Bytes of `count` matrices [n][depth]; packed rows pad n to kPackRows, planes pad each row.
uint64_t tensor_bytes(QuantType type, Layout layout, uint64_t n, uint64_t depth, uint64_t count);

enum Slot : uint8_t {
  kX,         // main input
  kX2,        // second input: up of gate, b of add and gemm, by of multiply, weights of combine, keys of
              // scan; ids of matmul_expert and scale and the mask of softmax, which may be absent
  kX3,        // values of scan
  kX4,        // dt of scan
  kX5,        // strength or skip of scan, what goes with its values
  kY,         // output
  kY2,        // second output: weights of route
  kStep,      // StepState
  kPool,      // keys of attention, the pool of kv_write, the states of conv1d and scan
  kPool2,     // values of attention
  kTable,     // rope table, sinks of attention and softmax, scales, the decays of scan
  kBias,      // of matmul, matmul_expert, layer_norm, scale, conv1d, scan's dt and the choice of route
  kLog,       // token log
  kScratch,   // working memory of sample, attention and of matmul that is split
  kCounters,  // kCounterCount of uint that every launch leaves 0, or absent where no row wants them; the last
              // kRouterCounters are the router's
  kRuns,      // StepRuns
  kSlotCount
};

constexpr uint32_t kRouterCounters = 32;  // one for each token

// The pages of keys or of values in a pool (kernels/abi/ops.h, KvWriteBlock).
struct CachePages {
  uint32_t bytes = 0;  // from one page to the next
  uint32_t type = 0;   // index in kernels/abi/cache_types.def
  bool operator==(const CachePages&) const = default;
};

// Which rows of a step an attention runs over. `Lone` promises that each row is the only one of its sequence.
// Otherwise the step's first StepState.lone_count rows are such rows, and may have an attention of their own.
enum class AttentionRows : uint8_t { All, Lone, FirstLone, Others };

// What an attention does with the pages with which several sequences begin (kernels/abi/shared_prefix.h), if
// it knows them: Sums makes partial results of these pages for all rows that share them; Behind runs over the
// positions behind, and adds those results.
enum class Prefix : uint8_t { None, Sums, Behind };

// The constants of the activation xIELU (kernels/abi/multiply.h).
struct Xielu {
  float positive = 0, negative = 0, linear = 0;
  bool operator==(const Xielu&) const = default;
};

// An op, its operands, and what the op is told about them. Below the operands, each struct is what one op
// takes, in the order of ops.def; those of other ops keep their defaults.
struct Call {
  Op op = Op::Embed;
  Form form = Form::F32;          // of x for a product, of y for convert
  uint8_t rows_of = kRowsTokens;  // the rows that the op runs over: kRows*
  Tensor weight;                  // what a product or conv1d multiplies by; norm's gain: f32, n = 1,
                                  // or of layer_norm a row for each head
  Slice slot[kSlotCount];
  // Values of a row, or of a head for norm, rope and kv_write; what a group adds or multiplies for sum and
  // products. Attention and the products of matrices do not ask.
  uint32_t width = 0;
  // Values from one row to the next (norm, cast, softcap, softmax), from one head to the next (rope), or from
  // one slot to the next (matmul_expert); 0: they follow each other without gaps.
  uint32_t x_stride = 0, y_stride = 0;

  struct Embed {
    uint32_t vocab = 0;  // rows of the whole table; 0: as many as `weight` has
    uint32_t first = 0;  // the first row of `weight` among them
    float scale = 1;
    bool operator==(const Embed&) const = default;
  } embed;
  struct Norm {          // of norm and layer_norm
    uint32_t heads = 1;  // in a row, each normalised by itself
    float epsilon = 0;
    bool alone = false;  // the gain is all ones
    bool operator==(const Norm&) const = default;
  } norm;
  struct Matmul {
    uint32_t splits = 1;  // groups that share a tile of y, each over a range of the columns (split-K)
    bool operator==(const Matmul&) const = default;
  } matmul;
  struct Rope {
    uint32_t heads = 0;   // in a row
    uint32_t width = 0;   // rotated values at the start of each head
    uint32_t halves = 0;  // 0: pairs (2i, 2i+1); 1: pairs (i, i + width / 2)
    bool operator==(const Rope&) const = default;
  } rope;
  struct KvWrite {
    uint32_t heads = 0;  // in a row
    CachePages pages = {};
    bool operator==(const KvWrite&) const = default;
  } kv_write;
  struct Attention {
    uint32_t heads = 0, kv_heads = 0;         // of queries; of keys and of values
    uint32_t key_width = 0, value_width = 0;  // values of a head
    float scale = 1, softcap = 0;             // of the logits; softcap 0: none
    uint32_t window = 0;                      // positions that a query sees; 0: all
    uint32_t value_stride = 0;                // values between positions in a page of values; 0: value_width
    CachePages keys = {}, values = {};
    AttentionRows rows = AttentionRows::All;
    Prefix prefix = Prefix::None;
    bool operator==(const Attention&) const = default;
  } attention;
  struct Gate {
    uint32_t activation = 0;  // kActivation*
    bool operator==(const Gate&) const = default;
  } gate;
  struct Add {
    float scale = 1;  // of the second input
    bool operator==(const Add&) const = default;
  } add;
  struct Multiply {
    uint32_t heads = 0;      // in a row; x_stride is from one of them to the next
    uint32_t factor = 0;     // kFactor*
    uint32_t by_stride = 0;  // values from one head of the second input to the next; 0: no gaps
    bool each_head = false;  // the main input has one value for each head
    Xielu xielu = {};        // of kFactorXielu
    bool operator==(const Multiply&) const = default;
  } multiply;
  struct Experts {       // of route, matmul_expert, combine and scale
    uint32_t count = 0;  // experts of the model; combine does not ask
    uint32_t used = 0;   // of a token: its slots
    bool operator==(const Experts&) const = default;
  } experts;
  struct Route {
    uint32_t normalise = 0;                // 1: the weights of the chosen experts add up to `scale`
    uint32_t gating = 0;                   // kGating*
    uint32_t groups = 1, groups_used = 1;  // of experts: all, and those that may be chosen from
    float scale = 1;                       // of the weights
    bool operator==(const Route&) const = default;
  } route;
  struct MatmulExpert {
    uint32_t x_slots = 1;  // inputs of a token: 1, or one for each slot
    uint32_t first = 0;    // the expert of the first matrix of `weight`
    bool operator==(const MatmulExpert&) const = default;
  } matmul_expert;
  struct Softcap {
    float cap = 0, scale = 1;  // cap 0: none
    bool operator==(const Softcap&) const = default;
  } softcap;
  struct Cast {
    uint32_t from = kCastF32, to = kCastF32;  // kCast*
    bool operator==(const Cast&) const = default;
  } cast;
  struct Repeats {  // which of `count` things row r has: (r / every) % count
    uint32_t every = 1, count = 1;
    bool operator==(const Repeats&) const = default;
  };
  struct Softmax {
    uint32_t heads = 1;          // rows of x for each row of the step
    uint32_t rows = UINT32_MAX;  // of x, where they do not fill the heads of the last row of the step
    float scale = 1, cap = 0;    // cap 0: none
    bool logarithm = false;
    Repeats mask = {}, sinks = {};
    bool operator==(const Softmax&) const = default;
  } softmax;
  struct Conv1d {
    bool silu = false;          // of the result
    uint32_t state_stride = 0;  // values from one state to the next; 0: no gaps
    bool operator==(const Conv1d&) const = default;
  } conv1d;
  struct Scan {
    uint32_t form = kScanDelta;               // kScan*
    uint32_t heads = 0, groups = 0;           // of values; of keys and queries
    uint32_t key_width = 0, value_width = 0;  // values of a head
    // Values from one row to the next of queries and keys; of values; of dt and strength. And from one state
    // to the next. 0: they follow each other without gaps.
    uint32_t key_stride = 0, value_stride = 0, dt_stride = 0, state_stride = 0;
    float epsilon = -1;  // of the lengths of keys and queries; negative: they stay
    bool operator==(const Scan&) const = default;
  } scan;
  struct Sample {
    uint32_t vocab = 0;  // logits of a row
    bool operator==(const Sample&) const = default;
  } sample;
  struct Gemm {
    uint32_t m = 0, n = 0, k = 0, batch = 1;
    uint32_t type = kGemmF32, y_type = kGemmF32;        // of a and b; of y
    bool a_turned = false, b_turned = false;            // a is [k][m]; b is [n][k]
    uint32_t a_stride = 0, b_stride = 0, y_stride = 0;  // values from one row in memory to the next
    uint32_t a_batch = 0, b_batch = 0, y_batch = 0;     // from one matrix to the next; 0: all have the same
    float alpha = 1, beta = 0;
    bool operator==(const Gemm&) const = default;
  } gemm;
  bool operator==(const Call&) const = default;
};

// Values of the state that a sequence has in a conv1d or a scan: float32.
constexpr uint64_t conv_state_values(uint64_t channels, uint64_t width) { return (width - 1) * channels; }
constexpr uint64_t scan_state_values(uint64_t heads, uint64_t key_width, uint64_t value_width) {
  return heads * key_width * value_width;
}

struct Cost {
  uint64_t bytes = 0;  // that must move once: weights, cache, activations
  uint64_t flops = 0;
};

}  // namespace greta
