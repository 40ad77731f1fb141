// Split-K: several groups share a tile of y, and each takes a range of the columns. The groups write their
// partial sums to memory, matrix by matrix as a subgroup holds them, and the last group adds them in the
// order of the columns.
#ifndef GRETA_VULKAN_GEMM_SPLIT_K_H
#define GRETA_VULKAN_GEMM_SPLIT_K_H
#include "kernels/vulkan/gemm/cm1.h"
#include "kernels/vulkan/gemm/tokens.h"
#include "kernels/vulkan/group_ticket.h"

const uint kMatrices = kTall * kWide;
// 8 loads are under way together: of kMatricesAtOnce matrices, kRangesAtOnce ranges each. kMatrices is a
// power of two.
const uint kMatricesAtOnce = kMatrices < 4 ? kMatrices : 4;
const uint kRangesAtOnce = 8 / kMatricesAtOnce;

layout(buffer_reference, scalar, buffer_reference_align = 16)
  nonprivate buffer Partials_address { float at[]; };

uint tile_index() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

// Where the subgroup's matrices of a range begin, counted in values.
uint partial_at(uint range) {
  return (tile_index() * gl_NumWorkGroups.z + range) * (kRows * kTokens) + gl_SubgroupID *
      (kMatrices * kM * kN);
}

void store_partial() {
  const uint at = partial_at(gl_WorkGroupID.z);
  [[unroll]] for (uint i = 0; i < kMatrices; ++i)
    coopMatStore(sums[i], Partials_address(uint64_t(p.parts)).at, at + i * kM * kN, kM,
                 gl_CooperativeMatrixLayoutColumnMajor);
}

// Adds kMatricesAtOnce matrices at a time, always in the same registers, and then moves all down: see
// store_clipped.
void add_partials() {
  const uint ranges = gl_NumWorkGroups.z;
  [[dont_unroll]] for (uint first = 0; first < kMatrices; first += kMatricesAtOnce) {
    MatrixY total[kMatricesAtOnce];
    [[unroll]] for (uint i = 0; i < kMatricesAtOnce; ++i) total[i] = MatrixY(0);
    [[dont_unroll]] for (uint range = 0; range < ranges; range += kRangesAtOnce) {
      MatrixY loaded[kMatricesAtOnce * kRangesAtOnce];
      [[unroll]] for (uint a = 0; a < kRangesAtOnce; ++a)
        [[unroll]] for (uint i = 0; i < kMatricesAtOnce; ++i)
          coopMatLoad(loaded[a * kMatricesAtOnce + i], Partials_address(uint64_t(p.parts)).at,
                      partial_at(min(range + a, ranges - 1)) + (first + i) * kM * kN, kM,
                          gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (uint a = 0; a < kRangesAtOnce; ++a)
        if (range + a < ranges)
          [[unroll]] for (uint i = 0; i < kMatricesAtOnce; ++i)
            total[i] = total[i] + loaded[a * kMatricesAtOnce + i];
    }
    [[unroll]] for (uint i = kMatricesAtOnce; i < kMatrices; ++i) sums[i - kMatricesAtOnce] = sums[i];
    [[unroll]] for (uint i = 0; i < kMatricesAtOnce; ++i) sums[kMatrices - kMatricesAtOnce + i] = total[i];
  }
}

// Returns false where another group finishes the tile.
bool is_finished() {
  if (gl_NumWorkGroups.z == 1) return true;
  store_partial();
  if (!is_last_group(p.counters, tile_index(), gl_NumWorkGroups.z)) return false;
  add_partials();
  return true;
}
#endif
