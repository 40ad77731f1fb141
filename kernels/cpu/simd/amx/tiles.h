// The product of many tokens on AMX tiles, in bfloat16 with sums in float32.
//
// A tile has 16 rows of 64 bytes. tdpbf16ps adds to C[r][t] (float32) the products of A[r][0 .. 31] and the
// pairs B[k / 2][t][k % 2]: A is 16 rows of W with 32 columns, B the same columns of 16 tokens, and C stays
// in its tile for all columns of a panel. Two A's meet two B's: 4 products, 64 clocks, for 4 loads of 8
// clocks.
//
// Of 32 rows of W, kPanelColumns columns are unpacked to 32 kB, which stay in the first-level cache while all
// tokens of a block meet them. x of a block, kBlockColumns columns of it, stays in the second-level cache:
// 512 kB.
//
// With int8 tiles the sums of each 32 columns would have to leave their tile and be scaled. That was no
// faster than vpdpbusd (docs/experiments/cpu.md).
//
// `Weights` is how a type is unpacked:
//   kUnit                                  columns that are unpacked at once, a multiple of 32
//   unpack(b, row, rows, k, to)            kUnit columns of 16 rows from `row`, of which `rows` are there, as
//                                          tiles of A, 1 kB each; what the other rows hold has no effect
// Every output is summed by itself in one order, so the bits do not depend on tiles or threads.
#pragma once
#include "kernels/cpu/simd/avx512vnni.h"
#include "kernels/cpu/simd/tiles.h"

namespace {

constexpr uint32_t kTileBytes = 1024, kTileDepth = 32;
constexpr uint32_t kPairRows = 32, kPairTokens = 32;  // of two tiles
constexpr uint32_t kPanelColumns = 512, kBlockColumns = 1024, kBlockTokens = 256;

// A worker's memory.
struct Memory {
  alignas(64) uint8_t x[kBlockTokens / 16][kBlockColumns / kTileDepth][kTileBytes];
  alignas(64) uint8_t panel[2][kPanelColumns / kTileDepth][kTileBytes];
  alignas(64) float sums[kBlockTokens / kPairTokens][2][2][16][16];  // of tokens, then rows of W
};

// Columns k .. k + count - 1 of x and W.
struct Columns {
  uint32_t k, count;
};

// Writes before it are seen by tiles: GCC 12 does not know that they read memory.
inline void finish_writes() { asm volatile("" ::: "memory"); }

// All tiles have 16 rows of 64 bytes while it lives. Then no state of AMX stays behind in the thread, which
// may be a host program's.
class TileShapes {
 public:
  TileShapes() {
    finish_writes();
    _tile_loadconfig(&shapes_);
  }
  ~TileShapes() { _tile_release(); }
  TileShapes(const TileShapes&) = delete;
  TileShapes& operator=(const TileShapes&) = delete;

