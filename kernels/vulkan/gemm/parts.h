// Split columns: several groups share a tile of y, each over a part of its columns. Their sums go to memory, matrix by
// matrix as a subgroup holds them, and the last group to arrive adds them, in the order of the columns. Included after
// gemm/tokens.h and gemm/cm1.h.
#ifndef GRETA_VULKAN_GEMM_PARTS_H
#define GRETA_VULKAN_GEMM_PARTS_H
#include "kernels/vulkan/group_ticket.h"

const uint kMatrices = kTall * kWide;
// Loads that are under way together: of kSide matrices, kAhead parts of each. Matrices are a power of two.
const uint kSide = kMatrices < 4 ? kMatrices : 4;
const uint kAhead = 8 / kSide;

layout(buffer_reference, scalar, buffer_reference_align = 16) nonprivate buffer Parts_address { float at[]; };

uint tile_index() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

// Where the subgroup's matrices of a part lie, in values.
uint part_at(uint part) {
  return (tile_index() * gl_NumWorkGroups.z + part) * (kRows * kTokens) + gl_SubgroupID * (kMatrices * kM * kN);
}

void store_part() {
  const uint at = part_at(gl_WorkGroupID.z);
  [[unroll]] for (uint i = 0; i < kMatrices; ++i)
    coopMatStore(sums[i], Parts_address(uint64_t(p.parts)).at, at + i * kM * kN, kM, gl_CooperativeMatrixLayoutColumnMajor);
}

// kSide matrices at a time, always in the same registers, and then all move down: see store_clipped.
void add_parts() {
  const uint parts = gl_NumWorkGroups.z;
  [[dont_unroll]] for (uint first = 0; first < kMatrices; first += kSide) {
    MatrixY total[kSide];
    [[unroll]] for (uint i = 0; i < kSide; ++i) total[i] = MatrixY(0);
    [[dont_unroll]] for (uint part = 0; part < parts; part += kAhead) {
      MatrixY found[kSide * kAhead];
      [[unroll]] for (uint a = 0; a < kAhead; ++a)
        [[unroll]] for (uint i = 0; i < kSide; ++i)
          coopMatLoad(found[a * kSide + i], Parts_address(uint64_t(p.parts)).at,
                      part_at(min(part + a, parts - 1)) + (first + i) * kM * kN, kM, gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (uint a = 0; a < kAhead; ++a)
        if (part + a < parts)
          [[unroll]] for (uint i = 0; i < kSide; ++i) total[i] = total[i] + found[a * kSide + i];
    }
    [[unroll]] for (uint i = kSide; i < kMatrices; ++i) sums[i - kSide] = sums[i];
    [[unroll]] for (uint i = 0; i < kSide; ++i) sums[kMatrices - kSide + i] = total[i];
  }
}

// False: another group finishes the tile.
bool is_finished() {
  if (gl_NumWorkGroups.z == 1) return true;
  store_part();
  if (!is_last_group(p.counters, tile_index(), gl_NumWorkGroups.z)) return false;
  add_parts();
  return true;
}
#endif
