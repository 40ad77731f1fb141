// Makes calls: which operands an op takes stands here, once for the forward step, the planner and the
// self-test.
#pragma once
#include "compute/op.h"

namespace greta {

inline Call make_call(Op op, const Slice& x, const Slice& y, const Slice& step) {
  Call call;
  call.op = op;
  call.slot[kX] = x;
  call.slot[kY] = y;
  call.slot[kStep] = step;
  return call;
}

// Heads that are rotated or written: how many, and their values.
struct HeadsShape {
  uint32_t heads, width;
};

struct Rotation {
  Slice table;
  uint32_t width, halves;
};

struct AttentionShape {
  uint32_t heads, kv_heads, key_width, value_width;
  float scale, softcap;
  uint32_t window;  // positions that a query sees; 0: all
};

// The pages of keys or of values.
struct PoolPages {
  Slice pool;
  uint32_t bytes, cache_type;
};

// Rows of activations in the form that a product reads: `width` values each, times the gain if there is one.
inline Call make_convert(const Slice& x, const Slice& y, const Slice& step, Form form, uint32_t width,
                         const Tensor& gain = {}) {
  Call c = make_call(Op::Convert, x, y, step);
  c.form = form;
  c.width = width;
  c.weight = gain;
  return c;
}

struct CallMaker {
  Slice step;           // the StepState of all calls
  Slice counters = {};  // of groups that share a result; absent where no kernel needs them

  Call of(Op op, const Slice& x, const Slice& y) const { return make_call(op, x, y, step); }

  Call norm(const Tensor& gain, const Slice& x, const Slice& y, float epsilon, uint32_t heads = 1) const {
    Call c = of(Op::Norm, x, y);
    c.weight = gain;
    c.width = gain.depth;
    c.heads = heads;
    c.epsilon = epsilon;
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
    c.experts = weight.count;
    c.used = slots;
    c.x_slots = x_slots;
    return c;
  }
  Call rope(const Slice& x, const HeadsShape& of_x, const Rotation& rotation) const {
    Call c = of(Op::Rope, x, x);
    c.slot[kTable] = rotation.table;
    c.heads = of_x.heads;
    c.width = of_x.width;
    c.rope_width = rotation.width;
    c.rope_halves = rotation.halves;
    return c;
  }
  Call kv_write(const Slice& x, const HeadsShape& of_x, const PoolPages& to) const {
    Call c = of(Op::KvWrite, x, {});
    c.slot[kPool] = to.pool;
    c.heads = of_x.heads;
    c.width = of_x.width;
    c.page_bytes = to.bytes;
    c.cache_type = to.cache_type;
    return c;
  }
  Call gate(const Slice& gate, const Slice& up, const Slice& y, uint32_t width, uint32_t activation) const {
    Call c = of(Op::Gate, gate, y);
    c.slot[kX2] = up;
    c.width = width;
    c.activation = activation;
    return c;
  }
  // y = a + scale * b
  Call add(const Slice& a, const Slice& b, const Slice& y, uint32_t width, float scale = 1) const {
    Call c = of(Op::Add, a, y);
    c.slot[kX2] = b;
    c.width = width;
    c.scale = scale;
    return c;
  }
  Call attention(const Slice& q, const Slice& y, const AttentionShape& shape, const PoolPages& keys,
                 const PoolPages& values, const Slice& scratch) const {
    Call c = of(Op::Attention, q, y);
    c.slot[kPool] = keys.pool;
    c.slot[kPool2] = values.pool;
    c.slot[kScratch] = scratch;
    if (scratch.buffer) c.slot[kCounters] = counters;
    c.heads = shape.heads;
    c.kv_heads = shape.kv_heads;
    c.width = shape.key_width;
    c.value_width = shape.value_width;
    c.page_bytes = keys.bytes;
    c.value_page_bytes = values.bytes;
    c.cache_type = keys.cache_type;
    c.value_cache_type = values.cache_type;
    c.scale = shape.scale;
    c.softcap = shape.softcap;
    c.window = shape.window;
    return c;
  }
  Call combine(const Slice& x, const Slice& weights, const Slice& y, uint32_t width, uint32_t used) const {
    Call c = of(Op::Combine, x, y);
    c.slot[kX2] = weights;
    c.width = width;
    c.used = used;
    return c;
  }
};

}  // namespace greta
