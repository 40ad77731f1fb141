// What a weight's decode header gives to a kernel, and what decode headers share. In front of the kernel's
// file the build includes what kernels of the backend start from, then quant/<type>.h; for the layout of
// planes it includes quant/<type>_planes.h where there is one.
//
//   kUnit                          32: weights of a unit, columns 32 u .. 32 u + 31 of a row
//   kWholeUnits                    whether every depth is a multiple of it: not for f32, f16 and bf16
//   quant_row_bytes(depth)         bytes from one row to the next; a matrix [n][depth] has n times as many
//   quant_begin()                  fills the type's tables in shared memory and waits for them; empty for
//                                  types without. All threads of the group call it once, before any decode
//   quant_decode(row, depth, unit, w)   w[0 .. 31] = the weights of unit `unit` of the row at address `row`,
//                                  bit for bit those of kernels/cpu/quant/<type>.h. Weights past `depth` are
//                                  0, and nothing past the row is read
// Matrices begin at multiples of 16 bytes. The load functions below are for kernels too.
//
// The build defines, from the type's row in src/compute/quant_types.def and from its header:
//   QUANT_BLOCK, QUANT_BYTES       weights and bytes of a block in GGUF order
//   PLANES                         in the layout of planes
//   QUANT_PARTS                    where the header defines QUANT_PLANES: {offset in the block, bytes} of
//                                  each part
// A header may define, before it includes this file:
//   QUANT_PLANES                   {offset, bytes}, ..: the type has the layout of planes (Layout::Planes),
//                                  for blocks that are no multiple of 4 bytes or whose order costs decoding.
//                                  Plane p of a row holds these bytes of each block, in order of blocks,
//                                  padded to a multiple of 16 bytes; a row is its planes one after the other,
//                                  at most five: quants first, then high bits and signs, then scales. part()
//                                  finds a part of a block in both layouts
//   QUANT_REORDERED                bytes of a block that reorder() makes of one in GGUF order; the offsets
//                                  above are then those in the block that it makes
#ifndef GRETA_GPU_QUANT_H
#define GRETA_GPU_QUANT_H
#ifdef GL_core_profile
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "kernels/abi/abi.h"

const uint kUnit = 32;

GRETA_ABI_BUFFER(uint16, uint16_t, 2)
GRETA_ABI_BUFFER(uvec2, uvec2, 8)
GRETA_ABI_BUFFER(uvec4, uvec4, 16)

// Value i of the type T at an address. The build defines WEIGHTS_STREAM for HIP where a kernel reads each
// weight once, so that weights do not push out of the caches what is read again.
#ifdef WEIGHTS_STREAM
#define LOADED(T, at, i) load_streamed<T>(at + i * sizeof(T))
#else
#define LOADED(T, at, i) T##_address(at).at[i]
#endif

uint load_u8(uint64_t at) { return uint(byte_address(at).at[0]); }
uint load_u16(uint64_t at) { return uint(uint16_address(at).at[0]); }
float load_f16(uint64_t at) { return unpackHalf2x16(load_u16(at)).x; }

// A word from a multiple of 1, 2 or 4 bytes; 16 bytes from a multiple of 1 to 16.
uint load_word_of_1(uint64_t at) {
  byte_address from = byte_address(at);
  return uint(from.at[0]) | uint(from.at[1]) << 8 | uint(from.at[2]) << 16 | uint(from.at[3]) << 24;
}
uint load_word_of_2(uint64_t at) {
  uint16_address from = uint16_address(at);
  return uint(from.at[0]) | uint(from.at[1]) << 16;
}
uint load_word_of_4(uint64_t at) { return LOADED(uint, at, 0); }
uvec4 load_16_of_1(uint64_t at) {
  return uvec4(load_word_of_1(at), load_word_of_1(at + 4), load_word_of_1(at + 8), load_word_of_1(at + 12));
}
uvec4 load_16_of_2(uint64_t at) {
  return uvec4(load_word_of_2(at), load_word_of_2(at + 4), load_word_of_2(at + 8), load_word_of_2(at + 12));
}
uvec4 load_16_of_4(uint64_t at) {
  return uvec4(load_word_of_4(at), load_word_of_4(at + 4), load_word_of_4(at + 8), load_word_of_4(at + 12));
}
uvec4 load_16_of_8(uint64_t at) { return uvec4(LOADED(uvec2, at, 0), LOADED(uvec2, at, 1)); }
uvec4 load_16_of_16(uint64_t at) { return LOADED(uvec4, at, 0); }

