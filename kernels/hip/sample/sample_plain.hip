// sample_plain: draws the next token of each output from first_drawn on.
//   token = draw(filter(penalise(logits))), by the parameters and the position of the output's sequence
//     where logits [outputs][vocab]
//   grid    (outputs * slices): group i takes slice i % slices of output i / slices, kSlice values of the
//           vocabulary
//   group   GROUP threads with kBlock values each. A group notes the best candidate and the mass of its
//           slice. The last group of an output draws: greedily the best of all; without filters by going
//           through the slice in which the draw falls, in order of id; else as in sample_filtered.h
//   shared  about 20 KiB: the list and the histogram of sample_filtered.h; the penalised values of a slice
//   moves   the logits once, and once more for a slice or for the blocks that filters look at; the penalised
//           logits are written, and read instead of the logits
// The argument block is SampleBlock in kernels/abi/ops.h.
#include "kernels/hip/group_ticket.h"
#include "kernels/hip/sample/sample_filtered.h"

namespace {

SHARED uint penalised[kSlice / 32];  // a bit for each value of the slice
#define recent bin_count             // the recent tokens: nobody reads them when bins are counted
static_assert(kBins >= kMaxPenalised);
SHARED uint chosen;
SHARED uint drawn_slice;  // the slice in which the draw falls, its best key,
SHARED uint drawn_key;
SHARED float drawn_share;  // and the share of its mass

constexpr uint kFinite = 0x80000000u;  // a flag in a record's candidate: some logit of the slice is finite

}  // namespace

DEVICE uint64_t group_best(uint64_t c) {
  const KeyAndIndex best = group_best(key_part(c), id_part(c));
  return candidate(best.key, best.index);
}

// Several outputs of a sequence, which stand together, would race for its last_token. The last one has it.
DEVICE bool is_last_of_sequence(const Output& o, Step step, uint i) {
  return i + 1 >= live_rows(step, kRowsOutputs) || step->row[step->output_row[i + 1]].sequence != o.sequence;
}

DEVICE uint recent_count(const Output& o) {
  return min(min(o.params.repeat_last_n, uint(kMaxPenalised)), o.position + 1);
}

// Notes the recent tokens, including the current one, and which of them are in this slice.
DEVICE void note_penalised(const Output& o, Step step, const GLOBAL uint* token_log, uint slice) {
  for (uint i = thread_x(); i < kSlice / 32; i += GROUP) penalised[i] = 0;
  group_barrier();
  for (uint i = thread_x(); i < recent_count(o); i += GROUP) {
    const uint position = o.position - i;
    const uint token = token_log[page_of(step, o.sequence, position) * kPageTokens + position % kPageTokens];
    recent[i] = token;
    if (token < o.vocab && token / kSlice == slice)
      __atomic_fetch_or(&penalised[token % kSlice / 32], 1u << token % 32, __ATOMIC_RELAXED);
  }
  group_barrier();
}

// The value of a recent token after the penalties.
DEVICE float penalised_value(const Output& o, uint token, float value) {
  const float penalty = o.params.repeat_penalty;
  if (repeats(o.params)) value = tame(value > 0 ? value / penalty : value * penalty);
  uint times = 0;
  for (uint i = 0; i < recent_count(o); ++i) times += recent[i] == token;
  return tame(value - (o.taken.frequency * float(times) + o.taken.presence));
}

// Stores a block, applies the penalties there and loads it again. There are few recent tokens, so they are
// not worth registers for all values.
DEVICE void penalise(const Output& o, uint block, uint count, float (&values)[kBlock]) {
  const auto stored = o.values + block * kBlock;
  for (uint i = 0; i < kBlock; ++i)
    if (i < count) stored[i] = values[i];
  uint bits = penalised[thread_x() * kBlock / 32] >> thread_x() * kBlock % 32 & ((1u << kBlock) - 1);
  if (bits == 0) return;
  for (; bits; bits &= bits - 1) {
    const uint i = __builtin_ctz(bits);
    stored[i] = penalised_value(o, block * kBlock + i, stored[i]);
  }
  load_block(o, o.values, block, values);
}

// The sum of exp((value - maximum) / temperature) over a block.
DEVICE float block_mass(const float (&values)[kBlock], uint count, float maximum, float temperature) {
  float sum = 0;
  for (uint i = 0; i < kBlock; ++i)
    if (i < count) sum += exp_f32((values[i] - maximum) / temperature);
  return sum;
}

