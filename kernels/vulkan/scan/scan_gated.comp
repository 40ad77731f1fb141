// scan_gated: the convolution of a layer's queries, keys and values, the gated delta rule over them, the norm
// of each head of the result, and its gate: decode's conv1d, scan, norm and gate in one launch.
//   grid    (heads, runs)
//   group   GROUP threads, over all rows of a run. Each of the first ones convolves a channel. A thread has
//           four neighbouring columns of the state and every kSlices-th value of their keys, in registers.
//           The threads that have the first values finish their columns
//   shared  21 KiB
//   moves   the states once in and once out for each run; queries and keys once for each head with them
// Heads share queries and keys, whose state of the convolution all of them read. The group that takes the
// last ticket writes it. States are read before the launch waits in the chain, since nothing else in the step
// writes them.
// The argument block is ScanGatedBlock in kernels/abi/sequences.h.
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require
#include "kernels/vulkan/chain.h"
#include "kernels/abi/sequences.h"
#include "kernels/gpu/q8x16.h"
#include "kernels/vulkan/elementwise/activation.h"
#include "kernels/vulkan/halves.h"
#include "kernels/vulkan/lanes.h"
#include "kernels/vulkan/runs.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)
layout(push_constant, scalar) uniform Push { ScanGatedBlock p; };
layout(constant_id = 2) const uint kHeads = 1;
layout(constant_id = 3) const uint kGroups = 1;
layout(constant_id = 4) const uint kKeyWidth = 128;
layout(constant_id = 5) const uint kValueWidth = 128;
layout(constant_id = 6) const uint kConvWidth = 4;
layout(constant_id = 7) const uint kForm = 0;
layout(constant_id = 8) const uint kActivation = 0;
layout(constant_id = 9) const uint kHalves = 0;
layout(constant_id = 10) const uint kEpsilon = 0;      // its bits
layout(constant_id = 11) const uint kNormEpsilon = 0;  // its bits

#include "kernels/gpu/scan.h"

const uint kBefore = kConvWidth - 1;  // rows in the state of the convolution
const uint kKeys = kGroups * kKeyWidth, kChannels = 2 * kKeys + kHeads * kValueWidth;
const uint kOfHead = 2 * kKeyWidth + kValueWidth;  // channels of a head: query, key, value
const uint kQuads = kValueWidth / 4;
const uint kSlices = GROUP / kQuads < kKeyWidth ? GROUP / kQuads : kKeyWidth;
const uint kOwn = kKeyWidth / kSlices;  // values of a column that a thread has
const uint kFinishing = (kQuads + kLanes - 1) / kLanes;  // subgroups whose threads finish columns

shared float convolved[2][kOfHead];  // by turns, so that a row need not wait for the one before
shared vec4 of_keys[kSlices * kQuads], of_queries[kSlices * kQuads];  // partial sums of S k and S q
shared vec4 changes[kQuads];
shared vec4 dots;  // k k, q q and k q
shared float decay_of_row;
shared float squares_of[GROUP / 4];  // of y, by subgroup
shared uint ticket;

uint head, group, thread, quad, slice, channel;
float_address conv_state, scan_state;
StepRun run;
float window[kBefore], weight[kConvWidth];
vec4 own[kOwn];

// What finishes the thread's columns, loaded before the products of their row.
struct Finish {
  float a, dt_bias, dt, strength;
  vec4 gain, gate;
};
Finish f;

vec4 four(float_address values, uint at) { return vec4_address(uint64_t(values)).at[at / 4]; }
uint key_of(uint i) { return i * kSlices + slice; }
uint state_at(uint i) { return (head * kKeyWidth + key_of(i)) * kValueWidth + quad * 4; }
bool has_state() { return slice < kSlices; }
bool shares_keys() { return kHeads != kGroups; }

