// gemm_cm1: y[i] = alpha * A[i] . B[i] + beta * y[i] with the cooperative matrices of subgroups (KHR)
//   A [m][k], B [k][n] float16, either of them turned; y [m][n] float32 or float16
//   grid    (tiles of kWide columns, tiles of kHigh rows, matrices)
//   group   kThreads threads make a tile of y. The subgroups stand in a grid of kDown x kAcross; sums are
//           float32 and stay in registers
//   shared  kStep columns of A and rows of B (gemm/gemm_operands.h)
//   moves   A once for each tile of columns, B once for each tile of rows, y once; twice with beta
// The argument block is GemmBlock in kernels/abi/gemm.h.
//
// A step is loaded to registers while the one before is multiplied, and then takes its place in shared
// memory. Room for two and three steps there was slower (docs/experiments/compute.md).
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "kernels/vulkan/gemm/gemm_operands.h"

// The device's matrix shape for float16 x float16 -> float32.
layout(constant_id = 100) const uint kM = 16;
layout(constant_id = 101) const uint kN = 16;
layout(constant_id = 102) const uint kK = 16;

const uint kSubgroups = kThreads / kLanes;
const uint kAspect = kSubgroups * kWide / kHigh;
const uint kWantedAcross = kAspect >= 32 ? 8 : kAspect >= 8 ? 4 : kAspect >= 2 ? 2 : 1;
// Each subgroup has at least one matrix down and one across.
const uint kMostAcross = kSubgroups < kWide / kN ? kSubgroups : kWide / kN;
const uint kLeastAcross = kSubgroups * kM / kHigh;
const uint kAcross =
    kWantedAcross < kLeastAcross ? kLeastAcross : kWantedAcross > kMostAcross ? kMostAcross : kWantedAcross;
const uint kDown = kSubgroups / kAcross;
const uint kOwnHigh = kHigh / kDown, kOwnWide = kWide / kAcross;  // of a subgroup
const uint kTall = kOwnHigh / kM, kBroad = kOwnWide / kN;         // matrices
const uint kProducts = kStep / kK;                                // of a step, each kK columns deep

#define MatrixA coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define MatrixB coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define MatrixY coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

const uint kSumWords = kM * kN / 4;  // of a matrix of sums in shared memory
const uint kSumsSize = kSubgroups * kSumWords;
shared uvec4 tile[kStepSize > kSumsSize ? kStepSize : kSumsSize];

MatrixY sums[kTall * kBroad];
MatrixA a_matrices[kTall];
MatrixB b_matrices[kBroad];

uint own_row() { return gl_SubgroupID / kAcross * kOwnHigh; }
uint own_column() { return gl_SubgroupID % kAcross * kOwnWide; }

void store_step() {
  const uint thread = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < kAEach; ++i) {
    const uint word = i * kThreads + thread;
    if (kAWords % kThreads != 0 && word >= kAWords) break;
    tile[word_at(word, kAIsAlong, kHigh, kALines, kAPitch)] = a_words[i];
  }
  [[unroll]] for (uint i = 0; i < kBEach; ++i) {
    const uint word = i * kThreads + thread;
    if (kBWords % kThreads != 0 && word >= kBWords) break;
    tile[kBAt + word_at(word, kBIsAlong, kWide, kBLines, kBPitch)] = b_words[i];
  }
}

// Where the matrix that begins at this row or column of the tile, and at column k of the step, stands.
uint matrix_at(uint base, bool along, uint first, uint k, uint lines, uint pitch) {
  return base + (along ? first % lines * pitch + first / lines * kAlong + k / kWord
                       : k * pitch + first / kWord);
}

void load_a(uint i, uint k) {
  const uint at = matrix_at(0, kAIsAlong, own_row() + i * kM, k, kALines, kAPitch);
  if (kAIsAlong)
    coopMatLoad(a_matrices[i], tile, at, kAPitch, gl_CooperativeMatrixLayoutRowMajor);
  else
    coopMatLoad(a_matrices[i], tile, at, kAPitch, gl_CooperativeMatrixLayoutColumnMajor);
}

void load_b(uint j, uint k) {
  const uint at = matrix_at(kBAt, kBIsAlong, own_column() + j * kN, k, kBLines, kBPitch);
  if (kBIsAlong)
    coopMatLoad(b_matrices[j], tile, at, kBPitch, gl_CooperativeMatrixLayoutColumnMajor);
  else
    coopMatLoad(b_matrices[j], tile, at, kBPitch, gl_CooperativeMatrixLayoutRowMajor);
}

