// Products of matrices in a wave: float16 times float16 with sums in float32, by MFMA (CDNA) or WMMA (RDNA3
// and RDNA4).
//
// A fragment is 16 rows of A, or 16 columns of B, over kFragmentColumns columns of A. Lanes read it from
// memory where a row of A or a column of B has 8 neighbouring values in a word of 16 bytes. The order in
// which the instructions take the columns of A does not matter, so long as the rows of B have the same one:
// a lane gives the values of its words, one after the other.
#pragma once
#include "kernels/hip/glsl.h"
#include "kernels/hip/matrix_layouts.h"

namespace {
#define VECTOR(T, count) T __attribute__((ext_vector_type(count)))
typedef VECTOR(float16_t, 8) f16vec8;
typedef VECTOR(float16_t, 16) f16vec16;
typedef VECTOR(float, 8) vec8;
#undef VECTOR

#if defined(__GFX9__)
#if defined(__gfx950__)
constexpr MatrixLayout kLayout = kMfma16x16x32;
#else
constexpr MatrixLayout kLayout = kMfma16x16x16;  // two instructions for a fragment
#endif
typedef vec4 Sums;
constexpr uint kFragmentColumns = 32;
constexpr uint kFragmentWords = 1;  // that a lane reads
#elif defined(__GFX12__)
constexpr MatrixLayout kLayout = kWmmaGfx12;
typedef vec8 Sums;
constexpr uint kFragmentColumns = 16, kFragmentWords = 1;
#else
constexpr MatrixLayout kLayout = kWmmaGfx11;
typedef vec8 Sums;
constexpr uint kFragmentColumns = 16, kFragmentWords = 2;
#endif

struct Fragment {
  uvec4 words[kFragmentWords];
};

// Which word of its row of a fragment is a lane's first.
DEVICE uint first_word() { return kFragmentWords == 1 ? lane() / 16 : 0; }

// sums + A B, where fragments a and b hold A and B.
DEVICE Sums multiply(const Fragment& a, const Fragment& b, Sums sums) {
#if defined(__GFX9__)
  const auto a8 = __builtin_bit_cast(f16vec8, a), b8 = __builtin_bit_cast(f16vec8, b);
#if defined(__gfx950__)
  return __builtin_amdgcn_mfma_f32_16x16x32_f16(a8, b8, sums, 0, 0, 0);
#else
  sums = __builtin_amdgcn_mfma_f32_16x16x16f16(a8.lo, b8.lo, sums, 0, 0, 0);
  return __builtin_amdgcn_mfma_f32_16x16x16f16(a8.hi, b8.hi, sums, 0, 0, 0);
#endif
#elif defined(__GFX12__)
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(__builtin_bit_cast(f16vec8, a),
                                                          __builtin_bit_cast(f16vec8, b), sums);
#else
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(__builtin_bit_cast(f16vec16, a),
                                                    __builtin_bit_cast(f16vec16, b), sums);
#endif
}
}  // namespace