// The record of a slice. Its mass is relative to its best candidate.
DEVICE Record take_slice(const Output& o, uint slice, float temperature) {
  const uint block = slice * GROUP + thread_x();
  float values[kBlock];
  const uint count = load_block(o, o.logits, block, values);
  uint finite = 0;
  for (uint i = 0; i < kBlock; ++i) finite |= i < count && magnitude_bits(values[i]) != kNotFinite;
  if (o.penalises) penalise(o, block, count, values);
  uint64_t thread_best = 0;
  for (uint i = 0; i < kBlock; ++i) {
    const uint64_t c = candidate(key_of(values[i]), block * kBlock + i);
    if (i < count && c > thread_best) thread_best = c;
  }
  if (count > 0) o.block_keys[block] = key_part(thread_best);
  const bool any_finite = group_max(finite) != 0;
  const uint64_t best = group_best(thread_best);
  const float maximum = of_key(key_part(best));
  const uint64_t mass =
      is_greedy(o.params) ? 0 : group_sum(mass_of(block_mass(values, count, maximum, temperature)));
  return Record{any_finite ? best : best & ~uint64_t(kFinite), mass};
}

// Draws in order of id from the slice in which the draw falls.
DEVICE void draw_from_slice(const Output& o) {
  const uint block = drawn_slice * GROUP + thread_x();
  const float maximum = of_key(drawn_key), temperature = o.params.temperature;
  float values[kBlock];
  const uint count = load_block(o, o.values, block, values);
  const uint64_t own_mass = mass_of(block_mass(values, count, maximum, temperature));
  uint64_t mass;
  const uint64_t before = group_sum_before(own_mass, mass);
  const uint64_t wanted = share_of(mass, drawn_share), target = wanted < mass ? wanted : mass - 1;
  if (before > target || target >= before + own_mass) return;
  float sum = 0;
  for (uint i = 0; i < kBlock; ++i) {
    if (i < count) sum += exp_f32((values[i] - maximum) / temperature);
    if (before + mass_of(sum) <= target) continue;
    chosen = block * kBlock + i;
    return;
  }
}

DEVICE void draw_row(const Output& o) {
  const uint slice = thread_x();
  Record record = slice < o.slices ? o.records[slice] : Record{0, 0};
  record.x |= kFinite;
  const uint64_t first = group_best(record.x);
  if (is_greedy(o.params)) {
    chosen = id_part(first);
    return;
  }
  const float below = of_key(max(key_part(record.x), 1u)) - of_key(key_part(first));
  const float temperature = is_filtered(o.params) ? 1 : o.params.temperature;
  const uint64_t mass = slice < o.slices ? mass_of(sum_of(record.y) * exp_f32(below / temperature)) : 0;
  uint64_t total;
  const uint64_t before = group_sum_before(mass, total);
  const float uniform_draw = philox_uniform(o.params.seed_low, o.params.seed_high, o.position);
  if (is_filtered(o.params)) {
    chosen = draw_filtered(o, first, total, uniform_draw);
    return;
  }
  const uint64_t target = share_of(total, uniform_draw);
  if (before <= target && target < before + mass) {
    drawn_slice = slice;
    drawn_key = key_part(record.x);
    drawn_share = sum_of(target - before) / sum_of(mass);
  }
  group_barrier();
  draw_from_slice(o);
}

// Hands the token to the host, and to the next step if it is the last of its sequence.
DEVICE void hand_on(const ARGUMENT SampleBlock& p, const Output& o, uint t, uint token, bool last) {
  p.drawn[o.sequence * kDrawnPositions + o.position % kDrawnPositions] = token;
  if (!last) return;
  const auto state = (GLOBAL StepState*)p.step;
  state->last_token[o.sequence] = token;
  state->row[t].token = kTokenFromSample;
  state->row[t].position = o.position + 1;
}

KERNEL(GROUP) void KERNEL_NAME(SampleBlock p) {
  const Step step = step_of(p.step);
  const uint slices = (p.vocab + kSlice - 1) / kSlice;
  const uint index = group_x() / slices, slice = group_x() % slices, live = live_rows(step, kRowsOutputs);
  if (index < step->first_drawn || index >= live) return;
  const Output o = output_of(p, step, index);
  if (o.penalises) note_penalised(o, step, p.token_log, slice);
  const Record record = take_slice(o, slice, is_filtered(o.params) ? 1 : o.params.temperature);
  if (thread_x() == 0) o.records[slice] = record;
  if (!is_last_group(p.counters, index, slices)) return;
  draw_row(o);
  group_barrier();
  const bool finite = group_max(thread_x() < slices ? uint(o.records[thread_x()].x) & kFinite : 0) != 0;
  const uint token = finite ? min(chosen, o.vocab - 1) : kNoDraw;
  const auto& again = reloaded_block<SampleBlock>();
  const Step same_step = step_of(again.step);
  const bool last = is_last_of_sequence(o, same_step, index);
  if (thread_x() == 0) hand_on(again, o, same_step->output_row[index], token, last);
}
