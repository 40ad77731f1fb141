// Q8_0 in packed order (quant/q8_0_packed.h) in AVX-512: a vector of 4 columns of 16 rows meets 4
// broadcast activations in one vpdpbusd; xor 0x80 makes the weights unsigned (q + 128).
#pragma once
#include "kernels/cpu/simd/avx512vnni.h"
#include "kernels/cpu/simd/avx512vnni/panel.h"

namespace {

// 16 rows x 32 columns: 544 bytes, for one token 8 x (xor, vpdpbusd), 7 instructions for the scales
// and 9 prefetches.
struct Rows {
  using Type = q8_0_packed;

  // A token: its row in the format q8, then -128 times the sum of each 32 values.
  struct Token {
    const uint8_t* q;
    const float* scale;
    const int32_t* start;

    Token() = default;
    Token(const uint8_t* slot, uint32_t depth)
        : q(slot),
          scale((const float*)(slot + q8_scales_at(depth))),
          start((const int32_t*)(slot + q8_row_bytes(depth))) {}
  };

  static uint64_t token_bytes(uint32_t depth) { return q8_row_bytes(uint64_t(depth)) + depth / 32 * 4; }

  static void prepare(const float* x, uint32_t depth, uint8_t* slot) {
    q8_row(x, depth, slot);
    const int16_t* sums = (const int16_t*)(slot + q8_sums_at(depth));
    int32_t* start = (int32_t*)(slot + q8_row_bytes(depth));
    for (uint32_t i = 0; i < depth / 32; ++i) start[i] = -128 * (sums[2 * i] + sums[2 * i + 1]);
  }

  // 16 rows from the tile `weight` times T tokens.
  template <int T>
  __attribute__((noinline)) static void rows(const uint8_t* weight, uint32_t blocks, const Token* tokens,
                                             float (*out)[16]) {
    const uint64_t ahead = prefetch_distance(Type::kTileBytes);
    __m512 sum[T];
    for (int t = 0; t < T; ++t) sum[t] = _mm512_setzero_ps();
    for (uint32_t i = 0; i < blocks; ++i, weight += Type::kTileBytes) {
      for (uint32_t line = 0; line < Type::kTileBytes; line += 64)
        prefetch_weights(weight + line + ahead);
      __m512i dot[T];
      for (int t = 0; t < T; ++t) dot[t] = _mm512_set1_epi32(tokens[t].start[i]);
#pragma GCC unroll 8
      for (uint32_t k = 0; k < 8; ++k) {
        const __m512i w =
            _mm512_xor_si512(_mm512_loadu_si512(weight + 32 + k * 64), _mm512_set1_epi8(char(0x80)));
        for (int t = 0; t < T; ++t) {
          int32_t four;
          __builtin_memcpy(&four, tokens[t].q + i * 32 + k * 4, 4);
          dot[t] = _mm512_dpbusd_epi32(dot[t], w, _mm512_set1_epi32(four));
        }
      }
      const __m512 d = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)weight));
      for (int t = 0; t < T; ++t) {
        const __m512 part = _mm512_mul_ps(_mm512_cvtepi32_ps(dot[t]), d);
        sum[t] = _mm512_fmadd_ps(part, _mm512_set1_ps(tokens[t].scale[i]), sum[t]);
      }
    }
    for (int t = 0; t < T; ++t) _mm512_storeu_ps(out[t], sum[t]);
  }

  template <int T>
  static void multiply(const uint8_t* weight, uint32_t, uint32_t first, uint32_t count, uint32_t depth,
                       const uint8_t* const* slots, float* out, uint32_t stride) {
    Token tokens[T];
    for (int t = 0; t < T; ++t) tokens[t] = Token(slots[t], depth);
    for (uint32_t r = 0; r < count;) {
      const uint32_t from = (first + r) % 16, some = 16 - from < count - r ? 16 - from : count - r;
      float tile[T][16];
      rows<T>(Type::tile(weight, first + r, depth, 0), depth / 32, tokens, tile);
      for (int t = 0; t < T; ++t)
        __builtin_memcpy(out + t * stride + r, tile[t] + from, some * sizeof(float));
      r += some;
    }
  }
};

// The packed order is that of a panel already.
struct Tiles {
  using Type = q8_0_packed;
  static constexpr uint32_t kUnit = 32;
  static constexpr uint32_t kPanelDepth = 2048;
  static constexpr uint32_t kBlockTokens = 192;
  using Form = Panel<32, false, 128, kPanelDepth>;

  static uint64_t x_bytes(uint64_t depth) { return q8_row_bytes(depth); }
  static uint64_t panel_bytes(uint32_t columns) { return 2ull * Form::half_bytes(columns); }

  static void unpack(const MatmulBlock& b, const Part& part, uint8_t* panel) {
    for (uint32_t first = 0; first < part.rows; first += 16) {
      uint8_t* half = panel + first / 16 * Form::half_bytes(part.columns);
      for (uint32_t i = 0; i < part.columns / 32; ++i) {
        const uint8_t* from =
            Type::tile((const uint8_t*)b.weight, part.first + first, b.depth, part.k / 32 + i);
        for (uint32_t k = 0; k < 8; ++k) {
          const __m512i w = _mm512_loadu_si512(from + 32 + k * 64);
          _mm512_store_si512(half + (i * 8 + k) * 64, _mm512_xor_si512(w, _mm512_set1_epi8(char(0x80))));
        }
        const __m512 d = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)from));
        _mm512_store_ps(half + Form::scale_at(part.columns) + i * 64, d);
      }
    }
  }

  static void multiply(const MatmulBlock& b, const Part& part, const uint8_t* panel, const TokenTile& tile) {
    Form::multiply(b, part, panel, tile);
  }
};

}  // namespace
