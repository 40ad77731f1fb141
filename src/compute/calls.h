// Makes calls: which operands an op takes stands here, once for the forward step, the planner and the
// self-test.
#pragma once
#include "compute/op.h"

namespace greta {

// Heads that are rotated or written: how many, and their values.
struct HeadsShape {
  uint32_t heads, width;
};

struct Rotation {
  Slice table;
  uint32_t width, halves;
};

// The pages of keys or of values.
struct PoolPages {
  Slice pool;
  uint32_t bytes, cache_type;
};

// What sample has beside its logits: the token log and working memory.
struct SampleMemory {
  Slice log, scratch;
};

// What a scan reads (kernels/abi/scan.h). Queries and keys are parts of the same rows. Only the delta rule
// has a strength, and only the other forms may have a skip. dt_bias and skip may be absent.
struct ScanInputs {
  Slice query, key, value, dt;
  Slice strength_or_skip;
  Slice a, dt_bias;
};

struct CallMaker {
  Slice step = {};      // the StepState of all calls
  Slice counters = {};  // of groups that share a result; absent where no kernel needs them

  // `vocab` is how many rows the whole table has, if `table` may be a part of it.
  Call embed(const Tensor& table, const Slice& y, const Slice& log = {}, float scale = 1,
             uint32_t vocab = 0) const {
    Call c = of(Op::Embed, {}, y);
    c.weight = table;
    c.slot[kLog] = log;
    c.embed = {.vocab = vocab, .scale = scale};
    return c;
  }
  Call norm(const Tensor& gain, const Slice& x, const Slice& y, float epsilon, uint32_t heads = 1) const {
    Call c = of(Op::Norm, x, y);
    c.weight = gain;
    c.width = gain.depth;
    c.norm = {heads, epsilon};
    return c;
  }
  // Subtracts the mean, too. `gain`, a row for each head, and `bias` may be absent.
  Call layer_norm(const Tensor& gain, const Slice& bias, const Slice& x, const Slice& y,
                  const HeadsShape& heads, float epsilon) const {
    Call c = of(Op::LayerNorm, x, y);
    c.weight = gain;
    c.slot[kBias] = bias;
    c.width = heads.width;
    c.norm = {heads.heads, epsilon};
    return c;
  }
  Call matmul(const Tensor& weight, const Slice& x, const Slice& y, const Slice& bias = {}) const {
    Call c = of(Op::Matmul, x, y);
    c.weight = weight;
    c.slot[kBias] = bias;
    c.slot[kCounters] = counters;
    return c;
  }
  // Slot j of x, or x itself where x has one slot, times the matrix of expert ids[j], or without ids of head
  // j.
  Call matmul_each(const Tensor& weight, const Slice& x, const Slice& ids, const Slice& y, uint32_t slots,
                   uint32_t x_slots) const {
    Call c = of(Op::MatmulExpert, x, y);
    c.weight = weight;
    c.slot[kX2] = ids;
    c.experts = {weight.count, slots};
    c.matmul_expert.x_slots = x_slots;
    return c;
  }
  Call rope(const Slice& x, const HeadsShape& of_x, const Rotation& rotation) const {
    Call c = of(Op::Rope, x, x);
    c.slot[kTable] = rotation.table;
    c.width = of_x.width;
    c.rope = {of_x.heads, rotation.width, rotation.halves};
    return c;
  }
  Call kv_write(const Slice& x, const HeadsShape& of_x, const PoolPages& to) const {
    Call c = of(Op::KvWrite, x, {});
    c.slot[kPool] = to.pool;
    c.width = of_x.width;
    c.kv_write = {of_x.heads, {to.bytes, to.cache_type}};
    return c;
  }
  // The pages of `shape` are those of `keys` and `values`.
  Call attention(const Slice& q, const Slice& y, const Call::Attention& shape, const PoolPages& keys,
                 const PoolPages& values, const Slice& scratch) const {
    Call c = of(Op::Attention, q, y);
    c.slot[kPool] = keys.pool;
    c.slot[kPool2] = values.pool;
    c.slot[kScratch] = scratch;
    if (scratch.buffer) c.slot[kCounters] = counters;
    c.attention = shape;
    c.attention.keys = {keys.bytes, keys.cache_type};
    c.attention.values = {values.bytes, values.cache_type};
    return c;
  }
  Call gate(const Slice& gate, const Slice& up, const Slice& y, uint32_t width, uint32_t activation) const {
    Call c = of(Op::Gate, gate, y);
    c.slot[kX2] = up;
    c.width = width;
    c.gate.activation = activation;
    return c;
  }
  // y = a + scale * b
  Call add(const Slice& a, const Slice& b, const Slice& y, uint32_t width, float scale = 1) const {
    Call c = of(Op::Add, a, y);
    c.slot[kX2] = b;
    c.width = width;
    c.add.scale = scale;
    return c;
  }
  // y = factor(x) * by, over heads of `width` values. With x as `by` it is an activation.
  Call multiply(const Slice& x, const Slice& by, const Slice& y, const HeadsShape& heads,
                uint32_t factor) const {
    Call c = of(Op::Multiply, x, y);
    c.slot[kX2] = by;
    c.width = heads.width;
    c.multiply = {.heads = heads.heads, .factor = factor};
    return c;
  }
  Call route(const Slice& logits, const Slice& ids, const Slice& weights, const Call::Experts& experts,
             const Call::Route& choice, const Slice& bias = {}) const {
    Call c = of(Op::Route, logits, ids);
    c.slot[kY2] = weights;
    c.slot[kBias] = bias;
    c.slot[kCounters] = counters;
    c.experts = experts;
    c.route = choice;
    return c;
  }
  Call combine(const Slice& x, const Slice& weights, const Slice& y, uint32_t width, uint32_t used) const {
    Call c = of(Op::Combine, x, y);
    c.slot[kX2] = weights;
    c.width = width;
    c.experts.used = used;
    return c;
  }
  // Rows of activations in the form that a product reads: `width` values each, times the gain if there is
  // one.
  Call convert(const Slice& x, const Slice& y, Form form, uint32_t width, const Tensor& gain = {}) const {
    Call c = of(Op::Convert, x, y);
    c.form = form;
    c.width = width;
    c.weight = gain;
    return c;
  }
  // One matrix in GGUF order to the layout of `to`.
  Call pack(const Slice& gguf, const Tensor& to) const {
    Call c = of(Op::Convert, gguf, to.slice);
    c.weight = to;
    return c;
  }
  // y = scales[e] * y + bias[e], where e is the expert of a slot; `width` values of y in all slots of a row.
  Call scale(const Slice& y, const Slice& scales, const Slice& bias, uint32_t width) const {
    Call c = of(Op::Scale, y, y);
    c.slot[kTable] = scales;
    c.slot[kBias] = bias;
    c.width = width;
    c.experts = {1, 1};
    return c;
  }
  Call scale_each(const Slice& y, const Slice& scales, const Slice& bias, uint32_t width, const Slice& ids,
                  const Call::Experts& experts) const {
    Call c = scale(y, scales, bias, width);
    c.slot[kX2] = ids;
    c.experts = experts;
    return c;
  }
  // y = cap * tanh(scale * x / cap) over rows of `width` values; without a cap y = scale * x.
  Call softcap(const Slice& x, const Slice& y, uint32_t width, float cap, float scale) const {
    Call c = of(Op::Softcap, x, y);
    c.width = width;
    c.softcap = {cap, scale};
    return c;
  }
  // Rows of `width` values in another type.
  Call cast(const Slice& x, const Slice& y, uint32_t width, const Call::Cast& types) const {
    Call c = of(Op::Cast, x, y);
    c.width = width;
    c.cast = types;
    return c;
  }
  // Rows of `width` values. `mask` and `sinks` may be absent.
  Call softmax(const Slice& x, const Slice& mask, const Slice& sinks, const Slice& y, uint32_t width,
               const Call::Softmax& shape) const {
    Call c = of(Op::Softmax, x, y);
    c.slot[kX2] = mask;
    c.slot[kTable] = sinks;
    c.width = width;
    c.softmax = shape;
    return c;
  }
  // `weight` is [channels][width], and `states` has room for those of all sequences.
  Call conv1d(const Slice& x, const Tensor& weight, const Slice& bias, bool silu, const Slice& y,
              const Slice& states, const Slice& runs) const {
    Call c = of(Op::Conv1d, x, y);
    c.weight = weight;
    c.slot[kBias] = bias;
    c.slot[kPool] = states;
    c.slot[kRuns] = runs;
    c.conv1d.silu = silu;
    return c;
  }
  Call scan(const ScanInputs& from, const Call::Scan& shape, const Slice& y, const Slice& states,
            const Slice& runs) const {
    Call c = of(Op::Scan, from.query, y);
    c.slot[kX2] = from.key;
    c.slot[kX3] = from.value;
    c.slot[kX4] = from.dt;
    c.slot[kX5] = from.strength_or_skip;
    c.slot[kTable] = from.a;
    c.slot[kBias] = from.dt_bias;
    c.slot[kPool] = states;
    c.slot[kRuns] = runs;
    c.scan = shape;
    return c;
  }
  Call sample(const Slice& logits, const Slice& drawn, uint32_t vocab, const SampleMemory& memory) const {
    Call c = of(Op::Sample, logits, drawn);
    c.slot[kLog] = memory.log;
    c.slot[kScratch] = memory.scratch;
    c.slot[kCounters] = counters;
    c.sample.vocab = vocab;
    return c;
  }
  // For each word of y, the sum of `width` words of x.
  Call sum(const Slice& x, const Slice& y, uint32_t width) const {
    Call c = of(Op::Sum, x, y);
    c.width = width;
    return c;
  }
  // For each word of y, `width` products of the operands.
  Call products(const Slice& operands, const Slice& y, uint32_t width) const {
    Call c = of(Op::Products, operands, y);
    c.width = width;
    return c;
  }
  // y = alpha * a . b + beta * y, of each matrix of a batch.
  Call gemm(const Slice& a, const Slice& b, const Slice& y, const Call::Gemm& shape) const {
    Call c = of(Op::Gemm, a, y);
    c.slot[kX2] = b;
    c.gemm = shape;
    return c;
  }

 private:
  Call of(Op op, const Slice& x, const Slice& y) const {
    Call call;
    call.op = op;
    call.slot[kX] = x;
    call.slot[kY] = y;
    call.slot[kStep] = step;
    return call;
  }
};

}  // namespace greta
