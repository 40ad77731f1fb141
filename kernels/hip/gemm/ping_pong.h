// A tile of y by two halves of a group's waves that take turns: while the waves of one half multiply, those
// of the other bring values from shared memory to registers, and decode the weights of the next step. A SIMD
// that has a wave of each half can do both at a time. In a step of 64 columns all waves meet five times:
//   early half   load      multiply  load      multiply  store
//   late half    multiply  load      multiply  load      store
// A load brings the fragments of half of the columns. The late half's first product is that of its last load
// of the step before. Both halves store the next step together, when all have loaded the last of this one.
//
// Steps are whole: the depth is a multiple of 64.
#pragma once
#include "kernels/hip/gemm/matmul_tiles.h"

namespace {
// What a thread brings begins at these addresses of the tile, so many bytes behind.
template <class T>
struct Sources {
  uint64_t weight, x;
  uint weight_at[kPiecesEach], x_at[T::kWordsEach];
};

// The pieces of a thread, decoded.
struct Chunks {
  uvec4 words[kPiecesEach][4];
};

// The fragments of a wave for kFragmentColumns columns.
template <class T>
struct Fragments {
  Fragment w[T::kWide], x[T::kTall];
};

// Hides from the compiler what a value is, so that it adds it to a scalar address where that is read, which
// costs nothing, and keeps no sums of both in registers over a loop.
DEVICE void hide([[maybe_unused]] uint& value) {
#ifndef GRETA_EMULATED
  asm volatile("" : "+v"(value));
#endif
}

// Whether the value is true in any lane of the wave. In the emulator each lane may answer for itself.
DEVICE bool in_any_lane(bool value) {
#ifdef GRETA_EMULATED
  return value;
#else
  return __builtin_amdgcn_ballot_w64(value) != 0;
#endif
}

// All waves meet, and the compiler moves nothing over it.
DEVICE void end_turn() {
  __builtin_amdgcn_sched_barrier(0);
  group_barrier();
  __builtin_amdgcn_sched_barrier(0);
}

template <class T>
DEVICE Sources<T> sources_of(const T& t, const MatmulTileBlock& p) {
  const uint row_bytes = quant_row_bytes(p.depth), x_bytes = p.depth * 2;
  Sources<T> from;
  from.weight = uint64_t(p.weight) + uint64_t(t.first_row) * row_bytes;
  from.x = uint64_t(p.x) + uint64_t(t.first_token) * x_bytes;
#pragma unroll
  for (uint i = 0; i < kPiecesEach; ++i)  // rows past the last repeat it, and tokens too
    from.weight_at[i] = min(row_of(i * GROUP + thread_x()), p.n - 1 - t.first_row) * row_bytes;
#pragma unroll
  for (uint i = 0; i < T::kWordsEach; ++i) {
    const uint word = i * GROUP + thread_x();
    from.x_at[i] = min(word / kPitch, t.live - 1 - t.first_token) * x_bytes + word % kPitch * 16;
  }
  return from;
}

// Loads what the group multiplies in the step from `column` on.
template <class T>
DEVICE void load_whole_step(T& t, Sources<T>& from, uint depth, uint column) {
  __builtin_assume(column / 32 * 32 < depth && (column / 32 + 1) * 32 < depth);
#pragma unroll
  for (uint i = 0; i < kPiecesEach; ++i) {
    hide(from.weight_at[i]);
    load_piece(t.pieces[i], from.weight + from.weight_at[i], depth, column, side_of(i * GROUP + thread_x()));
  }
#pragma unroll
  for (uint i = 0; i < T::kWordsEach; ++i) {
    hide(from.x_at[i]);
    t.words[i] = load<uvec4>(from.x + column * 2 + from.x_at[i]);
  }
}

template <class T>
DEVICE void decode_step(const T& t, uint column, Chunks& to) {
#pragma unroll
  for (uint i = 0; i < kPiecesEach; ++i) {
#pragma unroll
    for (uint chunk = 0; chunk < 4; ++chunk)
      to.words[i][chunk] = chunk_of(t.pieces[i], column, side_of(i * GROUP + thread_x()), chunk, false);
    if (__builtin_expect(in_any_lane(may_overflow(t.pieces[i])), 0))
#pragma unroll
      for (uint chunk = 0; chunk < 4; ++chunk) to.words[i][chunk] = saturated(to.words[i][chunk]);
  }
}

template <class T>
DEVICE void store_decoded(const T& t, const Chunks& chunks) {
#pragma unroll
  for (uint i = 0; i < kPiecesEach; ++i) {
    const uint piece = i * GROUP + thread_x(), side = side_of(piece);
#pragma unroll
    for (uint chunk = 0; chunk < 4; ++chunk)
      tile[place_of(row_of(piece), chunk_unit(side, chunk) * 4 + chunk_word(side, chunk))] =
          chunks.words[i][chunk];
  }
#pragma unroll
  for (uint i = 0; i < T::kWordsEach; ++i) {
    const uint word = i * GROUP + thread_x();
    tile[place_of(kRows + word / kPitch, word % kPitch)] = t.words[i];
  }
}

// Fragments from word `word` of their rows on.
template <class T>
DEVICE void load_fragments(const T& t, uint word, Fragments<T>& to) {
#pragma unroll
  for (uint j = 0; j < T::kWide; ++j) to.w[j] = load_fragment(t.w_place, j, word);
#pragma unroll
  for (uint i = 0; i < T::kTall; ++i) to.x[i] = load_fragment(t.x_place, i, word);
}

// While a wave multiplies, it issues before the other one of its SIMD.
template <class T>
DEVICE void multiply_fragments(T& t, const Fragments<T>& fragments) {
  __builtin_amdgcn_s_setprio(1);
#pragma unroll
  for (uint i = 0; i < T::kTall; ++i)
#pragma unroll
    for (uint j = 0; j < T::kWide; ++j)
      t.sums[i][j] = multiply(fragments.x[i], fragments.w[j], t.sums[i][j]);
  __builtin_amdgcn_s_setprio(0);
}

// The steps of a wave of one half, from `begin` to `end`. The last one loads and stores itself again.
template <bool late, class T>
DEVICE void take_turns(T& t, Sources<T>& from, uint depth, uint begin, uint end) {
  Fragments<T> fragments = {};
  Chunks chunks;
#pragma clang loop unroll(disable)
  for (uint column = begin; column < end; column += kStep) {
    const uint next = min(column + kStep, end - kStep);
    if (late) {
      multiply_fragments(t, fragments);
      end_turn();
    }
    load_whole_step(t, from, depth, next);
    load_fragments(t, 0, fragments);
    end_turn();
    multiply_fragments(t, fragments);
    end_turn();
    load_fragments(t, kPitch / 2, fragments);
    decode_step(t, next, chunks);
    end_turn();
    if (!late) {
      multiply_fragments(t, fragments);
      end_turn();
    }
    store_decoded(t, chunks);
    end_turn();
  }
  if (late) multiply_fragments(t, fragments);
}

template <class T>
DEVICE void make_tile_in_turns(const MatmulTileBlock& p) {
  static_assert(T::kWords % GROUP == 0 && kFragmentColumns * 2 == kStep);
  T t;
  if (!choose_tile(t, p)) return;
  begin_wave(t);
  Sources<T> from = sources_of(t, p);
  const uint depth = p.depth;
  const auto [begin, end] = columns_of_group(depth);
#pragma unroll
  for (uint i = 0; i < kPiecesEach; ++i) t.pieces[i] = {};
  load_whole_step(t, from, depth, begin);
  Chunks chunks;
  decode_step(t, begin, chunks);
  store_decoded(t, chunks);
  end_turn();
  if (wave_index() < kWaves / 2)
    take_turns<false>(t, from, depth, begin, end);
  else
    take_turns<true>(t, from, depth, begin, end);
  finish_tile(t, p);
}
}  // namespace
