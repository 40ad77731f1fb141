// How a group of a matvec kernel makes the sums of its kGroupResults (16) results of kTokens tokens.
//
// A result is made of one or two sums (kSums), and a sum is the product of one row of weights and a token's
// row of x.
//   lane      takes units of the columns in turn: unit `lane` of its slice, then every kSlices * kLanes-th
//   subgroup  multiplies kSubgroupRows (4) rows at once, which share the values of x that its lanes hold. It
//             loads and decodes a unit of weights once for kTeamTokens tokens
//   team      is the subgroups that make the sums of the same tokens. kTeams teams stand side by side, and
//             all but the first find the weights in the cache
//   group     makes kSetsAtOnce sets of 4 rows side by side. Where a team has more subgroups than sets,
//             kSlices of them share a set: each takes a slice of the columns. Their partial sums meet in
//             shared memory
// Shared memory: kSlices * kTokens * 16 * kSums partial sums, and sums of squares; float32.
//
// Four tokens of a subgroup are what registers hold: with eight the sums spill, and with two the weights are
// decoded more often (docs/experiments/vulkan-many.md).
//
// The build defines GROUP, and Weights and dot_load() are those of dot/<type>.h. Before it includes this file
// the kernel defines the constants kSums and kTokens. The functions that it defines are declared below.
#ifndef GRETA_VULKAN_MATVEC_GROUP_H
#define GRETA_VULKAN_MATVEC_GROUP_H
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/lanes.h"
#include "kernels/vulkan/step.h"

layout(constant_id = 0) const uint kThreads = GROUP;
const uint kSubgroups = kThreads / kLanes;

const uint kSubgroupRows = 4;                               // rows that a subgroup multiplies at once
const uint kSubgroupResults = kSubgroupRows / kSums;        // results that these rows make
const uint kResultSets = kGroupResults / kSubgroupResults;  // sets of kSubgroupResults in a group
const uint kTeamTokens = kTokens < 4 ? 1 : 4, kTeams = kTokens / kTeamTokens;
const uint kTeamSubgroups = kSubgroups / kTeams;
uint team() { return kTeams == 1 ? 0 : gl_SubgroupID % kTeams; }
uint in_team() { return gl_SubgroupID / kTeams; }  // which of the team's subgroups this is

const uint kSlices = kTeamSubgroups > kResultSets ? kTeamSubgroups / kResultSets : 1;
const uint kSetsAtOnce = kTeamSubgroups / kSlices;

// Whether a subgroup loads the first unit of its first rows before x is there, while it waits in the chain.
// All loads are to be under way before the first product. A memory barrier keeps them there, since no load
// can sink below it; without one, NVIDIA's compiler waits for each row in turn, to save registers. The
// compilers of other vendors load early of their own accord, and would need more registers than there are.
const bool kLoadsEarly = kChained != 0;

// The squares of a token's x are summed by kSquaring subgroups, or those of kSquared tokens by one.
const uint kSquaring = kSubgroups > kTokens ? kSubgroups / kTokens : 1;
const uint kSquared = kTokens > kSubgroups ? kTokens / kSubgroups : 1;

shared float partial_sums[kSlices * kTokens * kGroupResults * kSums];  // [slice][token][result][sum]
shared float squares[kSquaring * kTokens];                             // [token][subgroup], or [subgroup]

// The kernel defines these.
uint first_result();  // the group's first result, among those of a token
uint result_count();  // results of a token
uint64_t weights_of(uint result, bool second);  // address of the row of a result's first or second sum

// Adds the products of 4 rows over slice `slice` of the columns, and leaves the sums in `partial_sums`, from
// result `first` of the group on. Where `loaded`, w is the first unit of the slice. sums_int8.h and
// sums_float.h define it.
void multiply_rows(uint64_t rows[kSubgroupRows], Weights w[kSubgroupRows], bool loaded, uint first,
                   uint slice);

// Loads unit `unit` of 4 rows.
void load_unit(uint64_t rows[kSubgroupRows], uint unit, out Weights w[kSubgroupRows]) {
  [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) w[i] = dot_load(rows[i], unit);
}