 private:
  struct alignas(64) {  // the operand of ldtilecfg
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } shapes_;
};

inline __m512i bf16_of(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

// x of tokens first .. end - 1 as tiles of B; those up to a multiple of kPairTokens are zero.
inline void take_x(const MatmulBlock& b, const StepState* step, uint32_t first, uint32_t end,
                   const Columns& columns, Memory* memory) {
  const uint32_t padded = (end - first + kPairTokens - 1) / kPairTokens * kPairTokens;
  for (uint32_t tile = 0; tile < padded / 16; ++tile) {
    const float* token[16];
    for (uint32_t t = 0; t < 16; ++t) {
      const uint32_t i = first + tile * 16 + t;
      token[t] = i < end ? (const float*)b.x + uint64_t(source_row(step, b.rows_of, i)) * b.depth + columns.k
                         : nullptr;
    }
    for (uint32_t k = 0; k < columns.count; k += kTileDepth) {
      __m512i v[16];
      for (uint32_t t = 0; t < 16; ++t)
        v[t] = token[t] ? bf16_of(_mm512_loadu_ps(token[t] + k), _mm512_loadu_ps(token[t] + k + 16))
                        : _mm512_setzero_si512();
      transpose(v);
      for (uint32_t i = 0; i < 16; ++i) _mm512_store_si512(memory->x[tile][k / kTileDepth] + i * 64, v[i]);
    }
  }
}

// The panel's columns, of which the first are `at` in the block's x, times tokens of pair `pair`.
inline void multiply_pair(Memory* memory, uint32_t pair, uint32_t at, uint32_t columns) {
  const uint8_t *w0 = memory->panel[0][0], *w1 = memory->panel[1][0];
  const uint8_t *x0 = memory->x[2 * pair][at / kTileDepth], *x1 = memory->x[2 * pair + 1][at / kTileDepth];
  auto& sums = memory->sums[pair];
  finish_writes();
  if (at) {
    _tile_loadd(0, sums[0][0], 64);
    _tile_loadd(1, sums[0][1], 64);
    _tile_loadd(2, sums[1][0], 64);
    _tile_loadd(3, sums[1][1], 64);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (uint32_t i = 0; i < columns / kTileDepth * kTileBytes; i += kTileBytes) {
    _tile_loadd(4, w0 + i, 64);
    _tile_loadd(6, x0 + i, 64);
    _tile_loadd(5, w1 + i, 64);
    _tile_loadd(7, x1 + i, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums[0][0], 64);
  _tile_stored(1, sums[0][1], 64);
  _tile_stored(2, sums[1][0], 64);
  _tile_stored(3, sums[1][1], 64);
}

// 16 rows of y from `row`, of which `rows` are there, for tokens first .. end - 1, at most 16. To the columns
// before, or the residual, which may be y.
inline void add_to_y(const MatmulBlock& b, const float (*sums)[16], uint32_t k, uint32_t row, uint32_t rows,
                     uint32_t first, uint32_t end) {
  const int64_t from = k ? 0 : (int64_t)(b.residual - b.y);
  const bool add = k || b.residual;
  const __mmask16 live = rows < 16 ? __mmask16((1u << rows) - 1) : __mmask16(0xffff);
  __m512i v[16];
  for (uint32_t r = 0; r < 16; ++r) v[r] = _mm512_load_si512(sums[r]);
  transpose(v);
  for (uint32_t t = 0; t < 16 && first + t < end; ++t) {
    float* y = (float*)b.y + uint64_t(first + t) * b.n + row;
    __m512 sum = _mm512_castsi512_ps(v[t]);
    if (add) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(live, (const char*)y + from), sum);
    _mm512_mask_storeu_ps(y, live, sum);
  }
}

// 32 rows of W from `row`, of which `rows` are there, times the tokens whose x is there.
template <class Weights>
inline void multiply_rows(const MatmulBlock& b, uint32_t row, uint32_t rows, uint32_t first, uint32_t end,
                          const Columns& columns, Memory* memory) {
  for (uint32_t at = 0; at < columns.count; at += kPanelColumns) {
    const uint32_t some = columns.count - at < kPanelColumns ? columns.count - at : kPanelColumns;
    for (uint32_t h = 0; h * 16 < rows; ++h)
      for (uint32_t k = 0; k < some; k += Weights::kUnit)
        Weights::unpack(b, row + h * 16, rows - h * 16 < 16 ? rows - h * 16 : 16, columns.k + at + k,
                        memory->panel[h][k / kTileDepth]);
    for (uint32_t t = first; t < end; t += kPairTokens)
      multiply_pair(memory, (t - first) / kPairTokens, at, some);
  }
  for (uint32_t t = first; t < end; t += 16)
    for (uint32_t h = 0; h * 16 < rows; ++h)
      add_to_y(b, memory->sums[(t - first) / kPairTokens][(t - first) / 16 % 2][h], columns.k, row + h * 16,
               rows - h * 16, t, end);
}

template <class Weights>
void matmul_tiles_amx(const MatmulBlock& b, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  if (scratch->bytes < sizeof(Memory)) return;
  Memory* memory = (Memory*)scratch->data;
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, b.rows_of);
  const uint64_t all = uint64_t(first_group + group_count) * b.tile;
  const uint32_t begin = first_group * b.tile, end = all < b.n ? uint32_t(all) : b.n;
  const TileShapes shapes;
  for (uint32_t t = 0; t < live; t += kBlockTokens) {
    const uint32_t t_end = live - t < kBlockTokens ? live : t + kBlockTokens;
    for (uint32_t k = 0; k < b.depth; k += kBlockColumns) {
      const Columns columns = {k, b.depth - k < kBlockColumns ? b.depth - k : kBlockColumns};
      take_x(b, step, t, t_end, columns, memory);
      for (uint32_t row = begin; row < end; row += kPairRows)
        multiply_rows<Weights>(b, row, end - row < kPairRows ? end - row : kPairRows, t, t_end, columns,
                               memory);
    }
    add_bias(b, begin, end, t, t_end);
  }
}

}  // namespace