// The channel that a thread convolves: value i of the head's query, key and value.
uint channel_of(uint i) {
  if (i < kKeyWidth) return group * kKeyWidth + i;
  if (i < 2 * kKeyWidth) return kKeys + group * kKeyWidth + i - kKeyWidth;
  return 2 * kKeys + head * kValueWidth + i - 2 * kKeyWidth;
}

void find_place() {
  head = gl_WorkGroupID.x;
  group = (kForm & kScanTiled) != 0 ? head % kGroups : head / (kHeads / kGroups);
  thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  quad = thread % kQuads;
  slice = thread / kQuads;
  channel = channel_of(min(thread, kOfHead - 1));
}

void load_states() {
  const bool begins = begins_sequence(step_of(p.step), run);
  conv_state = state_of(p.state, run, p.state_stride);
  scan_state = MOVED(conv_state, p.scan_at);
  [[unroll]] for (uint i = 0; i < kOwn; ++i)
    own[i] = begins || !has_state() ? vec4(0) : four(scan_state, state_at(i));
  [[unroll]] for (uint j = 0; j < kBefore; ++j)
    window[j] = begins ? 0 : conv_state.at[j * kChannels + channel];
  [[unroll]] for (uint j = 0; j < kConvWidth; ++j) weight[j] = p.weight.at[channel * kConvWidth + j];
  f.a = p.a.at[head];
  f.dt_bias = uint64_t(p.dt_bias) != 0 ? p.dt_bias.at[head] : 0;
  f.gain = four(p.gain, quad * 4);
}

void convolve(uint t, uint turn) {
  if (thread >= kOfHead) return;
  const float x = p.x.at[t * kChannels + channel];
  float sum = 0;
  [[unroll]] for (uint j = 0; j < kBefore; ++j) sum += weight[j] * window[j];
  sum += weight[kBefore] * x;
  convolved[turn][thread] = sum * logistic(sum);
  [[unroll]] for (uint j = 0; j + 1 < kBefore; ++j) window[j] = window[j + 1];
  window[kBefore - 1] = x;
}

// The partial sums of the state's columns, and the products of the key and the query by the first subgroup.
void multiply(uint turn) {
  if (has_state()) {
    vec4 of_key = vec4(0), of_query = vec4(0);
    [[unroll]] for (uint i = 0; i < kOwn; ++i) {
      of_key += own[i] * convolved[turn][kKeyWidth + key_of(i)];
      of_query += own[i] * convolved[turn][key_of(i)];
    }
    of_keys[slice * kQuads + quad] = of_key;
    of_queries[slice * kQuads + quad] = of_query;
  }
  if (gl_SubgroupID != 0) return;
  vec3 sums = vec3(0);
  for (uint i = gl_SubgroupInvocationID; i < kKeyWidth; i += gl_SubgroupSize) {
    const float query = convolved[turn][i], key = convolved[turn][kKeyWidth + i];
    sums += vec3(key * key, query * query, key * query);
  }
  sums = subgroupAdd(sums);
  if (gl_SubgroupInvocationID == 0) dots = vec4(sums, 0);
}

float length_factor_of(float squares) {
  const float epsilon = uintBitsToFloat(kEpsilon);
  return epsilon < 0 ? 1 : 1 / sqrt(squares + epsilon);
}

// The result of the scan for the thread's columns, and how the state changes.
vec4 finish_columns(uint turn) {
  vec4 of_key = vec4(0), of_query = vec4(0);
  for (uint i = 0; i < kSlices; ++i) {
    of_key += of_keys[i * kQuads + quad];
    of_query += of_queries[i * kQuads + quad];
  }
  const float decay = exp_f32(f.a * softplus(f.dt + f.dt_bias));
  const float strength = if_finite(f.strength, logistic(f.strength));
  const float key = length_factor_of(dots.x), query = length_factor_of(dots.y) / sqrt(float(kKeyWidth));
  vec4 value;
  [[unroll]] for (uint j = 0; j < 4; ++j) value[j] = convolved[turn][2 * kKeyWidth + quad * 4 + j];
  const vec4 change = strength * (value - decay * key * of_key);
  const vec4 y = decay * query * of_query + change * (key * query * dots.z);
  changes[quad] = change * key;
  if (quad == 0) decay_of_row = decay;
  const float squares = subgroupAdd(dot(y, y));
  if (subgroupElect()) squares_of[gl_SubgroupID] = squares;
  return y;
}

