// What all tiled GEMM kernels share. A group makes a tile of y, kTokens x kRows, kStep columns at a time.
// (Only here and in weights.h a step is a pass over kStep columns.) For each step the group brings x,
// float16, and the weights, decoded to float16, to shared memory:
//   tile[buffer][token or row][kPitch], words of 8 values: first x, then the weights
// A row is one word (16 bytes) longer than its values, which puts 8 neighbouring rows into different banks.
// While the group multiplies a step, the values of the next are on their way into registers. With two buffers
// a step needs one barrier, and some subgroups can multiply while others decode.
//
// Before it includes this file the kernel defines TILE_BLOCK, its argument block; it may define STEP and
// BUFFERS. tokens.h or slots.h defines x_row(), cm1.h or plain.h defines multiply_step().
#ifndef GRETA_VULKAN_GEMM_TILE_H
#define GRETA_VULKAN_GEMM_TILE_H
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "kernels/vulkan/step.h"

layout(constant_id = 0) const uint kThreads = 128;
layout(constant_id = 2) const uint kRows = 64;
layout(constant_id = 3) const uint kTokens = 64;
#ifndef STEP
#define STEP 32
#define BUFFERS 2
#endif
layout(constant_id = 4) const uint kStepWanted = 0;     // 32 or 64; 0: the kernel's STEP
layout(constant_id = 5) const uint kBuffersWanted = 0;  // 1 or 2; 0: the kernel's BUFFERS
layout(push_constant, scalar) uniform Push { TILE_BLOCK p; };

const uint kStep = kStepWanted != 0 ? kStepWanted : STEP;
const uint kBuffers = kBuffersWanted != 0 ? kBuffersWanted : BUFFERS;
const uint kSteps = 64 / kStep;           // in 64 columns
#include "kernels/vulkan/gemm/weights.h"  // needs kSteps
const uint kPitch = kStep / 8 + 1;  // words from one row to the next
const uint kWeightsAt = kTokens * kPitch;
const uint kBufferSize = kWeightsAt + kRows * kPitch;
shared uvec4 tile[kBuffers * kBufferSize];

// A thread brings words of 8 values of x for each step, and pieces of 32 weights for each 64 columns.
const uint kWords = kTokens * (kStep / 8);
const uint kWordsEach = (kWords + kThreads - 1) / kThreads;
const uint kPieces = kRows * 2;
const uint kPiecesEach = (kPieces + kThreads - 1) / kThreads;

// Neighbouring threads bring what lies side by side in memory: a load of eight threads that touches eight
// cache lines takes as long as eight loads (H200: 228 TFLOP/s, but 160 with a line for each thread).
uint token_of(uint word) { return word / (kStep / 8); }
uint chunk_of_token(uint word) { return word % (kStep / 8); }

uint64_t piece_row[kPiecesEach];
Piece pieces[kPiecesEach];
uint x_at[kWordsEach];  // counted in words from p.x on
uvec4 words[kWordsEach];

// The tile's weights are rows first_row .. of the matrix at `weight`. Rows past the last repeat it; their
// results are not stored.
void begin_weights(uint64_t weight, uint first_row) {
  [[unroll]] for (uint i = 0; i < kPiecesEach; ++i) {
    const uint row = min(first_row + row_of(i * kThreads + gl_LocalInvocationIndex), p.n - 1);
    piece_row[i] = weight + row * quant_row_bytes(p.depth);
  }
}

// Where the row of x of a token of the tile begins, counted in words from p.x on.
uint x_row(uint token);

void begin_x() {
  [[unroll]] for (uint i = 0; i < kWordsEach; ++i) {
    const uint word = i * kThreads + gl_LocalInvocationIndex;
    x_at[i] = x_row(token_of(word)) + chunk_of_token(word);
  }
}

void load_weights(uint column) {
  const uint thread = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < kPiecesEach; ++i)
    load_piece(pieces[i], piece_row[i], p.depth, column, side_of(i * kThreads + thread));
}

void load_x(uint column) {
  const uint thread = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < kWordsEach; ++i) {
    const uint at = column + chunk_of_token(i * kThreads + thread) * 8;
    words[i] = at < p.depth ? uvec4_address(uint64_t(p.x)).at[x_at[i] + column / 8] : uvec4(0);
  }
}

void store_piece(uint at, uint i, uint column, uint step, uint side, bool clip) {
  [[unroll]] for (uint chunk = 0; chunk < 4; ++chunk) {
    const uint unit = chunk_unit(side, chunk);
    if (kSteps == 1 || unit == step)
      tile[at + (kSteps == 1 ? unit * 4 : 0) + chunk_word(side, chunk)] =
          chunk_of(pieces[i], column, side, chunk, clip);
  }
}

// Stores x and weights in a buffer. `step` says which kStep of the 64 columns from `column` on, which the
// pieces hold.
void store_step(uint buffer_index, uint column, uint step) {
  const uint thread = gl_LocalInvocationIndex, base = buffer_index * kBufferSize;
  [[unroll]] for (uint i = 0; i < kWordsEach; ++i) {
    const uint word = i * kThreads + thread;
    if (kWords % kThreads != 0 && word >= kWords) break;
    tile[base + token_of(word) * kPitch + chunk_of_token(word)] = words[i];
  }
  [[unroll]] for (uint i = 0; i < kPiecesEach; ++i) {
    const uint piece = i * kThreads + thread;
    if (kPieces % kThreads != 0 && piece >= kPieces) break;
    const uint at = base + kWeightsAt + row_of(piece) * kPitch;
    if (may_overflow(pieces[i]))
      store_piece(at, i, column, step, side_of(piece), true);
    else
      store_piece(at, i, column, step, side_of(piece), false);
  }
}

// Multiplies what lies in a buffer and adds it to the sums.
void multiply_step(uint buffer_index, uint column);

// Multiplies columns begin .. end - 1. `begin` is a multiple of 256, and `end` too or the depth.
void multiply_tile(uint begin, uint end) {
  load_weights(begin);
  load_x(begin);
  for (uint column = begin; column < end; column += 64) {
    [[unroll]] for (uint step = 0; step < kSteps; ++step) {
      const uint buffer_index = kBuffers == 1 ? 0 : kSteps == 2 ? step : column / 64 % 2;
      if (kBuffers == 1) barrier();  // all subgroups have multiplied what is replaced now
      store_step(buffer_index, column, step);
      barrier();
      if (step + 1 == kSteps && column + 64 < end) load_weights(column + 64);
      load_x(column + (step + 1) * kStep);
      multiply_step(buffer_index, column + step * kStep);
    }
  }
}

#endif