// Where partial_sums has those of a slice and token, from result `first` of the group on.
uint partial_at(uint slice, uint token, uint first) {
  return ((slice * kTokens + token) * kGroupResults + first) * kSums;
}

// The sums of 4 rows over the lanes of a subgroup; lane i gets that of row i. Lanes first trade rows for
// halves of the lanes, so that 32 lanes need 6 shuffles and not 20.
float sum_of_lanes(float sums[kSubgroupRows]) {
  const bool odd = (gl_SubgroupInvocationID & 1) != 0, late = (gl_SubgroupInvocationID & 2) != 0;
  const float a = (odd ? sums[1] : sums[0]) + subgroupShuffleXor(odd ? sums[0] : sums[1], 1);
  const float b = (odd ? sums[3] : sums[2]) + subgroupShuffleXor(odd ? sums[2] : sums[3], 1);
  float sum = (late ? b : a) + subgroupShuffleXor(late ? a : b, 2);
  [[unroll]] for (uint lanes = 4; lanes < kLanes; lanes *= 2) sum += subgroupShuffleXor(sum, lanes);
  return sum;
}

// Adds the sums of 4 rows over the lanes and leaves them as partial sums of a token of the group.
void leave_sums(float sums[kSubgroupRows], uint slice, uint token, uint first) {
  const uint lane = gl_SubgroupInvocationID;
  const float sum = sum_of_lanes(sums);
  if (lane < kSubgroupRows) partial_sums[partial_at(slice, token, first) + lane] = sum;
}

// The rows of weights of results first .. first + kSubgroupResults - 1 of the group. Results past the last
// repeat it.
void find_rows(uint first, out uint64_t rows[kSubgroupRows]) {
  const uint last = result_count() - 1;
  [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i)
    rows[i] = weights_of(min(first_result() + first + i / kSums, last), i % kSums == 1);
}

// Loads the first unit of the subgroup's first rows.
void load_first_unit(uint64_t rows[kSubgroupRows], out Weights w[kSubgroupRows]) {
  if (kLoadsEarly)
    load_unit(rows, min(in_team() % kSlices * kLanes + gl_SubgroupInvocationID, kUnits - 1), w);
}

// What a subgroup does before x is there: it finds its first rows and loads their first unit.
void begin_rows(out uint64_t rows[kSubgroupRows], out Weights w[kSubgroupRows]) {
  if (!kLoadsEarly) return;
  find_rows(in_team() / kSlices * kSubgroupResults, rows);
  load_first_unit(rows, w);
}

// Makes all partial sums of the group, from the rows and the unit of begin_rows(). A barrier follows.
void make_sums(uint64_t rows[kSubgroupRows], Weights w[kSubgroupRows]) {
  const uint slice = in_team() % kSlices;
  uint first = in_team() / kSlices * kSubgroupResults;
  if (kLoadsEarly) {
    if (first < kGroupResults) multiply_rows(rows, w, true, first, slice);
    first += kSetsAtOnce * kSubgroupResults;
  }
  for (; first < kGroupResults; first += kSetsAtOnce * kSubgroupResults) {
    find_rows(first, rows);
    multiply_rows(rows, w, false, first, slice);
  }
}

// The one or two sums of result i % kGroupResults of the group's token i / kGroupResults: its partial sums,
// added in the order of slices.
vec2 sums_of_result(uint i) {
  vec2 sums = vec2(0);
  [[unroll]] for (uint slice = 0; slice < kSlices; ++slice)
    [[unroll]] for (uint s = 0; s < kSums; ++s)
      sums[s] += partial_sums[(slice * kTokens * kGroupResults + i) * kSums + s];
  return sums;
}

// The factor of the norm that precedes the product needs the squares of all values of x. Subgroups leave
// their sums of squares as squares[i]; a barrier follows.
void publish_squares(float sum, uint i) {
  sum = lanes_sum(sum);
  if (gl_SubgroupInvocationID == 0) squares[i] = sum;
}

// 1 / rms of `width` values whose squares are `count` published sums from `first` on.
float norm_factor(uint first, uint count, uint width, float epsilon) {
  float sum = 0;
  [[unroll]] for (uint i = 0; i < count; ++i) sum += squares[first + i];
  return inversesqrt(sum / float(width) + epsilon);
}

#endif
