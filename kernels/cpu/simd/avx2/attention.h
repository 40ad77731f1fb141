// AVX2 for attention: vectors of 8 floats, and pages of the cache as floats.
#pragma once
#include "kernels/cpu/simd/attention.h"
#include "kernels/cpu/simd/avx2.h"

namespace {

struct Vec {
  using Type = __m256;
  static constexpr uint32_t kLanes = 8;
  static constexpr int kRows = 2;  // queries together: 8 sums, 4 vectors of the page

  static inline Type set1(float x) { return _mm256_set1_ps(x); }
  static inline Type load(const float* from) { return _mm256_loadu_ps(from); }
  static inline void store(float* to, Type x) { _mm256_storeu_ps(to, x); }
  static inline Type add(Type a, Type b) { return _mm256_add_ps(a, b); }
  static inline Type sub(Type a, Type b) { return _mm256_sub_ps(a, b); }
  static inline Type mul(Type a, Type b) { return _mm256_mul_ps(a, b); }
  static inline Type fma(Type a, Type b, Type c) { return _mm256_fmadd_ps(a, b, c); }
  static inline Type max(Type a, Type b) { return _mm256_max_ps(a, b); }
  static inline float lane_max(Type x) { return ::lane_max(x); }
  static inline float lane_sum(Type x) { return ::lane_sum(x); }

  // Those of 8 values from `at` that lie below `count`.
  static inline __m256i mask(uint32_t count, uint32_t at) {
    const __m256i left = _mm256_set1_epi32(int32_t(count) - int32_t(at));
    return _mm256_cmpgt_epi32(left, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static inline Type load_some(const float* from, uint32_t count, uint32_t at) {
    return _mm256_maskload_ps(from, mask(count, at));
  }
  static inline void store_some(float* to, uint32_t count, uint32_t at, Type x) {
    _mm256_maskstore_ps(to, mask(count, at), x);
  }

  // exp of x <= 0, the polynomial of math.h with FMA; 0 below -104. The power of two is applied in two
  // steps, so that results run into 0 without leaving the float range on the way.
  static inline Type exp(Type x) {
    const Type low = _mm256_max_ps(set1(-110.f), x);
    const Type n =
        _mm256_round_ps(mul(low, set1(1.44269504088896341f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    Type r = _mm256_fnmadd_ps(n, set1(0.693359375f), low);
    r = fma(n, set1(2.12194440e-4f), r);
    Type p = fma(set1(1.9875691500e-4f), r, set1(1.3981999507e-3f));
    p = fma(p, r, set1(8.3334519073e-3f));
    p = fma(p, r, set1(4.1665795894e-2f));
    p = fma(p, r, set1(1.6666665459e-1f));
    p = fma(p, r, set1(5.0000001201e-1f));
    p = add(fma(mul(p, r), r, r), set1(1.f));
    const __m256i exponent = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(exponent, 1);
    const __m256i bias = _mm256_set1_epi32(127);
    const Type first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    const __m256i rest = _mm256_sub_epi32(exponent, half);
    const Type second = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_and_ps(mul(mul(p, first), second),
                         _mm256_cmp_ps(x, set1(-104.f), _CMP_NLT_UQ));  // NaN stays
  }

  // Values at .. at + 7 of a row of the cache, zeros past its width.
  static inline Type floats(uint32_t type, const uint8_t* row, uint32_t width, uint32_t at) {
    if (type == kCache_f32) return load_some((const float*)row + at, width, at);
    if (type == kCache_f16 && width >= at + 8)
      return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(row + at * 2)));
    if (type == kCache_q8_0 && width >= at + 8) {
      const uint8_t* block = row + at / 32 * q8_0::kBlockBytes;
      const __m256i q = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)(block + 2 + at % 32)));
      return mul(_mm256_cvtepi32_ps(q), set1(_cvtsh_ss(load_u16(block))));
    }
    if (at >= width) return set1(0.f);
    float all[kMaxHeadWidth];
    cache_load(type, row, width, all);
    return load_some(all + at, width, at);
  }

  static void load_keys(const AttentionBlock& b, const uint8_t* pool_page, uint32_t kv_head,
                        const FloatPage& page) {
    const uint32_t bytes = cache_head_bytes(b.key_type, b.key_width);
    const uint8_t* rows = pool_page + uint64_t(kv_head) * kPageTokens * bytes;
    for (uint32_t s = page.begin / 8 * 8; s < page.end; s += 8)
      for (uint32_t i = 0; i < b.key_width; i += 8) {
        __m256i v[8];
        for (uint32_t r = 0; r < 8; ++r)
          v[r] = _mm256_castps_si256(floats(b.key_type, rows + (s + r) * bytes, b.key_width, i));
        transpose(v);
        for (uint32_t r = 0; r < 8; ++r)
          _mm256_storeu_si256((__m256i*)(page.keys + (i + r) * kPageTokens + s), v[r]);
      }
  }

  static void load_values(const AttentionBlock& b, const uint8_t* pool_page, uint32_t kv_head,
                          const FloatPage& page) {
    const uint32_t bytes = cache_head_bytes(b.value_type, b.value_stride);
    const uint8_t* rows = pool_page + uint64_t(kv_head) * kPageTokens * bytes;
    for (uint32_t s = page.begin; s < page.end; ++s)
      for (uint32_t i = 0; i < page.value_stride; i += 8)
        store(page.values + s * page.value_stride + i,
              floats(b.value_type, rows + s * bytes, b.value_width, i));
  }
};

}  // namespace
