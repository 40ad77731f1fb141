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
#include "kernels/abi/ops.h"
#include "kernels/abi/q8.h"
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
  Planes,  // in each row quants first, then scales, for loads of 16 bytes: kernels/vulkan/quant.h
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
  Slice slice;
  // Of a tensor that one buffer cannot hold, whose slice is empty: in order, whole matrices or rows of each.
  const std::vector<Tensor>* parts = nullptr;
  bool operator==(const Tensor&) const = default;
};

// Bytes of `count` matrices [n][depth]; packed rows pad n to kPackRows, planes pad each row.
uint64_t tensor_bytes(QuantType type, Layout layout, uint64_t n, uint64_t depth, uint64_t count);

enum Slot : uint8_t {
  kX,         // main input
  kX2,        // second input: up of gate, b of add, weights of combine, ids of matmul_expert (may be absent)
  kY,         // output
  kY2,        // second output: weights of route
  kStep,      // StepState
  kPool,      // keys of attention, the pool of kv_write
  kPool2,     // values of attention
  kTable,     // rope table, sinks
  kBias,      // of matmul, matmul_expert and the choice of route
  kLog,       // token log
  kScratch,   // working memory of sample, attention and of matmul that is split
  kCounters,  // kCounterCount of uint that every launch leaves 0, or absent where no row wants them
  kSlotCount
};

struct Call {
  Op op = Op::Embed;
  Form form = Form::F32;  // matmul: of x; convert: of y
  uint8_t rows_of = kRowsTokens;
  Tensor weight;  // also norm's gain: f32, n = 1
  Slice slot[kSlotCount];
  uint32_t heads = 0, kv_heads = 0;     // norm: groups in a row
  uint32_t width = 0, value_width = 0;  // of a head, or of a row for row-wise ops
  // Values between rows (norm, softcap: y_stride), heads (rope), slots (matmul_expert), positions of a page's
  // values (attention: y_stride); 0: they follow each other without gaps.
  uint32_t x_stride = 0, y_stride = 0;
  uint32_t rope_width = 0, rope_halves = 0;
  uint32_t page_bytes = 0, value_page_bytes = 0, cache_type = 0, value_cache_type = 0;
  uint32_t window = 0, activation = 0;
  uint32_t experts = 0, used = 0, x_slots = 1, normalise = 0, gating = 0, groups = 1, groups_used = 1;
  uint32_t vocab = 0;
  uint32_t splits = 1;  // of matmul: groups that share a tile of y, each over a part of the columns
  uint32_t first =
      0;  // of the weight's rows among `vocab` (embed), of its matrices among `experts` (matmul_expert)
  float epsilon = 0, scale = 1, softcap = 0;
  bool operator==(const Call&) const = default;
};

struct Cost {
  uint64_t bytes = 0;  // that must move once: weights, cache, activations
  uint64_t flops = 0;
};

}  // namespace greta
