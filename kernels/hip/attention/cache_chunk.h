// Chunks of 8 values of a head in the cache. They are loaded as they lie and decoded later, so that many
// loads are under way. That is for keys and values that are both f16 or both q8_0. A cache of other types is
// for exact runs: its chunks are loaded where they are decoded. A head is a multiple of 8 values.
#pragma once
#include "kernels/hip/attention/cache.h"

constexpr uint kChunk = 8;
constexpr uint kCacheAny = ~0u;  // a type that the kernel finds out as it runs

// A chunk of f16 or q8_0 as it lies: of q8_0 8 quants, then the scale of their block.
using Chunk = uvec4;

// Where a chunk begins, in bytes from the start of its head.
DEVICE uint chunk_at(uint type, uint chunk) {
  return type == kCacheF32   ? chunk * 32
         : type == kCacheF16 ? chunk * 16
                             : chunk / 4 * kQ8BlockBytes + 2 + chunk % 4 * 8;
}

// 8 bytes of quants, which begin at any multiple of 2.
struct __attribute__((packed, aligned(2))) Quants {
  uint low, high;
};

// Where a chunk lies: an address that is the same in all lanes, an offset, and its index in the head.
struct Place {
  const GLOBAL byte* from;
  uint at, chunk;
};

DEVICE Chunk load_f16(const Place& place) { return *(const GLOBAL uvec4*)(place.from + place.at); }

DEVICE Chunk load_q8(const Place& place) {
  const auto quants = (const GLOBAL Quants*)(place.from + place.at);
  const uint scale_at = place.at - place.chunk % 4 * 8 - 2;
  return {quants->low, quants->high, *(const GLOBAL uint16_t*)(place.from + scale_at), 0};
}

struct ChunkValues {
  vec2 pairs[kChunk / 2];
};

DEVICE ChunkValues decode_f16(Chunk chunk) {
  return {unpackHalf2x16(chunk.x), unpackHalf2x16(chunk.y), unpackHalf2x16(chunk.z), unpackHalf2x16(chunk.w)};
}

DEVICE ChunkValues decode_q8(Chunk chunk) {
  const float scale = unpackHalf2x16(chunk.z).x;
  ChunkValues values;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    values.pairs[i] = scale * vec2{float(bitfieldExtract(int(chunk[i / 2]), i % 2 * 16, 8)),
                                   float(bitfieldExtract(int(chunk[i / 2]), i % 2 * 16 + 8, 8))};
  return values;
}

// The values of a chunk of a cache of any type.
DEVICE ChunkValues load_values(uint type, const Place& place) {
  if (type == kCacheF16) return decode_f16(load_f16(place));
  if (type == kCacheQ8) return decode_q8(load_q8(place));
  const auto from = (const GLOBAL vec4*)(place.from + place.at);
  const vec4 low = from[0], high = from[1];
  return {low.xy, low.zw, high.xy, high.zw};
}

// The chunk at `place`, where the kernel knows the type.
template <uint kType>
DEVICE Chunk load_chunk(const Place& place) {
  if constexpr (kType == kCacheF16) return load_f16(place);
  if constexpr (kType == kCacheQ8) return load_q8(place);
  return {};
}

// The values of a chunk that load_chunk() has loaded from `place`.
template <uint kType>
DEVICE ChunkValues decode_chunk(uint type, Chunk chunk, const Place& place) {
  if constexpr (kType == kCacheF16) return decode_f16(chunk);
  if constexpr (kType == kCacheQ8) return decode_q8(chunk);
  return load_values(type, place);
}
