// sample_plain: draws the next token of each output from first_drawn on.
//   token = draw(filter(penalise(logits))), by the parameters and the position of the output's sequence
//     where logits [outputs][vocab]
//   grid    (outputs * slices): group i takes slice i % slices of output i / slices, kSlice values of the
//           vocabulary
//   group   GROUP threads with kBlock values each. A group notes the best candidate and the mass of its
//           slice. The last group of an output draws: greedily the best of all; without filters by going
//           through the slice in which the draw falls, in order of id; else as in sample_filtered.h
//   shared  about 20 KiB: the list and the histogram of sample_filtered.h; GROUP * 4 bytes more
//   moves   the logits once, and once more for a slice or for the blocks that filters look at; the penalised
//           logits are written, and read instead of the logits
// The argument block is SampleBlock in kernels/abi/ops.h.
#include "kernels/vulkan/group_ticket.h"
#include "kernels/vulkan/sample/sample_filtered.h"

layout(buffer_reference, scalar, buffer_reference_align = 4)
  writeonly buffer Drawn_address { StepState state; };

shared uint penalised[kSlice / 32];  // a bit for each value of the slice
#define recent bin_count             // the recent tokens: nobody reads them when bins are counted
shared uint chosen;
shared bool decides;  // the output is the last of its sequence
shared uvec4 chosen_slice;

uint slice_count() { return (p.vocab + kSlice - 1) / kSlice; }

// Several outputs of a sequence, which stand together, would race for its last_token. The last one has it.
bool is_last_of_sequence(StepState_address step, uint i) {
  return i + 1 >= live_rows(step, kRowsOutputs) ||
         step.state.row[step.state.output_row[i + 1]].sequence != row.sequence;
}

uint recent_count() { return min(min(params.repeat_last_n, kMaxPenalised), row.position + 1); }

// Notes the recent tokens, including the current one, and which of them are in this slice.
void note_penalised(StepState_address step, uint slice) {
  for (uint i = gl_LocalInvocationIndex; i < kSlice / 32; i += GROUP) penalised[i] = 0;
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < recent_count(); i += GROUP) {
    const uint position = row.position - i;
    const uint token =
        p.token_log.at[page_of(step, row.sequence, position) * kPageTokens + position % kPageTokens];
    recent[i] = token;
    if (token < p.vocab && token / kSlice == slice)
      atomicOr(penalised[token % kSlice / 32], 1u << token % 32);
  }
  barrier();
}

// The value of a recent token after the penalties.
float penalised_value(uint token, float value) {
  if (repeats()) value = tame(value > 0 ? value / params.repeat_penalty : value * params.repeat_penalty);
  uint times = 0;
  for (uint i = 0; i < recent_count(); ++i) times += uint(recent[i] == token);
  precise const float all = taken.frequency * float(times) + taken.presence;
  return tame(value - all);
}

// Stores a block, applies the penalties there and loads it again. There are few recent tokens, so they are
// not worth registers for all values.
void penalise(uint block, inout float values[kBlock], uint count) {
  float_address stored = float_address(scratch + uint64_t(block) * kBlock * 4);
  [[unroll]] for (uint i = 0; i < kBlock; ++i)
    if (i < count) stored.at[i] = values[i];
  uint bits = penalised[gl_LocalInvocationIndex * kBlock / 32] >> gl_LocalInvocationIndex * kBlock % 32;
  bits &= (1u << kBlock) - 1;
  if (bits == 0) return;
  for (; bits != 0; bits &= bits - 1) {
    const uint i = findLSB(bits);
    stored.at[i] = penalised_value(block * kBlock + i, stored.at[i]);
  }
  load_block(scratch, block, values, count);
}

// The sum of exp((value - maximum) / temperature) over a block.
float block_mass(float values[kBlock], uint count, float maximum, float temperature) {
  float sum = 0;
  [[unroll]] for (uint i = 0; i < kBlock; ++i)
    if (i < count) sum += exp_f32((values[i] - maximum) / temperature);
  return sum;
}

#define kFinite 0x80000000u  // a flag beside an id: some logit of the slice is finite

// The slice's record: {best key, its id with the flag kFinite, mass}. The mass is relative to the slice's
// best.
uvec4 take_slice(uint slice, float temperature) {
  const uint block = slice * GROUP + gl_LocalInvocationIndex;
  float values[kBlock];
  uint count;
  load_block(logits, block, values, count);
  uint smallest = kNotFinite;  // of magnitudes, as bits
  [[unroll]] for (uint i = 0; i < kBlock; ++i)
    if (i < count) smallest = min(smallest, magnitude_bits(values[i]));
  if (penalises) penalise(block, values, count);
  uvec2 thread_best = uvec2(0, ~0u);  // of the thread: {key, id}
  [[unroll]] for (uint i = 0; i < kBlock; ++i) {
    const uint key = i < count ? key_of(values[i]) : 0;
    if (key > thread_best.x) thread_best = uvec2(key, block * kBlock + i);
  }
  if (count > 0) block_keys().at[block] = thread_best.x;
  const uint flag = group_max(kNotFinite - smallest) != 0 ? kFinite : 0;
  const uvec2 first = group_best(thread_best.x, thread_best.y);
  if (is_greedy()) return uvec4(first.x, first.y | flag, 0, 0);
  const uint64_t mass = group_sum(mass_of(block_mass(values, count, of_key(first.x), temperature)));
  return uvec4(first.x, first.y | flag, unpackUint2x32(mass));
}