// Multiplies the step that lies in shared memory.
void multiply_step() {
  [[unroll]] for (uint s = 0; s < kProducts; ++s) {
    [[unroll]] for (uint i = 0; i < kTall; ++i) load_a(i, s * kK);
    [[unroll]] for (uint j = 0; j < kBroad; ++j) load_b(j, s * kK);
    [[unroll]] for (uint j = 0; j < kBroad; ++j)
      [[unroll]] for (uint i = 0; i < kTall; ++i)
        sums[j * kTall + i] = coopMatMulAdd(a_matrices[i], b_matrices[j], sums[j * kTall + i]);
  }
}

void multiply_all() {
  load_step(0);
  store_step();
  for (uint step = 1; step <= steps; ++step) {
    barrier();  // the step before is there
    load_step(step);
    multiply_step();
    barrier();  // all subgroups have multiplied it
    store_step();
  }
}

// The tile of this group. Groups that run at the same time make tiles of p.band rows of tiles, one column
// after the other, so that they read the same parts of A and B.
void begin_tile() {
  const uint across = gl_NumWorkGroups.x, down = gl_NumWorkGroups.y;
  const uint id = gl_WorkGroupID.y * across + gl_WorkGroupID.x, band = id / (p.band * across);
  const uint rest = id - band * p.band * across, high = min(p.band, down - band * p.band);
  first_row = (band * p.band + rest % high) * kHigh;
  first_column = rest / high * kWide;
}

// Stores a tile of float32 that lies inside of y.
void store_whole() {
  float_address y = float_address(
      uint64_t(p.y) + (gl_WorkGroupID.z * uint64_t(p.y_batch) +
                       uint64_t(first_row + own_row()) * p.y_stride + first_column + own_column()) * 4);
  [[unroll]] for (uint j = 0; j < kBroad; ++j)
    [[unroll]] for (uint i = 0; i < kTall; ++i) {
      const uint at = i * kM * p.y_stride + j * kN;
      MatrixY sum = sums[j * kTall + i] * p.alpha;
      if (p.beta != 0) {
        MatrixY before;
        coopMatLoad(before, y.at, at, p.y_stride, gl_CooperativeMatrixLayoutRowMajor);
        sum = sum + before * p.beta;
      }
      coopMatStore(sum, y.at, at, p.y_stride, gl_CooperativeMatrixLayoutRowMajor);
    }
}

// Stores eight values of a row of y; `at` counts words of shared memory, four sums each.
void store_eight(uint at, uint row, uint column) {
  float values[kWord];
  [[unroll]] for (uint i = 0; i < kWord; ++i) values[i] = p.alpha * uintBitsToFloat(tile[at + i / 4][i % 4]);
  const uint64_t to = gl_WorkGroupID.z * uint64_t(p.y_batch) + uint64_t(row) * p.y_stride + column;
  if (kWhole != 0 && kYType == kGemmF16 && p.beta == 0) {
    uvec4 word;
    [[unroll]] for (uint i = 0; i < 4; ++i) word[i] = packHalf2x16(vec2(values[i * 2], values[i * 2 + 1]));
    uvec4_address(uint64_t(p.y) + to * 2).at[0] = word;
    return;
  }
  [[unroll]] for (uint i = 0; i < kWord; ++i) {
    if (row >= p.m || column + i >= p.n) break;
    float value = values[i];
    if (p.beta != 0) value = fma(p.beta, load_value(uint64_t(p.y), kYType, to + i), value);
    store_value(uint64_t(p.y), kYType, to + i, value);
  }
}

// Stores the tile through shared memory, a matrix at a time. It always stores sums[0], to which the others
// move down: with an index that is no constant NVIDIA's driver would keep all sums in memory (gemm/cm1.h).
void store_clipped() {
  const uint own = gl_SubgroupID * kSumWords;
  const uint row = first_row + own_row(), column = first_column + own_column();
  barrier();  // all subgroups have multiplied what is replaced now
  for (uint matrix = 0; matrix < kTall * kBroad; ++matrix) {
    coopMatStore(sums[0], tile, own, kN / 4, gl_CooperativeMatrixLayoutRowMajor);
    subgroupBarrier();
    for (uint eight = gl_SubgroupInvocationID; eight < kM * kN / kWord; eight += kLanes)
      store_eight(own + eight * 2, row + matrix % kTall * kM + eight / (kN / kWord),
                  column + matrix / kTall * kN + eight % (kN / kWord) * kWord);
    subgroupBarrier();
    [[unroll]] for (uint i = 1; i < kTall * kBroad; ++i) sums[i - 1] = sums[i];
  }
}

void main() {
  begin_tile();
  begin_operands();
  [[unroll]] for (uint i = 0; i < kTall * kBroad; ++i) sums[i] = MatrixY(0);
  multiply_all();
  if (kWhole != 0 && kYType == kGemmF32)
    store_whole();
  else
    store_clipped();
}
