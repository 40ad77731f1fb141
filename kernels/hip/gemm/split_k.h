// Split-K: several groups share a tile of y, and each takes a range of the columns. The groups write their
// partial sums to memory, as their lanes hold them, and the last group adds them in the order of the columns.
#pragma once
#include "kernels/hip/gemm/tile.h"
#include "kernels/hip/group_ticket.h"

namespace {
// How many groups share a tile: groups of the grid along z, which have one thread there.
DEVICE uint range_count() { return __builtin_amdgcn_grid_size_z(); }

// Where the lane's sums of matrix `matrix` of a range are: four neighbouring results of all threads together.
template <class T>
DEVICE GLOBAL vec4* partial_at(const MatmulTileBlock& p, uint index, uint range, uint matrix) {
  const auto parts = (GLOBAL vec4*)p.parts;
  return parts + uint64_t(index * range_count() + range) * (kRows * T::kTokens / 4) +
         matrix * (GROUP * kLayout.results / 4) + thread_x();
}

template <class T>
DEVICE void store_partial(T& t, const MatmulTileBlock& p) {
#pragma unroll
  for (uint i = 0; i < T::kTall * T::kWide; ++i)
#pragma unroll
    for (uint r = 0; r < kLayout.results; r += 4) {
      const Sums& sums = t.sums[i / T::kWide][i % T::kWide];
      partial_at<T>(p, t.index, group_z(), i)[r / 4 * GROUP] =
          vec4(sums[r], sums[r + 1], sums[r + 2], sums[r + 3]);
    }
}

template <class T>
DEVICE void add_partials(T& t, const MatmulTileBlock& p) {
  const uint ranges = range_count();
#pragma unroll
  for (uint i = 0; i < T::kTall * T::kWide; ++i) t.sums[i / T::kWide][i % T::kWide] = Sums{};
#pragma clang loop unroll(disable)
  for (uint range = 0; range < ranges; ++range)
#pragma unroll
    for (uint i = 0; i < T::kTall * T::kWide; ++i)
#pragma unroll
      for (uint r = 0; r < kLayout.results; r += 4) {
        const vec4 part = partial_at<T>(p, t.index, range, i)[r / 4 * GROUP];
#pragma unroll
        for (uint k = 0; k < 4; ++k) t.sums[i / T::kWide][i % T::kWide][r + k] += part[k];
      }
}

// Returns false where another group finishes the tile.
template <class T>
DEVICE bool is_finished(T& t, const MatmulTileBlock& p) {
  if (range_count() == 1) return true;
  store_partial(t, p);
  if (!is_last_group(p.counters, t.index, range_count(), *(uint*)tile)) return false;
  add_partials(t, p);
  return true;
}
}  // namespace
