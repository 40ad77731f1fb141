// AVX-512 for attention: vectors of 16 floats, and pages of the cache as floats.
#pragma once
#include "kernels/cpu/simd/attention.h"
#include "kernels/cpu/simd/avx512vnni.h"

namespace {

struct Vec {
  using Type = __m512;
  static constexpr uint32_t kLanes = 16;
  static constexpr int kRows = 4;  // queries together: 16 sums, 4 vectors of the page

  static inline Type set1(float x) { return _mm512_set1_ps(x); }
  static inline Type load(const float* from) { return _mm512_loadu_ps(from); }
  static inline void store(float* to, Type x) { _mm512_storeu_ps(to, x); }
  static inline Type add(Type a, Type b) { return _mm512_add_ps(a, b); }
  static inline Type sub(Type a, Type b) { return _mm512_sub_ps(a, b); }
  static inline Type mul(Type a, Type b) { return _mm512_mul_ps(a, b); }
  static inline Type fma(Type a, Type b, Type c) { return _mm512_fmadd_ps(a, b, c); }
  static inline Type max(Type a, Type b) { return _mm512_max_ps(a, b); }
  static inline float lane_max(Type x) { return _mm512_reduce_max_ps(x); }
  static inline float lane_sum(Type x) { return _mm512_reduce_add_ps(x); }

  // Those of 16 values from `at` that lie below `count`.
  static inline __mmask16 mask(uint32_t count, uint32_t at) {
    return count >= at + 16 ? __mmask16(0xffff)
           : count <= at    ? __mmask16(0)
                            : __mmask16((1u << (count - at)) - 1);
  }
  static inline Type load_some(const float* from, uint32_t count, uint32_t at) {
    return _mm512_maskz_loadu_ps(mask(count, at), from);
  }
  static inline void store_some(float* to, uint32_t count, uint32_t at, Type x) {
    _mm512_mask_storeu_ps(to, mask(count, at), x);
  }

  // exp of x <= 0, the polynomial of math.h with FMA; 0 below -104.
  static inline Type exp(Type x) {
    const Type n = _mm512_roundscale_ps(_mm512_mul_ps(x, set1(1.44269504088896341f)), 0);
    Type r = _mm512_fnmadd_ps(n, set1(0.693359375f), x);
    r = _mm512_fmadd_ps(n, set1(2.12194440e-4f), r);
    Type p = fma(set1(1.9875691500e-4f), r, set1(1.3981999507e-3f));
    p = fma(p, r, set1(8.3334519073e-3f));
    p = fma(p, r, set1(4.1665795894e-2f));
    p = fma(p, r, set1(1.6666665459e-1f));
    p = fma(p, r, set1(5.0000001201e-1f));
    p = add(fma(mul(p, r), r, r), set1(1.f));
    const __mmask16 large = _mm512_cmp_ps_mask(x, set1(-104.f), _CMP_NLT_UQ);  // and NaN
    return _mm512_maskz_scalef_ps(large, p, n);
  }

  // Values at .. at + 15 of a row of the cache, zeros past its width.
  static inline Type floats(uint32_t type, const uint8_t* row, uint32_t width, uint32_t at) {
    const __mmask16 live = mask(width, at);
    if (type == kCache_f16) return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(live, row + at * 2));
    if (type == kCache_f32) return _mm512_maskz_loadu_ps(live, row + at * 4);
    if (type == kCache_q8_0 && live) {  // its last block is whole even where less of it is asked for
      const uint8_t* block = row + at / 32 * q8_0::kBlockBytes;
      const __m512i q = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)(block + 2 + at % 32)));
      return _mm512_maskz_mul_ps(live, _mm512_cvtepi32_ps(q), set1(_cvtsh_ss(load_u16(block))));
    }
    if (!live) return set1(0.f);
    float all[kMaxHeadWidth];
    cache_load(type, row, width, all);
    return _mm512_maskz_loadu_ps(live, all + at);
  }

  static void load_keys(const AttentionBlock& b, const uint8_t* pool_page, uint32_t kv_head,
                        const FloatPage& page) {
    const uint32_t bytes = cache_head_bytes(b.key_type, b.key_width);
    const uint8_t* rows = pool_page + uint64_t(kv_head) * kPageTokens * bytes;
    for (uint32_t s = page.begin / 16 * 16; s < page.end; s += 16)
      for (uint32_t i = 0; i < b.key_width; i += 16) {
        __m512i v[16];
        for (uint32_t r = 0; r < 16; ++r)
          v[r] = _mm512_castps_si512(floats(b.key_type, rows + (s + r) * bytes, b.key_width, i));
        transpose(v);
        for (uint32_t r = 0; r < 16; ++r) _mm512_storeu_si512(page.keys + (i + r) * kPageTokens + s, v[r]);
      }
  }

  static void load_values(const AttentionBlock& b, const uint8_t* pool_page, uint32_t kv_head,
                          const FloatPage& page) {
    const uint32_t bytes = cache_head_bytes(b.value_type, b.value_stride);
    const uint8_t* rows = pool_page + uint64_t(kv_head) * kPageTokens * bytes;
    for (uint32_t s = page.begin; s < page.end; ++s)
      for (uint32_t i = 0; i < page.value_stride; i += 16)
        store(page.values + s * page.value_stride + i,
              floats(b.value_type, rows + s * bytes, b.value_width, i));
  }
};

}  // namespace
