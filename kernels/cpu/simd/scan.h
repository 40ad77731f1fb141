// scan with the vectors of the instruction set it is compiled for, whose lanes are values of a head. Several
// rows of a run are done in one pass over the state, a chunk. With k, q, v of row r, the decay from row s to
// row r d(r, s), that from the state before the chunk d(r), and the change u of a row:
//   pass 1    S k_r and S q_r of all rows
//   between   u_r = strength (v_r - d(r) S k_r - sum over s < r of d(r, s) (k_s k_r) u_s), or u_r = rate v_r
//             y_r = d(r) S q_r + sum over s <= r of d(r, s) (k_s q_r) u_s
//   pass 2    S = d(last) S + sum over r of d(last, r) u_r k_r
// All decays are products of those of single rows, so none is divided by one that has become 0.
#pragma once
#include <immintrin.h>

#include "kernels/cpu/scan/parts.h"
#include "kernels/cpu/scan/rates.h"

namespace {

#ifdef __AVX512F__
typedef __m512 ScanVector;
constexpr uint32_t kVector = 16;
constexpr uint32_t kChunk = 8;  // rows, each with two sums in registers
inline ScanVector load(const float* x) { return _mm512_loadu_ps(x); }
inline void store(float* x, ScanVector v) { _mm512_storeu_ps(x, v); }
inline ScanVector spread(float x) { return _mm512_set1_ps(x); }
inline ScanVector mul_add(ScanVector a, ScanVector b, ScanVector c) { return _mm512_fmadd_ps(a, b, c); }
inline float total(ScanVector v) { return _mm512_reduce_add_ps(v); }
#else
typedef __m256 ScanVector;
constexpr uint32_t kVector = 8;
constexpr uint32_t kChunk = 4;
inline ScanVector load(const float* x) { return _mm256_loadu_ps(x); }
inline void store(float* x, ScanVector v) { _mm256_storeu_ps(x, v); }
inline ScanVector spread(float x) { return _mm256_set1_ps(x); }
inline ScanVector mul_add(ScanVector a, ScanVector b, ScanVector c) { return _mm256_fmadd_ps(a, b, c); }
inline float total(ScanVector v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
#endif

constexpr uint32_t kScanTile = 64;  // columns of a group, as in kernels/cpu/CMakeLists.txt

inline float lanes_dot(const float* a, const float* b, uint32_t width) {
  ScanVector sum = spread(0);
  uint32_t j = 0;
  for (; j + kVector <= width; j += kVector) sum = mul_add(load(a + j), load(b + j), sum);
  float all = total(sum);
  for (; j < width; ++j) all += a[j] * b[j];
  return all;
}

// Rows of a head, keys and queries divided by their lengths.
struct Chunk {
  alignas(64) float key[kChunk][kMaxScanKeys], query[kChunk][kMaxScanKeys];
  float rate[kChunk], strength[kChunk];
  float decay[kChunk];              // d(r)
  float to_last[kChunk];            // d(last, r)
  float change_of[kChunk][kChunk];  // [r][s]: d(r, s) (k_s k_r)
  float y_of[kChunk][kChunk];       // [r][s]: d(r, s) (k_s q_r)
};

inline void scaled(const float* x, uint32_t width, float epsilon, float factor, float* y) {
  if (epsilon >= 0) factor /= __builtin_sqrtf(lanes_dot(x, x, width) + epsilon);
  for (uint32_t j = 0; j < width; ++j) y[j] = x[j] * factor;
}

template <uint32_t kForm>
inline void make_chunk(const ScanBlock& b, uint32_t first, uint32_t rows, uint32_t h, Chunk* c) {
  const uint32_t width = b.key_width;
  const float query_factor = kForm == kScanDelta ? 1.f / __builtin_sqrtf(float(width)) : 1.f;
  float decay[kChunk];
  for (uint32_t r = 0; r < rows; ++r) {
    const uint64_t dt_at = uint64_t(first + r) * b.dt_stride + h;
    const float bias = b.dt_bias ? ((const float*)b.dt_bias)[h] : 0.f;
    scaled(key_of(b, first + r, h), width, b.epsilon, 1, c->key[r]);
    scaled(query_of(b, first + r, h), width, b.epsilon, query_factor, c->query[r]);
    c->rate[r] = softplus_f32(((const float*)b.dt)[dt_at] + bias);
    decay[r] = exp_f32(((const float*)b.a)[h] * c->rate[r]);
    c->decay[r] = r ? c->decay[r - 1] * decay[r] : decay[r];
    if (kForm == kScanDelta) c->strength[r] = sigmoid_f32(((const float*)b.with_value)[dt_at]);
  }
  for (uint32_t s = 0; s < rows; ++s) {
    float from_s = 1;
    for (uint32_t r = s; r < rows; ++r) {
      if (r > s) from_s *= decay[r];
      if (kForm == kScanDelta && r > s) c->change_of[r][s] = from_s * lanes_dot(c->key[s], c->key[r], width);
      c->y_of[r][s] = from_s * lanes_dot(c->key[s], c->query[r], width);
    }
    c->to_last[s] = from_s;
  }
}

// kRows rows of kVector columns of a head. value, y and s have their own distances from row to row.
template <uint32_t kForm, uint32_t kRows>
inline void step_vector(const Chunk& c, uint32_t width, float skip, const float* value, uint64_t value_stride,
                        float* s, uint64_t s_stride, float* y, uint64_t y_stride) {
  ScanVector of_key[kRows], of_query[kRows], change[kRows];
  for (uint32_t r = 0; r < kRows; ++r) of_key[r] = of_query[r] = spread(0);
  for (uint32_t j = 0; j < width; ++j) {
    const ScanVector state = load(s + j * s_stride);
    for (uint32_t r = 0; r < kRows; ++r) {
      if (kForm == kScanDelta) of_key[r] = mul_add(state, spread(c.key[r][j]), of_key[r]);
      of_query[r] = mul_add(state, spread(c.query[r][j]), of_query[r]);
    }
  }
  for (uint32_t r = 0; r < kRows; ++r) {
    const ScanVector v = load(value + r * value_stride);
    if (kForm == kScanDelta) {
      ScanVector known = of_key[r] * spread(c.decay[r]);
      for (uint32_t i = 0; i < r; ++i) known = mul_add(spread(c.change_of[r][i]), change[i], known);
      change[r] = spread(c.strength[r]) * (v - known);
    } else {
      change[r] = spread(c.rate[r]) * v;
    }
    ScanVector sum = mul_add(of_query[r], spread(c.decay[r]), spread(skip) * v);
    for (uint32_t i = 0; i <= r; ++i) sum = mul_add(spread(c.y_of[r][i]), change[i], sum);
    store(y + r * y_stride, sum);
  }
  const ScanVector decay = spread(c.decay[kRows - 1]);
  for (uint32_t r = 0; r < kRows; ++r) change[r] = change[r] * spread(c.to_last[r]);
  for (uint32_t j = 0; j < width; ++j) {
    ScanVector state = load(s + j * s_stride) * decay;
    for (uint32_t r = 0; r < kRows; ++r) state = mul_add(change[r], spread(c.key[r][j]), state);
    store(s + j * s_stride, state);
  }
}

// The same for fewer columns than a vector has, through copies.
template <uint32_t kForm, uint32_t kRows>
inline void step_rest(const Chunk& c, uint32_t width, float skip, const float* value, uint64_t value_stride,
                      float* s, uint64_t s_stride, float* y, uint64_t y_stride, uint32_t count) {
  float state[kMaxScanKeys * kVector] = {}, from[kRows * kVector] = {}, to[kRows * kVector];
  for (uint32_t j = 0; j < width; ++j) __builtin_memcpy(state + j * kVector, s + j * s_stride, count * 4);
  for (uint32_t r = 0; r < kRows; ++r)
    __builtin_memcpy(from + r * kVector, value + r * value_stride, count * 4);
  step_vector<kForm, kRows>(c, width, skip, from, kVector, state, kVector, to, kVector);
  for (uint32_t j = 0; j < width; ++j) __builtin_memcpy(s + j * s_stride, state + j * kVector, count * 4);
  for (uint32_t r = 0; r < kRows; ++r) __builtin_memcpy(y + r * y_stride, to + r * kVector, count * 4);
}

template <uint32_t kForm, uint32_t kRows>
inline uint32_t step_part(const ScanBlock& b, const ScanPart& part, uint32_t t, Chunk* c) {
  make_chunk<kForm>(b, t, kRows, part.head, c);
  const uint64_t y_stride = uint64_t(b.heads) * b.value_width;
  const float* value = (const float*)b.value + uint64_t(t) * b.value_stride + part.column;
  float* y = (float*)b.y + t * y_stride + part.column;
  const float skip = skip_of(b, part.head);
  uint32_t i = 0;
  for (; i + kVector <= part.count; i += kVector)
    step_vector<kForm, kRows>(*c, b.key_width, skip, value + i, b.value_stride, part.state + i, b.value_width,
                              y + i, y_stride);
  if (i < part.count)
    step_rest<kForm, kRows>(*c, b.key_width, skip, value + i, b.value_stride, part.state + i, b.value_width,
                            y + i, y_stride, part.count - i);
  return kRows;
}

template <uint32_t kForm>
inline void scan_part(const ScanBlock& b, const ScanPart& part) {
  Chunk chunk;
  for (uint32_t i = 0; i < part.run.count;) {
    const uint32_t left = part.run.count - i, t = part.run.first + i;
    i += left >= kChunk ? step_part<kForm, kChunk>(b, part, t, &chunk)
         : left >= 2    ? step_part<kForm, 2>(b, part, t, &chunk)
                        : step_part<kForm, 1>(b, part, t, &chunk);
  }
}

// One channel in one row: kSelectiveLanes values of its state at a time, each with a decay of its own.
constexpr uint32_t kSelectiveLanes = 16;

inline float step_channel(const float* a, const float* key, const float* query, uint32_t width, float rate,
                          float change, float* s) {
  float sum = 0;
  uint32_t j = 0;
  for (; j + kSelectiveLanes <= width; j += kSelectiveLanes) {
    float now[kSelectiveLanes];
#pragma GCC unroll 1  // GCC spreads no loop over lanes that it has unrolled
    for (uint32_t i = 0; i < kSelectiveLanes; ++i)
      now[i] = s[j + i] * exp_f32(a[j + i] * rate) + change * key[j + i];
    __builtin_memcpy(s + j, now, sizeof now);
    sum += lanes_dot(now, query + j, kSelectiveLanes);
  }
  for (; j < width; ++j) {
    s[j] = s[j] * exp_f32(a[j] * rate) + change * key[j];
    sum += s[j] * query[j];
  }
  return sum;
}

// A part of a selective scan is one channel. Its rates are made for many rows at a time.
inline void scan_channel(const ScanBlock& b, const ScanPart& part) {
  constexpr uint32_t kRows = 64;
  const uint32_t h = part.head, width = b.key_width;
  const float bias = b.dt_bias ? ((const float*)b.dt_bias)[h] : 0.f, skip = skip_of(b, h);
  const float* a = (const float*)b.a + uint64_t(h) * width;
  for (uint32_t i = 0; i < part.run.count; i += kRows) {
    const uint32_t first = part.run.first + i, rows = part.run.count - i < kRows ? part.run.count - i : kRows;
    float rate[kRows];
    for (uint32_t r = 0; r < rows; ++r)
      rate[r] = ((const float*)b.dt)[uint64_t(first + r) * b.dt_stride + h] + bias;
    for (uint32_t r = 0; r < rows; ++r) rate[r] = softplus_f32(rate[r]);
    for (uint32_t r = 0; r < rows; ++r) {
      const float value = ((const float*)b.value)[uint64_t(first + r) * b.value_stride + h];
      const float* key = key_of(b, first + r, h);
      const float* query = query_of(b, first + r, h);
      float key_factor = 1, query_factor = 1;
      if (b.epsilon >= 0) {
        key_factor /= __builtin_sqrtf(lanes_dot(key, key, width) + b.epsilon);
        query_factor /= __builtin_sqrtf(lanes_dot(query, query, width) + b.epsilon);
      }
      const float sum = step_channel(a, key, query, width, rate[r], rate[r] * value * key_factor, part.state);
      ((float*)b.y)[uint64_t(first + r) * b.heads + h] = sum * query_factor + skip * value;
    }
  }
}

inline void scan_tiles(const ScanBlock& b, uint32_t first_group, uint32_t group_count) {
  for_each_scan(b, kScanTile, first_group, group_count, [&](const ScanPart& part) {
    if (scan_form(b.form) == kScanDelta)
      scan_part<kScanDelta>(b, part);
    else if (scan_form(b.form) == kScanGroups)
      scan_part<kScanGroups>(b, part);
    else
      scan_channel(b, part);
  });
}

}  // namespace
