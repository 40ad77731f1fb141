// Rows of blocks of 256 weights times few tokens, with VNNI, for types of which a second vector of 64 weights
// has the scales of the first in the same words: two vpdpbusd follow each other before one conversion, one
// permutation of the scales and one FMA. A block's 8 scales and minima are taken as half vectors.
//
// For that, weights come in the order in which their bytes are unpacked with the fewest instructions, and x
// is stored in the same order. A type is a Quants (block.h) with groups of 32, and besides
//   word(v, lane)         which four weights are word `lane` of vector v: 4 word .. 4 word + 3
//   times(g)              by what the bytes of group g are too large, a power of two
//   two<P>(block)         vectors 2 P and 2 P + 1 as unsigned bytes
//   eight_scales(block)   scales and minima of the 8 groups, as scales(block) gives them
//   eight_scales(block, row_bytes, out)   those of two rows together, where that is cheaper
// Q4_K, one token: 47 instructions for 256 weights (144 bytes), of which 18 have 512 bits.
#pragma once
#include "kernels/cpu/simd/avx512vnni/block_rows.h"

namespace {

struct TwoVectors {
  __m512i first, second;
};

// A token: what BlockToken holds for many tokens, then x in the type's order, and for each group the scale
// and (scale x sum).
struct ChainedToken : BlockToken {
  const int8_t* ordered;
  const float* group_scale;
  const float* group_sum;

  ChainedToken() = default;
  ChainedToken(const uint8_t* slot, uint32_t depth)
      : BlockToken(slot, depth),
        ordered((const int8_t*)(sum + depth / 16)),
        group_scale((const float*)(ordered + depth)),
        group_sum(group_scale + depth / 32) {}
};

template <class Quants>
struct ChainedRows {
  using Block = BlockRows<Quants>;
  static constexpr uint32_t kTogether = Block::kTogether;

  static uint64_t token_bytes(uint32_t depth) {
    return Block::token_bytes(depth) + depth + uint64_t(depth) / 32 * 8;
  }

  static void prepare(const float* x, uint32_t depth, uint8_t* slot) {
    Block::prepare(x, depth, slot);
    const ChainedToken token(slot, depth);
    int8_t* ordered = (int8_t*)token.ordered;
    for (uint32_t at = 0; at < depth; at += 256)
#pragma GCC unroll 64
      for (uint32_t word = 0; word < 64; ++word)
        __builtin_memcpy(ordered + at + word * 4, token.q + at + Quants::word(word / 16, word % 16) * 4, 4);
    for (uint32_t i = 0; i < depth / 32; ++i) {
      ((float*)token.group_scale)[i] = token.scale[2 * i] / Quants::times(i % 8);
      ((float*)token.group_sum)[i] = token.sum[2 * i] + token.sum[2 * i + 1];
    }
  }

  // The groups of the words of vectors 2 P and 2 P + 1.
  template <int P>
  static inline __m512i groups() {
    const auto group = [](uint32_t lane) { return int(Quants::word(2 * P, lane) / 8); };
    return _mm512_setr_epi32(group(0), group(1), group(2), group(3), group(4), group(5), group(6), group(7),
                             group(8), group(9), group(10), group(11), group(12), group(13), group(14),
                             group(15));
  }

  template <int R>
  static inline void take_scales(const uint8_t* block, uint64_t row_bytes, Scales<32> (&scales)[R]) {
    if constexpr (requires { Quants::eight_scales(block, row_bytes, scales); })
      Quants::eight_scales(block, row_bytes, scales);
    else
      for (int r = 0; r < R; ++r) scales[r] = Quants::eight_scales(block + r * row_bytes);
  }

  template <int P, int R, int T>
  static inline void chunk(const uint8_t* block, uint64_t row_bytes, uint32_t at, const ChainedToken* tokens,
                           const __m256 (&scale)[R][T], __m512 (&sum)[R][T]) {
    __m512i first[T], second[T];
    for (int t = 0; t < T; ++t) {
      first[t] = _mm512_loadu_si512(tokens[t].ordered + at + P * 128);
      second[t] = _mm512_loadu_si512(tokens[t].ordered + at + P * 128 + 64);
    }
    for (int r = 0; r < R; ++r) {
      const TwoVectors q = Quants::template two<P>(block + r * row_bytes);
      for (int t = 0; t < T; ++t) {
        const __m512i dot = _mm512_dpbusd_epi32(
            _mm512_dpbusd_epi32(_mm512_setzero_si512(), q.first, first[t]), q.second, second[t]);
        const __m512 lanes = _mm512_permutexvar_ps(groups<P>(), _mm512_castps256_ps512(scale[r][t]));
        sum[r][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), lanes, sum[r][t]);
      }
    }
  }

  // R rows from `weight` times T tokens.
  template <int R, int T>
  __attribute__((noinline)) static void rows(const uint8_t* weight, uint64_t row_bytes, uint32_t depth,
                                             const ChainedToken* tokens, float* out, uint32_t stride) {
    __m512 sum[R][T];
    __m256 min[R][T];
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < T; ++t) {
        sum[r][t] = _mm512_setzero_ps();
        min[r][t] = _mm256_setzero_ps();
      }
    const uint64_t ahead = prefetch_distance(R * row_bytes);
    for (uint32_t at = 0; at < depth; at += 256, weight += Quants::kBlockBytes) {
      __m256 scale[R][T];
      Scales<32> scales[R];
      take_scales(weight, row_bytes, scales);
      for (int r = 0; r < R; ++r) {
        for (uint32_t line = 0; line < Quants::kBlockBytes; line += 64)
          prefetch_weights(weight + r * row_bytes + line + ahead);
        for (int t = 0; t < T; ++t) {
          scale[r][t] = _mm256_mul_ps(scales[r].scale[0], _mm256_loadu_ps(tokens[t].group_scale + at / 32));
          min[r][t] =
              _mm256_fmadd_ps(scales[r].min[0], _mm256_loadu_ps(tokens[t].group_sum + at / 32), min[r][t]);
        }
      }
      chunk<0>(weight, row_bytes, at, tokens, scale, sum);
      chunk<1>(weight, row_bytes, at, tokens, scale, sum);
    }
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < T; ++t)
        out[t * stride + r] =
            _mm512_reduce_add_ps(_mm512_sub_ps(sum[r][t], _mm512_zextps256_ps512(min[r][t])));
  }

  template <int T>
  static void multiply(const uint8_t* weight, uint32_t, uint32_t first, uint32_t count, uint32_t depth,
                       const uint8_t* const* slots, float* out, uint32_t stride) {
    ChainedToken tokens[T];
    for (int t = 0; t < T; ++t) tokens[t] = ChainedToken(slots[t], depth);
    const uint64_t row_bytes = uint64_t(depth / 256) * Quants::kBlockBytes;
    const uint8_t* row = weight + first * row_bytes;
    uint32_t r = 0;
    for (; r + kTogether <= count; r += kTogether)
      rows<kTogether, T>(row + r * row_bytes, row_bytes, depth, tokens, out + r, stride);
    for (; r < count; ++r) rows<1, T>(row + r * row_bytes, row_bytes, depth, tokens, out + r, stride);
  }

  static constexpr uint32_t kManyFrom = Block::kManyFrom;
  static void multiply_many(const uint8_t* weight, uint32_t n, uint32_t first, uint32_t count, uint32_t depth,
                            const uint8_t* const* slots, uint32_t token_count, float* out, uint32_t stride) {
    Block::multiply_many(weight, n, first, count, depth, slots, token_count, out, stride);
  }
};

}  // namespace
