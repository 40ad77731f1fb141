// The frame of matmul_expert's vector rows. A worker goes through the experts; of its slots those that
// chose the expert are taken up to kBatch at a time, so that the expert's weights are read once for all of
// them: with one token each slot by itself, in a prompt a few slots together.
//
// `Rows` is how a type multiplies, as in rows.h. Every output is summed by itself in one order, so the bits
// depend neither on who runs beside it nor on the number of threads.
#pragma once
#include "kernels/cpu/simd/rows.h"

namespace {

// A worker's part: rows begin .. end - 1 of slots first .. last - 1.
struct ExpertPart {
  uint32_t first, last, begin, end;
};

// Slots of one expert, their x in the form of Rows.
struct ExpertBatch {
  uint32_t count;
  uint32_t slot[kBatch];
  const uint8_t* x[kBatch];
};

// The worker's memory for x, and what it holds: neighbours may share an x.
struct ExpertMemory {
  uint8_t* data;
  uint64_t slot_bytes;
  uint32_t slots;
  const float* held[kBatch];
};

template <class Rows>
inline void take_slot(const MatmulExpertBlock& b, uint32_t slot, ExpertMemory* memory, ExpertBatch* batch) {
  const uint32_t i = batch->count++;
  const uint32_t x_row = b.x_slots == 1 ? slot / b.used : slot;
  const float* x = (const float*)b.x + uint64_t(x_row) * b.x_stride;
  uint8_t* form = memory->data + i * memory->slot_bytes;
  if (memory->held[i] != x) Rows::prepare(x, b.depth, form);
  memory->held[i] = x;
  batch->slot[i] = slot;
  batch->x[i] = form;
}

// Not multiply() of rows.h: its order of sums depends on how many tokens there are, and how many slots of an
// expert a worker has depends on the threads.
template <class Rows>
inline void multiply_slots(const MatmulExpertBlock& b, const uint8_t* weight, uint32_t first, uint32_t count,
                           const uint8_t* const* x, uint32_t slots, float* out) {
  static_assert(kRowTokens == 4, "one case for each count");
  switch (slots) {
    case 1:
      return Rows::template multiply<1>(weight, b.n, first, count, b.depth, x, out, kRowTile);
    case 2:
      return Rows::template multiply<2>(weight, b.n, first, count, b.depth, x, out, kRowTile);
    case 3:
      return Rows::template multiply<3>(weight, b.n, first, count, b.depth, x, out, kRowTile);
    default:
      return Rows::template multiply<4>(weight, b.n, first, count, b.depth, x, out, kRowTile);
  }
}

// Rows begin .. end - 1 of one expert for the slots of a batch.
template <class Rows, class Weight>
void finish_batch(const MatmulExpertBlock& b, uint32_t expert, const ExpertBatch& batch, uint32_t begin,
                  uint32_t end) {
  const uint8_t* weight = (const uint8_t*)b.weight + expert * Weight::matrix_bytes(b.n, b.depth);
  const float* bias = b.bias ? (const float*)b.bias + uint64_t(b.first + expert) * b.n : nullptr;
  alignas(64) float out[kRowTokens][kRowTile];
  for (uint32_t n = begin; n < end; n += kRowTile) {
    const uint32_t count = end - n < kRowTile ? end - n : kRowTile;
    for (uint32_t i = 0; i < batch.count; i += kRowTokens) {
      const uint32_t slots = batch.count - i < kRowTokens ? batch.count - i : kRowTokens;
      multiply_slots<Rows>(b, weight, n, count, batch.x + i, slots, out[0]);
      for (uint32_t s = 0; s < slots; ++s) {
        float* y = (float*)b.y + uint64_t(batch.slot[i + s]) * b.y_stride + n;
        for (uint32_t r = 0; r < count; ++r) y[r] = bias ? out[s][r] + bias[n + r] : out[s][r];
      }
    }
  }
}

// Counted from the first of this part.
inline uint32_t expert_of(const MatmulExpertBlock& b, uint32_t slot) {
  return (b.ids ? ((const uint32_t*)b.ids)[slot] : slot % b.used) - b.first;
}

template <class Rows, class Weight>
void multiply_part(const MatmulExpertBlock& b, const ExpertPart& part, ExpertMemory* memory) {
  if (part.first >= part.last || part.begin >= part.end) return;
  for (uint32_t expert = 0; expert < b.experts; ++expert) {
    ExpertBatch batch;
    batch.count = 0;
    for (uint32_t slot = part.first; slot < part.last; ++slot) {
      if (expert_of(b, slot) != expert) continue;
      take_slot<Rows>(b, slot, memory, &batch);
      if (batch.count < memory->slots) continue;
      finish_batch<Rows, Weight>(b, expert, batch, part.begin, part.end);
      batch.count = 0;
    }
    if (batch.count) finish_batch<Rows, Weight>(b, expert, batch, part.begin, part.end);
  }
}

// Groups are slots' tiles of rows in order: the worker's are the rest of a slot, whole slots, and the
// start of another.
template <class Rows, class Weight>
void matmul_expert_rows(const MatmulExpertBlock& b, uint32_t first_group, uint32_t group_count,
                        Scratch* scratch) {
  ExpertMemory memory = {scratch->data, (Rows::token_bytes(b.depth) + 63) / 64 * 64, 0, {}};
  const uint64_t fit = scratch->bytes / memory.slot_bytes;
  memory.slots = fit < kBatch ? uint32_t(fit) : kBatch;
  if (!memory.slots) return;
  const uint32_t tiles = (b.n + b.tile - 1) / b.tile;
  const uint64_t groups = uint64_t(live_rows(step_of(b.step), kRowsTokens)) * b.used * tiles;
  const uint64_t last_group =
      uint64_t(first_group) + group_count < groups ? first_group + group_count : groups;
  if (first_group >= last_group) return;
  const uint32_t first = first_group / tiles, last = uint32_t(last_group / tiles);
  const uint32_t begin = first_group % tiles * b.tile, end = uint32_t(last_group % tiles) * b.tile;
  if (first == last) return multiply_part<Rows, Weight>(b, {first, first + 1, begin, end}, &memory);
  if (begin) multiply_part<Rows, Weight>(b, {first, first + 1, begin, b.n}, &memory);
  multiply_part<Rows, Weight>(b, {begin ? first + 1 : first, last, 0, b.n}, &memory);
  multiply_part<Rows, Weight>(b, {last, last + 1, 0, end}, &memory);
}

}  // namespace