// Byte i of words, without and with its sign.
uint byte_of(uint word, int i) { return bitfieldExtract(word, i * 8, 8); }
uint byte_of(uvec4 words, int i) { return bitfieldExtract(words[i / 4], i % 4 * 8, 8); }
int signed_byte(uvec4 words, int i) { return bitfieldExtract(int(words[i / 4]), i % 4 * 8, 8); }

// -value where the bit is set.
float with_sign(float value, uint signs, int bit) {
  return uintBitsToFloat(floatBitsToUint(value) ^ ((signs >> bit) & 1) << 31);
}

#if !defined(QUANT_BLOCK) || QUANT_BLOCK == 1
const bool kWholeUnits = false;
#else
const bool kWholeUnits = true;
#ifdef PLANES
#define load_word load_word_of_4
#define load_16 load_16_of_16
#elif QUANT_BYTES % 2 != 0
#define load_word load_word_of_1
#define load_16 load_16_of_1
#elif QUANT_BYTES % 4 != 0
#define load_word load_word_of_2
#define load_16 load_16_of_2
#elif QUANT_BYTES % 8 != 0
#define load_word load_word_of_4
#define load_16 load_16_of_4
#elif QUANT_BYTES % 16 != 0
#define load_word load_word_of_4
#define load_16 load_16_of_8
#else
#define load_word load_word_of_4
#define load_16 load_16_of_16
#endif

#ifdef QUANT_PARTS  // {offset in the block, bytes} of each part
const uint kMaxParts = 5;
#define QUANT_PLANES_OF(name, o0, b0, o1, b1, o2, b2, o3, b3, o4, b4) \
  const uvec2 kParts_##name[kMaxParts] = {{o0, b0}, {o1, b1}, {o2, b2}, {o3, b3}, {o4, b4}};
#include "kernels/abi/quant_planes.inc"  // made by the build
#undef QUANT_PLANES_OF
#endif

#ifdef PLANES
uint64_t plane_bytes(uint depth, uint part) {
  return (uint64_t(depth / QUANT_BLOCK) * QUANT_PARTS[part].y + 15) & ~uint64_t(15);
}
uint64_t quant_row_bytes(uint depth) {
  uint64_t bytes = 0;
  [[unroll]] for (uint i = 0; i < kMaxParts; ++i) bytes += plane_bytes(depth, i);
  return bytes;
}
// Where part `part` of block `block` lies.
uint64_t part(uint64_t row, uint depth, uint block, uint part) {
#ifdef GL_core_profile
  [[unroll]] for (uint i = 0; i < part; ++i) row += plane_bytes(depth, i);
  return row + block * QUANT_PARTS[part].y;
#else  // an address that all lanes share, and 32 bits of a lane
  uint at = block * QUANT_PARTS[part].y;
  [[unroll]] for (uint i = 0; i < part; ++i) at += uint(plane_bytes(depth, i));
  return row + at;
#endif
}
#else
uint64_t quant_row_bytes(uint depth) { return uint64_t(depth / QUANT_BLOCK) * QUANT_BYTES; }
#ifdef QUANT_PARTS
uint64_t part(uint64_t row, uint depth, uint block, uint part) {
  return row + block * QUANT_BYTES + QUANT_PARTS[part].x;
}
#endif
#endif
#endif

#endif
