// What matmul_rows_normed and matmul_rows_float_normed make of the sums: y[t] = residual[t] + scale *
// norm(sums + bias). Each group leaves its results in p.product. The last group of a token normalises them
// all, which is shorter than a launch of its own. The argument block is a MatmulNormBlock. The kernel
// includes kernels/gpu/q8x16.h before.
#pragma once
#include "kernels/hip/group_ticket.h"
#include "kernels/hip/matvec/group.h"

struct NormedRows {
  const MatmulNormBlock& p;
  uint64_t row_bytes;
};
DEVICE uint64_t weights_of(const NormedRows& source, uint result, bool) {
  return (uint64_t)source.p.weight + result * source.row_bytes;
}

// The norm takes fours of values: each thread every p.threads-th four, and kFoursAtOnce of them at a time, so
// that their loads are under way together. The first of them stay in registers.
constexpr uint kFoursAtOnce = 2;

struct Fours {
  vec4 x[kFoursAtOnce], residual[kFoursAtOnce], norm_gain[kFoursAtOnce], gain[kFoursAtOnce];
};

DEVICE vec4 four(const GLOBAL float* values, uint at) { return load<vec4>(values + at * 4); }

// The index in the row of four `i` after the thread's four `first`. A thread past the end of the row repeats
// a four of the last 16 values: all lanes of a wave take part where they are rounded.
DEVICE uint four_at(const MatmulNormBlock& p, uint first, uint i) {
  const uint at = first + i * p.threads, count = p.n / 4;
  return at < count ? at : p.rounded ? count - 4 + at % 4 : count - 1;
}

DEVICE Fours load_fours(const MatmulNormBlock& p, uint t, uint first) {
  Fours f;
#pragma unroll
  for (uint i = 0; i < kFoursAtOnce; ++i) {
    const uint at = four_at(p, first, i), row = t * (p.n / 4);
    f.x[i] = four(p.product, row + at);
    f.residual[i] = four(p.residual, row + at);
    f.norm_gain[i] = four(p.norm_gain, at);
    f.gain[i] = p.gain ? four(p.gain, at) : vec4(1);
  }
  return f;
}

DEVICE float squares_of(const MatmulNormBlock& p, const Fours& f, uint first) {
  float sum = 0;
#pragma unroll
  for (uint i = 0; i < kFoursAtOnce; ++i)
    if (first + i * p.threads < p.n / 4) sum += dot(f.x[i], f.x[i]);
  return sum;
}

// The residual may be y. So y is stored where all lanes have loaded: behind the exchanges of the rounding.
DEVICE void store_fours(const MatmulNormBlock& p, const Fours& f, uint t, uint first, float factor) {
#pragma unroll
  for (uint i = 0; i < kFoursAtOnce; ++i) {
    const uint wave_first = first - lane() + i * p.threads, at = four_at(p, first, i), count = p.n / 4;
    if (wave_first >= count) break;
    const vec4 y = f.residual[i] + p.scale * (f.x[i] * factor * f.norm_gain[i]);
    const uint64_t rounded = (uint64_t)p.rounded + uint64_t(t) * q8x16_row_bytes(p.n);
    if (p.rounded) store_q8x16(rounded, p.n, at, y * f.gain[i], dot(y, y));
    if (wave_first + lane() < count) *(GLOBAL vec4*)(p.y + (t * count + at) * 4) = y;
  }
}

// Normalises and stores token t. All threads of the last group call it.
DEVICE void norm_row(const MatmulNormBlock& p, uint t) {
  const uint step = kFoursAtOnce * p.threads, count = p.n / 4, own = thread_x();
  const Fours f = load_fours(p, t, own);
  float sum = squares_of(p, f, own);
  for (uint first = step; first < count; first += step)
    sum += squares_of(p, load_fours(p, t, first + own), first + own);
  publish_squares(sum, wave_index());
  group_barrier();
  const float factor = norm_factor(p.threads / kWave, p.n, p.epsilon);
  store_fours(p, f, t, own, factor);
  for (uint first = step; first < count; first += step)
    store_fours(p, load_fours(p, t, first + own), t, first + own, factor);
}

// The first kGroupResults threads of a group finish a result each.
DEVICE bool finishes(const MatmulNormBlock& p, uint first) {
  return thread_x() < kGroupResults && first + thread_x() < p.n;
}
DEVICE float bias_of_thread(const MatmulNormBlock& p, uint first) {
  return finishes(p, first) && p.bias ? p.bias[first + thread_x()] : 0;
}

// Leaves the group's results; the last group of the token takes the norm. All threads call it, after a
// barrier behind make_sums().
DEVICE void finish(const MatmulNormBlock& p, const Share& share, uint t, uint first, float bias) {
  if (finishes(p, first))
    p.product[t * p.n + first + thread_x()] = sums_of_result(share, thread_x()).x + bias;
  if (is_last_group(p.counters, t, (p.n + kGroupResults - 1) / kGroupResults)) norm_row(p, t);
}
