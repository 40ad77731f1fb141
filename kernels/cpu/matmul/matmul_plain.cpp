// matmul_plain: the product for any type, shape and number of tokens; the definition of right, also for the
// sequences around it: a norm of x before; rotation, the write into the page pool, a residual or a gate
// after.
//   y[t][n] = sum over k of W[n][k] * x[t][k] + bias[n]     W [n][depth], x [rows][depth] float32
//   grid    (n / TILE), or (heads) where heads are rotated or written
//   group   TILE rows of y, or one head, of all tokens. Weights are decoded 256 columns at a time, for up to
//           32 tokens together. Sums run in one order (lanes.h), so tiles, buckets, threads and fusion leave
//           the bits alone
//   scratch none
//   moves   the weights once for each 32 tokens; x once for each 4 rows of y, from the caches; y
// The argument block is MatmulBlock in kernels/abi/ops.h.
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/row_math.h"
#include "kernels/cpu/scratch.h"

namespace {

using Weight = WEIGHT;

constexpr uint32_t kColumns = 256;    // decoded at once; a multiple of every block
constexpr uint32_t kRows = 4;         // rows of W that share a pass over x
constexpr uint32_t kTileTokens = 32;  // that share decoded weights
constexpr uint32_t kHeadTokens = 8;   // where whole heads are held for them

// Up to kTileTokens rows of x from token `first`, and their norm factors.
struct Tokens {
  uint32_t first, count;
  const float* x[kTileTokens];
  float factor[kTileTokens];
};

struct Columns {
  float w[kRows][kColumns];
  float x[kColumns];
};

// Where results go: token t's begin at `at` + t * stride.
struct Target {
  float* at;
  uint64_t stride;
};

void load_tokens(const MatmulBlock& b, const StepState* step, uint32_t first, uint32_t count,
                 Tokens* tokens) {
  tokens->first = first;
  tokens->count = count;
  for (uint32_t t = 0; t < count; ++t) {
    tokens->x[t] = (const float*)b.x + uint64_t(source_row(step, b.rows_of, first + t)) * b.depth;
    tokens->factor[t] = b.gain ? norm_factor(tokens->x[t], b.depth, b.epsilon) : 1.f;
  }
}

// Rows n .. n + rows - 1 of `weight`, at most kRows, times each token.
void multiply(const MatmulBlock& b, uint64_t weight, uint32_t n, uint32_t rows, const Tokens& tokens,
              const Target& out) {
  Columns columns;
  Lanes sums[kTileTokens][kRows];
  for (uint32_t t = 0; t < tokens.count; ++t)
    for (uint32_t r = 0; r < rows; ++r) sums[t][r] = {};
  for (uint32_t k = 0; k < b.depth; k += kColumns) {
    const uint32_t count = b.depth - k < kColumns ? b.depth - k : kColumns;
    for (uint32_t r = 0; r < rows; ++r)
      decode_columns<Weight>((const uint8_t*)weight, n + r, b.depth, k, count, columns.w[r]);
    for (uint32_t t = 0; t < tokens.count; ++t) {
      const float* x = tokens.x[t] + k;
      if (b.gain) {
        norm_apply(x, (const float*)b.gain + k, tokens.factor[t], count, columns.x);
        x = columns.x;
      }
      for (uint32_t r = 0; r < rows; ++r) accumulate(columns.w[r], x, count, &sums[t][r]);
    }
  }
  for (uint32_t t = 0; t < tokens.count; ++t)
    for (uint32_t r = 0; r < rows; ++r)
      out.at[t * out.stride + r] = sum_of(sums[t][r]) + (b.bias ? ((const float*)b.bias)[n + r] : 0.f);
}

// The same for any count of rows, with gate or residual.
void multiply_rows(const MatmulBlock& b, uint32_t n, uint32_t rows, const Tokens& tokens, const Target& out) {
  float up[kTileTokens][kRows], residual[kTileTokens][kRows];
  for (uint32_t r = 0; r < rows; r += kRows) {
    const uint32_t some = rows - r < kRows ? rows - r : kRows;
    if (b.residual)  // before y is written: it may be y
      for (uint32_t t = 0; t < tokens.count; ++t)
        __builtin_memcpy(residual[t], (const float*)b.residual + uint64_t(tokens.first + t) * b.n + n + r,
                         some * sizeof(float));
    multiply(b, b.weight, n + r, some, tokens, {out.at + r, out.stride});
    if (b.weight2) multiply(b, b.weight2, n + r, some, tokens, {up[0], kRows});
    for (uint32_t t = 0; t < tokens.count; ++t)
      for (uint32_t i = 0; i < some; ++i) {
        float* y = out.at + t * out.stride + r + i;
        if (b.weight2) *y = gated(b.activation, *y, up[t][i]);
        if (b.residual) *y = residual[t][i] + *y;
      }
  }
}

// One head for all tokens: rotated, then written to y or to the tokens' pages.
void multiply_head(const MatmulBlock& b, const StepState* step, uint32_t head, const Tokens& tokens) {
  float out[kHeadTokens][kMaxHeadWidth];
  multiply_rows(b, head * b.tile, b.tile, tokens, {out[0], kMaxHeadWidth});
  for (uint32_t t = 0; t < tokens.count; ++t) {
    const StepRow& row = step->row[tokens.first + t];
    if (b.rope)
      rope_head(rope_row(b.rope, row.position, b.rope_width), b.rope_width, b.rope_halves, out[t], out[t]);
    if (b.pool)
      write_head(step, row, b.pool, b.page_bytes, b.cache_type, head, out[t], b.tile);
    else
      __builtin_memcpy((float*)b.y + uint64_t(tokens.first + t) * b.n + head * b.tile, out[t],
                       b.tile * sizeof(float));
  }
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const MatmulBlock& b = *(const MatmulBlock*)block;
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, b.rows_of);
  const bool heads = b.rope || b.pool;
  const uint32_t tile_tokens = heads ? kHeadTokens : kTileTokens;
  for (uint32_t first = 0; first < live; first += tile_tokens) {
    Tokens tokens;
    load_tokens(b, step, first, live - first < tile_tokens ? live - first : tile_tokens, &tokens);
    for (uint32_t group = first_group; group < first_group + group_count; ++group) {
      if (heads) {
        multiply_head(b, step, group, tokens);
        continue;
      }
      const uint32_t n = group * b.tile;
      const uint32_t rows = b.n - n < b.tile ? b.n - n : b.tile;
      multiply_rows(b, n, rows, tokens, {(float*)b.y + uint64_t(first) * b.n + n, b.n});
    }
  }
}