// Normalises, gates and stores the thread's columns.
void store_columns(uint t, vec4 y) {
  const uint width = kHeads * kValueWidth, at = head * kValueWidth + quad * 4;
  float squares = 0;
  for (uint i = 0; i < kFinishing; ++i) squares += squares_of[i];
  const float factor = 1 / sqrt(squares / float(kValueWidth) + uintBitsToFloat(kNormEpsilon));
  for (uint j = 0; j < 4; ++j) y[j] = gated(kActivation, f.gate[j], y[j] * factor * f.gain[j]);
  vec4_address(uint64_t(p.y)).at[(t * width + at) / 4] = y;
  if (uint64_t(p.rounded) == 0) return;
  if (kHalves != 0) store_halves(p.rounded, t * width + at, y);
  else store_q8x16(uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(width), width, at / 4, y, dot(y, y));
}

void change_state(uint turn) {
  if (!has_state()) return;
  const float decay = decay_of_row;
  const vec4 change = changes[quad];
  [[unroll]] for (uint i = 0; i < kOwn; ++i)
    own[i] = own[i] * decay + change * convolved[turn][kKeyWidth + key_of(i)];
}

// Whether the group is the last of those that have read the state of its keys' convolution. It is asked once
// by a thread, after all have read it.
uint take_ticket() {
  const uint index = gl_WorkGroupID.y * kGroups + group, sharing = kHeads / kGroups;
  const uint before = atomicAdd(p.counters.at[index], 1, gl_ScopeDevice, gl_StorageSemanticsBuffer,
                                gl_SemanticsAcquireRelease);
  if (before + 1 == sharing) p.counters.at[index] = 0;
  return before + 1 == sharing ? 1 : 0;
}

void store_states() {
  vec4_address to = vec4_address(uint64_t(scan_state));
  if (has_state())
    [[unroll]] for (uint i = 0; i < kOwn; ++i) to.at[state_at(i) / 4] = own[i];
  const bool is_value = thread >= 2 * kKeyWidth && thread < kOfHead;
  if (!is_value && (thread >= kOfHead || (shares_keys() && ticket == 0))) return;
  [[unroll]] for (uint j = 0; j < kBefore; ++j) conv_state.at[j * kChannels + channel] = window[j];
}

void make_rows() {
  const bool finishes = thread < kQuads;
  for (uint row = 0; row < run.count; ++row) {
    const uint t = run.first + row, turn = row & 1u;
    vec4 y = vec4(0);
    if (finishes) {
      f.dt = p.dt.at[t * kHeads + head];
      f.strength = p.strength.at[t * kHeads + head];
      f.gate = four(p.gate, (t * kHeads + head) * kValueWidth + quad * 4);
    }
    convolve(t, turn);
    barrier();
    if (row == 0 && thread == 0 && shares_keys()) ticket = take_ticket();
    multiply(turn);
    barrier();
    if (finishes) y = finish_columns(turn);
    barrier();
    if (finishes) store_columns(t, y);
    change_state(turn);
  }
  store_states();
}

void main() {
  find_place();
  StepRuns_address runs = runs_of(p.runs);
  const bool lives = gl_WorkGroupID.y < runs.runs.count;
  if (lives) {
    run = runs.runs.run[gl_WorkGroupID.y];
    load_states();
  }
  if (kChained != 0) subgroupMemoryBarrierBuffer();  // no load sinks below it
  chain_wait(uint64_t(p.chain));
  if (lives) make_rows();
  chain_end(uint64_t(p.chain));
}
