// Q8_0 in packed order (quant/q8_0_packed.h) in AVX2: 4 columns of 8 rows in a vector meet 4 broadcast
// activations. The weights are signed: their absolute values meet x with their sign.
#pragma once
#include "kernels/cpu/simd/avx2.h"
#include "kernels/cpu/simd/avx2/panel.h"

namespace {

// 8 rows x 4 columns cost 5 instructions for a token (abs, sign, maddubs, madd, add).
struct Rows {
  using Type = q8_0_packed;
  static constexpr uint32_t kTogether = 2;  // tokens: their sums and the two halves' fill the registers

  struct Token {
    const uint8_t* q;
    const float* scale;
  };

  static uint64_t token_bytes(uint32_t depth) { return q8_row_bytes(uint64_t(depth)); }
  static void prepare(const float* x, uint32_t depth, uint8_t* slot) { q8_row(x, depth, slot); }

  // 16 rows from the tile `weight` times T tokens.
  template <int T>
  __attribute__((noinline)) static void rows(const uint8_t* weight, uint32_t blocks, const Token* tokens,
                                             float (*out)[16]) {
    const uint64_t ahead = prefetch_distance(Type::kTileBytes);
    __m256 sum[2][T];
    for (int t = 0; t < T; ++t) sum[0][t] = sum[1][t] = _mm256_setzero_ps();
    for (uint32_t i = 0; i < blocks; ++i, weight += Type::kTileBytes) {
      for (uint32_t line = 0; line < Type::kTileBytes; line += 64)
        prefetch_weights(weight + line + ahead);
      __m256i dot[2][T];
      for (int t = 0; t < T; ++t) dot[0][t] = dot[1][t] = _mm256_setzero_si256();
#pragma GCC unroll 8
      for (uint32_t k = 0; k < 8; ++k)
        for (int h = 0; h < 2; ++h) {
          const __m256i w = _mm256_loadu_si256((const __m256i*)(weight + 32 + k * 64 + h * 32));
          const __m256i magnitude = _mm256_abs_epi8(w);
          for (int t = 0; t < T; ++t) {
            const __m256i x = broadcast4(tokens[t].q + i * 32 + k * 4);
            const __m256i four = widen(pairs(magnitude, _mm256_sign_epi8(x, w)));
            dot[h][t] = in_order(_mm256_add_epi32(dot[h][t], four));
          }
        }
      for (int h = 0; h < 2; ++h) {
        const __m256 d = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(weight + h * 16)));
        for (int t = 0; t < T; ++t) {
          const __m256 part = _mm256_mul_ps(_mm256_cvtepi32_ps(dot[h][t]), d);
          sum[h][t] = _mm256_fmadd_ps(part, _mm256_set1_ps(tokens[t].scale[i]), sum[h][t]);
        }
      }
    }
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < 2; ++h) _mm256_storeu_ps(out[t] + h * 8, sum[h][t]);
  }

  template <int T>
  static void multiply(const uint8_t* weight, uint32_t, uint32_t first, uint32_t count, uint32_t depth,
                       const uint8_t* const* slots, float* out, uint32_t stride) {
    Token tokens[T];
    for (int t = 0; t < T; ++t) tokens[t] = {slots[t], (const float*)(slots[t] + q8_scales_at(depth))};
    for (uint32_t r = 0; r < count;) {
      const uint32_t from = (first + r) % 16, some = 16 - from < count - r ? 16 - from : count - r;
      const uint8_t* at = Type::tile(weight, first + r, depth, 0);
      float tile[T][16];
      for (int t = 0; t < T; t += kTogether)
        T - t > 1 ? rows<2>(at, depth / 32, tokens + t, tile + t)
                  : rows<1>(at, depth / 32, tokens + t, tile + t);
      for (int t = 0; t < T; ++t)
        __builtin_memcpy(out + t * stride + r, tile[t] + from, some * sizeof(float));
      r += some;
    }
  }
};

// A tile of 16 rows is two eights of a panel, interleaved.
struct Tiles {
  using Type = q8_0_packed;
  static constexpr uint32_t kUnit = 32;
  static constexpr uint32_t kPanelDepth = 1024;
  static constexpr uint32_t kBlockTokens = 192;
  using Form = Panel<32, false, 0, 0, kPanelDepth>;

  static uint64_t x_bytes(uint64_t depth) { return q8_row_bytes(depth); }
  static uint64_t panel_bytes(uint32_t columns) {
    return uint64_t(Form::kEights) * Form::eight_bytes(columns);
  }

  static void unpack(const MatmulBlock& b, const Part& part, uint8_t* panel) {
    for (uint32_t first = 0; first < part.rows; first += 8) {
      uint8_t* eight = panel + first / 8 * Form::eight_bytes(part.columns);
      const uint32_t h = first / 8 % 2;
      for (uint32_t i = 0; i < part.columns / 32; ++i) {
        const uint8_t* from =
            Type::tile((const uint8_t*)b.weight, part.first + first, b.depth, part.k / 32 + i);
        for (uint32_t k = 0; k < 8; ++k)
          __builtin_memcpy(eight + (i * 8 + k) * 32, from + 32 + k * 64 + h * 32, 32);
        const __m256 d = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(from + h * 16)));
        _mm256_storeu_ps((float*)(eight + Form::scale_at(part.columns)) + i * 8, d);
      }
    }
  }

  static void multiply(const MatmulBlock& b, const Part& part, const uint8_t* panel, const TokenTile& tile) {
    Form::multiply(b, part, panel, tile);
  }
};

}  // namespace
