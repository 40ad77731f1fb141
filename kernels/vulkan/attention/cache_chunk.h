// Chunks of 8 values of a head in the cache. They are loaded as they lie and decoded later, so that many
// loads are under way. A head is a multiple of 8 values.
#ifndef GRETA_VULKAN_CACHE_CHUNK_H
#define GRETA_VULKAN_CACHE_CHUNK_H
#include "kernels/vulkan/attention/cache.h"

#define kChunk 8
struct Chunk {
  uvec4 low, high;  // the bytes of 8 values; high: the second four of f32
};

Chunk load_chunk(uint type, uint64_t head, uint chunk) {
  if (type == kCacheF16) return Chunk(uvec4_address(head).at[chunk], uvec4(0));
  if (type == kCacheF32)
    return Chunk(uvec4_address(head).at[2 * chunk], uvec4_address(head).at[2 * chunk + 1]);
  uint16_address block = uint16_address(head + chunk / 4 * 34);
  const uint first = 1 + chunk % 4 * 4;
  return Chunk(uvec4(uint(block.at[first]) | uint(block.at[first + 1]) << 16,
                     uint(block.at[first + 2]) | uint(block.at[first + 3]) << 16, block.at[0], 0), uvec4(0));
}

void decode_chunk(uint type, Chunk chunk, out float values[kChunk]) {
  if (type == kCacheQ8) {
    const float d = unpackHalf2x16(chunk.low.z).x;
    [[unroll]] for (int i = 0; i < kChunk; ++i)
      values[i] = float(bitfieldExtract(int(chunk.low[i / 4]), i % 4 * 8, 8)) * d;
    return;
  }
  [[unroll]] for (int i = 0; i < kChunk; ++i)
    values[i] = type == kCacheF16 ? unpackHalf2x16(chunk.low[i / 2])[i % 2]
                                  : uintBitsToFloat(i < 4 ? chunk.low[i] : chunk.high[i - 4]);
}
#endif
