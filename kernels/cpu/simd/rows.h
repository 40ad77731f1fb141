// The frame of the decode kernels (matmul_rows): few tokens, weights read once in the order they lie.
// A worker normalises and quantises x into its scratch once, then makes its groups of output rows.
//
// `Rows` is how a type multiplies:
//   token_bytes(depth)                     scratch for the form that x gets
//   prepare(x, depth, slot)                x in that form
//   multiply<T>(weight, n, first, count, depth, slots, out, stride)
//                                          out[t * stride + i] = W[first + i] . x[t], for T tokens
//   kManyFrom, multiply_many(weight, n, first, count, depth, slots, tokens, out, stride)
//                                          the same for kManyFrom, 2 or 5, to kBatch tokens; where a type has
//                                          none, they are taken kRowTokens at a time
// Every output is summed by itself in one order, so the bits do not depend on tiles, threads or the other
// tokens; of these only the number matters, whether it reaches kManyFrom.
#pragma once
#include "kernels/cpu/math.h"
#include "kernels/cpu/row_math.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/gate.h"

namespace {

constexpr uint32_t kBatch = 8;      // tokens whose form is held at once
constexpr uint32_t kRowTokens = 4;  // tokens that share an unpacked weight, but for multiply_many
constexpr uint32_t kRowTile = 32;   // output rows held at once, where no head asks for more

// Tokens first .. first + count - 1 of the step, each in the form of Rows.
struct Batch {
  uint32_t first, count;
  const uint8_t* slot[kBatch];
};

template <class Rows>
void prepare_batch(const MatmulBlock& b, const StepState* step, uint64_t slot_bytes, float* normed,
                   uint8_t* slots, Batch* batch) {
  for (uint32_t t = 0; t < batch->count; ++t) {
    const float* x = (const float*)b.x + uint64_t(source_row(step, b.rows_of, batch->first + t)) * b.depth;
    if (b.gain) {
      norm_apply(x, (const float*)b.gain, norm_factor(x, b.depth, b.epsilon), b.depth, normed);
      x = normed;
    }
    uint8_t* slot = slots + t * slot_bytes;
    Rows::prepare(x, b.depth, slot);
    batch->slot[t] = slot;
  }
}

inline void add_bias(const MatmulBlock& b, uint32_t first, uint32_t count, uint32_t tokens, float* out,
                     uint32_t stride) {
  if (!b.bias) return;
  const float* bias = (const float*)b.bias + first;
  for (uint32_t t = 0; t < tokens; ++t)
    for (uint32_t r = 0; r < count; ++r) out[t * stride + r] += bias[r];
}

// From so many tokens on multiply_many takes them.
template <class Rows>
constexpr uint32_t many_from() {
  if constexpr (requires { Rows::kManyFrom; })
    return Rows::kManyFrom;
  else
    return kBatch + 1;
}

template <class Rows>
constexpr uint32_t kTokensTogether = many_from<Rows>() <= kBatch ? kBatch : kRowTokens;

// Rows first .. first + count - 1 of one matrix for `tokens` tokens, at most kTokensTogether.
template <class Rows>
[[gnu::noinline]] void multiply(const uint8_t* weight, uint32_t n, uint32_t first, uint32_t count,
                                uint32_t depth, const uint8_t* const* slots, uint32_t tokens, float* out,
                                uint32_t stride) {
  static_assert(kRowTokens == 4, "one case for each count");
  constexpr uint32_t many = many_from<Rows>();
  if constexpr (many <= kBatch)
    if (tokens >= many)
      return Rows::multiply_many(weight, n, first, count, depth, slots, tokens, out, stride);
  if (tokens == 1) return Rows::template multiply<1>(weight, n, first, count, depth, slots, out, stride);
  if constexpr (many > 2)
    if (tokens == 2) return Rows::template multiply<2>(weight, n, first, count, depth, slots, out, stride);
  if constexpr (many > 3) {
    if (tokens == 3) return Rows::template multiply<3>(weight, n, first, count, depth, slots, out, stride);
    Rows::template multiply<4>(weight, n, first, count, depth, slots, out, stride);
  }
}

// Rows first .. first + count - 1 of y for `tokens` tokens from `t`.
template <class Rows>
void finish_rows(const MatmulBlock& b, const Batch& batch, uint32_t t, uint32_t tokens, uint32_t first,
                 uint32_t count) {
  alignas(64) float out[kTokensTogether<Rows>][kRowTile], up[kTokensTogether<Rows>][kRowTile];
  const auto times = [&](uint64_t weight, float* to) {
    multiply<Rows>((const uint8_t*)weight, b.n, first, count, b.depth, batch.slot + t, tokens, to, kRowTile);
  };
  times(b.weight, out[0]);
  add_bias(b, first, count, tokens, out[0], kRowTile);
  if (b.weight2) times(b.weight2, up[0]);
  for (uint32_t i = 0; i < tokens; ++i) {
    const uint64_t at = uint64_t(batch.first + t + i) * b.n + first;
    float* y = (float*)b.y + at;
    if (b.weight2) gate_row(b.activation, out[i], up[i], count, out[i]);
    if (b.residual) {
      const float* residual = (const float*)b.residual + at;
      for (uint32_t r = 0; r < count; ++r) y[r] = residual[r] + out[i][r];
    } else {
      __builtin_memcpy(y, out[i], count * sizeof(float));
    }
  }
}

// One head of y for `tokens` tokens: rotated, then to y or into the tokens' pages.
template <class Rows>
void finish_head(const MatmulBlock& b, const StepState* step, const Batch& batch, uint32_t t, uint32_t tokens,
                 uint32_t head) {
  alignas(64) float out[kTokensTogether<Rows>][kMaxHeadWidth];
  const uint8_t* weight = (const uint8_t*)b.weight;
  multiply<Rows>(weight, b.n, head * b.tile, b.tile, b.depth, batch.slot + t, tokens, out[0], kMaxHeadWidth);
  add_bias(b, head * b.tile, b.tile, tokens, out[0], kMaxHeadWidth);
  for (uint32_t i = 0; i < tokens; ++i) {
    const uint32_t token = batch.first + t + i;
    const StepRow& row = step->row[token];
    if (b.rope)
      rope_head(rope_row(b.rope, row.position, b.rope_width), b.rope_width, b.rope_halves, out[i], out[i]);
    if (b.pool)
      write_head(step, row, b.pool, b.page_bytes, b.cache_type, head, out[i], b.tile);
    else
      __builtin_memcpy((float*)b.y + uint64_t(token) * b.n + uint64_t(head) * b.tile, out[i],
                       b.tile * sizeof(float));
  }
}

template <class Rows>
void finish_group(const MatmulBlock& b, const StepState* step, const Batch& batch, uint32_t group) {
  constexpr uint32_t most = kTokensTogether<Rows>;
  for (uint32_t t = 0; t < batch.count; t += most) {
    const uint32_t tokens = batch.count - t < most ? batch.count - t : most;
    if (b.rope || b.pool) {
      finish_head<Rows>(b, step, batch, t, tokens, group);
      continue;
    }
    const uint32_t end = b.n - group * b.tile < b.tile ? b.n : (group + 1) * b.tile;
    for (uint32_t n = group * b.tile; n < end; n += kRowTile)
      finish_rows<Rows>(b, batch, t, tokens, n, end - n < kRowTile ? end - n : kRowTile);
  }
}

template <class Rows>
void matmul_rows(const MatmulBlock& b, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, b.rows_of);
  const uint64_t normed_bytes = (uint64_t(b.depth) * sizeof(float) + 63) / 64 * 64;
  const uint64_t slot_bytes = (Rows::token_bytes(b.depth) + 63) / 64 * 64;
  if (scratch->bytes < normed_bytes + slot_bytes) return;
  const uint64_t held = (scratch->bytes - normed_bytes) / slot_bytes;
  const uint32_t most = held < kBatch ? uint32_t(held) : kBatch;
  for (uint32_t first = 0; first < live; first += most) {
    Batch batch;
    batch.first = first;
    batch.count = live - first < most ? live - first : most;
    prepare_batch<Rows>(b, step, slot_bytes, (float*)scratch->data, scratch->data + normed_bytes, &batch);
    for (uint32_t g = first_group; g < first_group + group_count; ++g) finish_group<Rows>(b, step, batch, g);
  }
}

}  // namespace
