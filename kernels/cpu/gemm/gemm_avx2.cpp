// gemm_avx2: general products in float32, by AVX2 (kernels/cpu/simd/gemm.h).
// The argument block is GemmBlock in kernels/abi/gemm.h.
#include <immintrin.h>

#include "kernels/cpu/simd/gemm.h"

namespace {

struct Lanes {
  typedef __m256 Vector;
  static constexpr uint32_t kLanes = 8, kRows = 6, kColumns = 16;
  static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Vector v) { _mm256_storeu_ps(to, v); }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector spread(float value) { return _mm256_set1_ps(value); }
};

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  gemm_groups<Lanes>(block, first_group, group_count, scratch);
}
