// matmul of a few tokens with weights that are floats, alone or with what is fused around it (MatmulFloatRowBlock,
// kernels/abi/ops.h): x and sums in float32.
//   grid   (1; kGroupResults results to a group): all tokens one after the other, after the first of which the caches have
//          the group's weights
//   group  as in matmul_rows
//
// Lanes take units of 8 columns in turn. dot/<type>.h has
//   Weights                  a unit as it is loaded
//   dot_load(row, unit)      unit `unit` of the row at address `row`, a multiple of 16
//   dot_unit(weights, x)     the sum over the unit
//   DOT_LARGE                defined where several units at once would take too many registers
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "kernels/vulkan/step.h"

GRETA_ABI_BUFFER(float16, float16_t, 2)
GRETA_ABI_BUFFER(vec2, vec2, 8)

layout(push_constant, scalar) uniform Push { MatmulFloatRowBlock p; };
layout(constant_id = 2) const uint kDepth = 256;
layout(constant_id = 4) const uint kEpsilon = 1u << 31;  // the bits of it; negative: no norm

#include "kernels/vulkan/rows_y.h"
#include "kernels/vulkan/rows_results.h"

const uint kUnits = kDepth / 8;
const bool kNorms = kEpsilon >> 31 == 0;

shared float squares[kSlices];  // of x, a sum for each slice of the columns

uint64_t row_of_x() { return uint64_t(p.x) + uint64_t(source_row(step_of(p.step), p.rows_of, token)) * kDepth * 4; }

Values values_of(uint64_t row, uint unit) {
  const uint64_t at = row + unit * 32;
  return Values(uintBitsToFloat(load_16_of_16(at)), uintBitsToFloat(load_16_of_16(at + 16)));
}

// Adds the products of a unit of kStreams rows of weights to their sums, and the squares of x to theirs.
void add_loaded(Weights w[kStreams], uint unit, uint64_t x, inout float sums[kStreams], inout float of_squares) {
  Values values = values_of(x, unit), gain;
  if (kNorms) gain = values_of(uint64_t(p.gain), unit);
  if (kHolds) subgroupMemoryBarrierBuffer();
  if (kNorms) {
    of_squares += dot(values.x0, values.x0) + dot(values.x1, values.x1);
    values = Values(values.x0 * gain.x0, values.x1 * gain.x1);
  }
  [[unroll]] for (uint i = 0; i < kStreams; ++i) sums[i] += dot_unit(w[i], values);
}

// The sums of these rows over the columns of slice `slice`; w is their first unit, if it is held.
void make(uint64_t rows[kStreams], Weights w[kStreams], bool held, uint first, uint slice) {
  const uint lane = gl_SubgroupInvocationID;
  const uint64_t x = row_of_x();
  float sums[kStreams], of_squares = 0;
  [[unroll]] for (uint i = 0; i < kStreams; ++i) sums[i] = 0;
  uint unit = slice * kLanes + lane;
  if (held) {
    if (kUnits >= kSlices * kLanes || unit < kUnits) add_loaded(w, unit, x, sums, of_squares);
    unit += kSlices * kLanes;
  }
#ifdef DOT_LARGE
  [[dont_unroll]]
#endif
  for (; unit < kUnits; unit += kSlices * kLanes) {
    load_unit(rows, unit, w);
    add_loaded(w, unit, x, sums, of_squares);
  }
  const float sum = sum_of_lanes(sums);
  if (lane < kStreams) parts[(slice * kGroupResults + first) * kSums + lane] = sum;
  if (!kNorms || first != 0) return;
  of_squares = lanes_sum(of_squares);
  if (lane == 0) squares[slice] = of_squares;
}

vec2 sums_of(uint i) {
  const vec2 sums = sums_of_slices(i);
  if (!kNorms) return sums;
  float of_squares = 0;
  [[unroll]] for (uint slice = 0; slice < kSlices; ++slice) of_squares += squares[slice];
  return sums * inversesqrt(of_squares / float(kDepth) + p.epsilon);
}

void main() {
  const uint slice = gl_SubgroupID % kSlices, set = gl_SubgroupID / kSlices * kOfStreams;
  uint64_t rows_of_set[kStreams];
  Weights w[kStreams];
  const uint held_unit = min(slice * kLanes + gl_SubgroupInvocationID, kUnits - 1);
  if (kHolds) {
    rows_from(set, rows_of_set);
    load_unit(rows_of_set, held_unit, w);
  }
  chain_wait(uint64_t(p.chain));
  const uint i = gl_LocalInvocationIndex, result = gl_WorkGroupID.y * kGroupResults + i;
  const bool finishes = i < kGroupResults && result < result_count();
  const uvec2 rows = rows_of_result(finishes ? result : 0);
  const uint live = live_rows(step_of(p.step), p.rows_of);
  for (token = 0;;) {
    Operands operands;
    if (finishes) operands = operands_of(result, rows);
    if (kHolds && set < kGroupResults) make(rows_of_set, w, true, set, slice);
    for (uint first = set + (kHolds ? kSets * kOfStreams : 0); first < kGroupResults; first += kSets * kOfStreams) {
      uint64_t rows_of_next[kStreams];
      rows_from(first, rows_of_next);
      make(rows_of_next, w, false, first, slice);
    }
    barrier();
    if (finishes) finish(rows, sums_of(i), operands);
    if (++token >= live) break;  // a step has a token
    barrier();
    if (kHolds) load_unit(rows_of_set, held_unit, w);
  }
  chain_end(uint64_t(p.chain));
}