// Draws in order of id from the slice {index, best key, the share of its mass at which the draw falls, 0}.
void draw_from_slice(uvec4 drawn) {
  const uint block = drawn.x * GROUP + gl_LocalInvocationIndex;
  const float maximum = of_key(drawn.y);
  float values[kBlock];
  uint count;
  load_block(values_at(), block, values, count);
  const uint64_t own_mass = mass_of(block_mass(values, count, maximum, params.temperature));
  uint64_t mass;
  const uint64_t before = group_sum_before(own_mass, mass);
  const uint64_t target = min(share_of(mass, uintBitsToFloat(drawn.z)), mass - 1);
  if (before > target || target >= before + own_mass) return;
  float sum = 0;
  for (uint i = 0; i < count; ++i) {
    sum += exp_f32((values[i] - maximum) / params.temperature);
    if (before + mass_of(sum) <= target) continue;
    chosen = block * kBlock + i;
    return;
  }
}

void draw_row() {
  const uint slice = gl_LocalInvocationIndex;
  uvec4 record = slice < slice_count() ? slices().at[slice] : uvec4(0, ~kFinite, 0, 0);
  record.y &= ~kFinite;
  const uvec2 first = group_best(record.x, record.y);
  if (is_greedy()) {
    chosen = first.y;
    return;
  }
  const float below = of_key(max(record.x, 1)) - of_key(first.x);
  const float temperature = is_filtered() ? 1 : params.temperature;
  const float slice_sum = sum_of(packUint2x32(record.zw));
  const uint64_t mass = slice < slice_count() ? mass_of(slice_sum * exp_f32(below / temperature)) : 0;
  uint64_t total;
  const uint64_t before = group_sum_before(mass, total);
  const float uniform_draw = philox_uniform(params.seed_low, params.seed_high, row.position);
  if (is_filtered()) {
    const uint id = draw_filtered(first, total, uniform_draw);
    chosen = id;
    return;
  }
  const uint64_t target = share_of(total, uniform_draw);
  if (before <= target && target < before + mass)
    chosen_slice = uvec4(slice, record.x, floatBitsToUint(sum_of(target - before) / sum_of(mass)), 0);
  barrier();
  draw_from_slice(chosen_slice);
}

// Hands the token to the host, and to the next step if it is the last of its sequence.
void hand_on(uint t, uint token, bool last) {
  p.drawn.at[row.sequence * kDrawnPositions + row.position % kDrawnPositions] = token;
  if (!last) return;
  Drawn_address to = Drawn_address(p.step);
  to.state.last_token[row.sequence] = token;
  to.state.row[t].token = kTokenFromSample;
  to.state.row[t].position = row.position + 1;
}

void main() {
  StepState_address step = step_of(p.step);
  const uint output_index = gl_WorkGroupID.x / slice_count(), slice = gl_WorkGroupID.x % slice_count();
  const uint live = live_rows(step, kRowsOutputs);
  if (output_index < step.state.first_drawn || output_index >= live) return;
  row = step.state.row[step.state.output_row[output_index]];
  params = step.state.sample[row.sequence];
  logits = uint64_t(p.logits) + uint64_t(output_index) * p.vocab * 4;
  scratch = uint64_t(p.scratch) + uint64_t(output_index) * sample_scratch_bytes(p.vocab);
  taken = penalties_of(step, row.sequence);
  penalises = (repeats() || takes()) && params.repeat_last_n != 0 && uint64_t(p.token_log) != 0;
  if (gl_LocalInvocationIndex == 0) decides = is_last_of_sequence(step, output_index);
  if (penalises) note_penalised(step, slice);
  const uvec4 record = take_slice(slice, is_filtered() ? 1 : params.temperature);
  if (gl_LocalInvocationIndex == 0) slices().at[slice] = record;
  if (!is_last_group(p.counters, output_index, slice_count())) return;
  draw_row();
  barrier();
  // This stands at the end, so that the answer needs no register during the draw.
  const uint other = gl_LocalInvocationIndex;
  const bool drawn = group_max(other < slice_count() ? slices().at[other].y & kFinite : 0) != 0;
  const uint token = drawn ? min(chosen, p.vocab - 1) : kNoDraw;
  if (gl_LocalInvocationIndex == 0) hand_on(step.state.output_row[output_index], token, decides);
}
